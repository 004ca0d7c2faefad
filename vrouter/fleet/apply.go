package fleet

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Apply replaces the state with a document. Ports of other clients (CLI, CNI,
// Docker) stay; a document that contradicts them is refused before anything is
// written. A port whose origin the document names stays the port of that client.
//
// Apply makes one commit if the difference fits into it, else several. Several
// commits first delete the objects that conflict with new ones, then put
// objects, then delete the rest. After an interruption, apply the document
// again.
func (f *Fleet) Apply(ctx context.Context, s model.State) error {
	found := map[string]int64{} // as in Change
	for attempt := 0; ; {
		done, err := f.applyOnce(ctx, s, found)
		var conflict *store.ConflictError
		switch {
		case errors.As(err, &conflict) && attempt < maxAttempts:
			maps.Copy(found, conflict.Revisions)
			if err := f.catchUp(ctx, attempt); err != nil {
				return err
			}
			attempt++
		case err != nil || done:
			return err
		}
	}
}

// applyOnce plans commits and makes them one after another. A commit fails if another
// client has changed something that the plan depends on. The first
// commits, which write no ports, fail if any port was written after the plan was made. The
// store needs the longer for this condition the more ports it has. So the later commits write
// only ports, and fail only if one of these ports has changed. If other changes must follow
// the ports, done is false: call applyOnce again.
func (f *Fleet) applyOnce(ctx context.Context, s model.State, found map[string]int64) (done bool, err error) {
	var plan []planned
	var objects, revision int64
	var refused error
	listed := map[place]int64{} // revisions of the keys of places
	err = f.LookAt(ctx, Need{All: true}, func(v *View) {
		if refused = v.known(); refused == nil {
			plan, refused = v.plan(s, f.store.MaxKeys(), found)
		}
		for _, c := range plan {
			for p := range c.places {
				listed[p] = v.revisions[p.key()]
			}
		}
		objects = v.revisions[keyObjects]
	})
	if err = errors.Join(err, refused); err != nil {
		return false, err
	}
	ports, left := false, plan // whether ports have been written
	made := map[int64]store.Commit{}
	for ; len(left) > 0 && !(ports && left[0].objects); left = left[1:] {
		c := left[0]
		c.Exact[keyObjects] = objects
		if !ports {
			c.Ranges = map[string]int64{inPorts: c.Base}
		}
		for p := range c.places {
			if c.Exact[p.key()] = listed[p]; listed[p] == 0 {
				c.Put[p.key()] = nil
			}
		}
		if revision, err = f.commit(ctx, c.Commit); err != nil {
			return false, err
		}
		for p := range c.places {
			listed[p] = cmp.Or(listed[p], revision)
		}
		if c.objects {
			objects = revision
		}
		ports, made[revision] = ports || c.ports, c.Commit
	}
	for revision, c := range made {
		f.awaitCommit(ctx, c, revision)
	}
	return len(left) == 0, nil
}

// planned is a commit of a plan.
type planned struct {
	store.Commit
	ports, objects bool           // whether it writes ports, and whether it changes other objects
	places         map[place]bool // of the ports that it writes
}

// plan returns the commits that make the state equal to a document.
func (v *View) plan(s model.State, maxKeys int, found map[string]int64) ([]planned, error) {
	w, err := v.join(s)
	if err != nil {
		return nil, err
	}
	plan := pack(v.stepsTo(w, maxKeys), maxKeys-4) // four keys are left for the schema, the id, the objects and the place of the first port
	for i := range plan {
		c := &plan[i].Commit
		c.Base, c.Exact = v.revision, map[string]int64{}
		if i > 0 {
			v.exactPorts(c)
			v.overwrite(c, found)
		} else {
			v.checkSchema(c)
		}
		if plan[i].objects {
			c.Put[keyObjects] = nil
		}
	}
	return plan, nil
}

// exactPorts makes a commit fail if another client has written one of its ports, or a port
// with a name or an address of these ports.
func (v *View) exactPorts(c *store.Commit) {
	for _, key := range slices.Concat(slices.Collect(maps.Keys(c.Put)), c.Delete) {
		if _, put := c.Put[key]; isPort(key) || put && isUnique(key) && !v.isUsed(key) {
			c.Exact[key] = v.revisionOf(key)
		}
	}
}

// step is the smallest part of a commit: an object with all its keys.
type step struct {
	put    []entry
	delete []string
	port   bool  // the object is a port
	place  place // of a new port
}

type entry struct {
	key   string
	value []byte
}

// pack puts steps into few commits, in order. A commit also writes the keys of the places of
// its ports.
func pack(steps []step, maxKeys int) (plan []planned) {
	size := 0
	for first, last := 0, 0; last <= len(steps); last++ {
		more := 0
		if last < len(steps) {
			more = len(steps[last].put) + len(steps[last].delete)
			if last > 0 && steps[last].place != steps[last-1].place {
				more++
			}
		}
		if size > 0 && (last == len(steps) || size+more > maxKeys) {
			plan = append(plan, merged(steps[first:last], size))
			first, size = last, 0
		}
		size += more
	}
	return plan
}

// merged makes one commit of steps that have the given number of keys.
func merged(steps []step, keys int) planned {
	c := planned{Commit: store.Commit{Put: make(map[string][]byte, keys)}, places: map[place]bool{}}
	for _, s := range steps {
		c.ports, c.objects = c.ports || s.port && len(s.put) > 0, c.objects || !s.port
		if s.place != (place{}) {
			c.places[s.place] = true
		}
		for _, e := range s.put {
			c.Put[e.key] = e.value
		}
		c.Delete = append(c.Delete, s.delete...)
	}
	return c
}

// stepsTo returns the steps from the view to the desired objects. A file store does not keep
// the unique keys of a large commit, so such a commit has none.
func (v *View) stepsTo(w desired, maxKeys int) (steps []step) {
	for _, r := range v.Routes() {
		if key := routeKey(r); w.objects[key] == nil {
			steps = append(steps, step{delete: []string{key}})
		}
	}
	steps = append(steps, v.portDeletions(w)...)
	for _, prefix := range []string{keySettings, inPolicies, inNodes, inNetworks, inGateways} {
		steps = append(steps, v.puts(w, prefix)...)
	}
	var ports []*model.Port
	for _, p := range w.ports {
		if !v.hasPort(p) {
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(a, b *model.Port) int {
		return cmp.Or(cmp.Compare(a.Network, b.Network), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name))
	})
	first := len(steps)
	steps = append(steps, make([]step, len(ports))...)
	onAllCPUs(len(ports), func(i int) {
		steps[first+i] = step{put: portEntries(ports[i], min(len(ports), maxKeys) <= store.MaxHistory), port: true, place: placeOf(*ports[i])}
	})
	steps = append(steps, v.puts(w, inRoutes)...)
	var last []string
	for key := range v.revisions {
		if w.objects[key] != nil {
			continue
		}
		if kind, _, _ := strings.Cut(key, "/"); slices.Contains([]string{inNodes, inNetworks, inGateways, inPolicies}, kind+"/") {
			last = append(last, key)
		}
	}
	slices.Sort(last)
	for _, key := range last {
		steps = append(steps, step{delete: []string{key}})
	}
	return steps
}

// portDeletions deletes all keys of ports that are not desired, and the former
// addresses of ports whose addresses change.
func (v *View) portDeletions(w desired) (steps []step) {
	var stale []string
	for name, current := range v.ports {
		p := w.ports[name]
		if !w.kept[name] && (p == nil || p.Node != current.Node || p.Network != current.Network || p.MAC != current.MAC || !slices.Equal(p.Addresses(), current.Addresses())) {
			stale = append(stale, name)
		}
	}
	if len(stale) == 0 {
		return nil
	}
	slices.Sort(stale)
	keep := map[string]bool{}
	for _, p := range w.ports {
		keep[portKey(*p)] = true
		for _, key := range uniqueKeys(*p) {
			keep[key] = true
		}
	}
	for name := range w.kept {
		for _, key := range v.portKeys(name) {
			keep[key] = true
		}
	}
	for _, name := range stale {
		keys := v.portKeys(name)
		steps = append(steps, step{delete: slices.DeleteFunc(keys, func(key string) bool { return keep[key] }), port: true})
	}
	return steps
}

// portKeys returns all keys of an existing port.
func (v *View) portKeys(name string) []string {
	p := v.ports[name].Port()
	return append(uniqueKeys(p), portKey(p))
}

// portEntries returns the keys of a port with their values, with or without its unique keys.
func portEntries(p *model.Port, unique bool) []entry {
	all := []entry{{portKey(*p), encode(p)}}
	if unique {
		for _, key := range uniqueKeys(*p) {
			all = append(all, entry{key, []byte(p.Name)})
		}
		all[1].value = []byte(all[0].key)
	}
	return all
}

func (v *View) hasPort(p *model.Port) bool {
	current := v.ports[p.Name]
	return current != nil && current.Port().Equal(*p)
}

// puts returns steps for the objects under a key prefix that differ from the
// desired ones.
func (v *View) puts(w desired, prefix string) (steps []step) {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if strings.HasPrefix(key, prefix) && !v.has(key, w.objects[key]) {
			steps = append(steps, step{put: []entry{{key, encode(w.objects[key])}}})
		}
	}
	return steps
}

// has reports whether the view has an object with this value.
func (v *View) has(key string, object any) bool {
	if v.revisions[key] == 0 || v.broken[key] != nil {
		return false
	}
	_, name, _ := strings.Cut(key, "/")
	var current any
	switch o := object.(type) {
	case model.Settings:
		current = v.settings
	case model.Node:
		current = v.nodes[name]
	case model.Network:
		current = v.networks[name]
	case model.Gateway:
		current = v.gateways[name]
	case model.Policy:
		current = v.policies[name]
	case model.Route:
		current = v.routes[o.Network][o.Prefix]
	}
	return bytes.Equal(encode(current), encode(object))
}

// desired is the content of an applied document.
type desired struct {
	objects map[string]any         // by key
	ports   map[string]*model.Port // by name
	kept    map[string]bool        // names of ports of other clients
}

var origins = []model.Origin{model.Applied, model.Added, model.Docker, model.CNI, model.NodeAccess}

// join refuses a document that is not valid together with the ports that stay.
func (v *View) join(s model.State) (desired, error) {
	if err := valid(s); err != nil {
		return desired{}, err
	}
	for _, p := range s.Ports {
		if !slices.Contains(origins, p.Origin) {
			return desired{}, refuse(Invalid, "port %q: origin: %q is none of added, docker, cni and node; remove origin and owner for a port of the document", p.Name, string(p.Origin))
		}
	}
	s = s.WithDefaults()
	w := desiredBy(s)
	var stay []model.Port
	for _, p := range v.MadeOtherwise() {
		name := p.Name
		if n, _ := s.Network(p.Network); p.Origin == model.NodeAccess && !n.NodeAccess {
			continue
		}
		if applied := w.ports[name]; applied != nil {
			a := *applied
			if a.Origin == model.Applied {
				a.Origin, a.Owner, a.OfPod = p.Origin, p.Owner, p.OfPod
			}
			if withInterface(a).Equal(withInterface(p)) {
				continue // equal to the port of the document, which replaces it
			}
			return w, refuse(Exists, "port %q of the state: %s created a different port with this name; delete it with `vrouter port delete %s`, or rename the port of the state", name, p.Origin, name)
		}
		w.kept[name] = true
		stay = append(stay, p)
	}
	if len(stay) > 0 {
		own := s.Ports
		s.Ports = slices.Concat(own, stay)
		err := s.Validate()
		if err != nil && v.State().Validate() != nil { // do not refuse a document because of ports that were invalid before
			s.Ports = slices.Concat(own, v.sound(stay))
			_, err = s.Sound()
		}
		if err != nil {
			return w, &Refusal{Exists, fmt.Errorf("together with the ports of other clients: %w", err)}
		}
	}
	return w, nil
}

// ValidOthers returns the valid ports that were not made by Apply, sorted by name.
func (v *View) ValidOthers() []model.Port { return v.sound(v.MadeOtherwise()) }

// sound removes the ports that are invalid in the current state.
func (v *View) sound(ports []model.Port) []model.Port {
	if len(ports) == 0 {
		return nil
	}
	s, err := v.State().Sound()
	if err == nil {
		return ports
	}
	valid := map[string]bool{}
	for _, p := range s.Ports {
		valid[p.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(ports), func(p model.Port) bool { return !valid[p.Name] })
}

// MadeOtherwise returns the ports of other clients than Apply, sorted by name.
func (v *View) MadeOtherwise() []model.Port {
	var all []*model.CompactPort
	for _, p := range v.ports {
		if p.Origin != model.Applied {
			all = append(all, &p.CompactPort)
		}
	}
	return copiesByName(all)
}

// desiredBy returns the content of a document whose defaults are filled in.
func desiredBy(s model.State) desired {
	w := desired{map[string]any{keySettings: s.Settings}, make(map[string]*model.Port, len(s.Ports)), map[string]bool{}}
	for _, n := range s.Nodes {
		w.objects[inNodes+n.Name] = n
	}
	for _, n := range s.Networks {
		w.objects[inNetworks+n.Name] = n
	}
	for _, g := range s.Gateways {
		w.objects[inGateways+g.Name] = g
	}
	for _, p := range s.Policies {
		w.objects[inPolicies+p.Name] = p
	}
	for _, r := range s.Routes {
		w.objects[routeKey(r)] = r
	}
	ports := slices.Clone(s.Ports)
	for i := range ports {
		p := &ports[i]
		if p.Origin == model.Applied {
			p.Owner, p.OfPod = "", nil
		}
		w.ports[p.Name] = p
	}
	return w
}
