package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Apply makes the state what a document says, but for ports that came by other
// doors, which stay. What would contradict these is refused whole, before
// anything is written. A difference that has room in it is one commit; a larger
// one is written in several: what stands in the way is deleted first, then what
// is wanted is put, then the rest is deleted. One that is interrupted is
// completed by another.
func (f *Fleet) Apply(ctx context.Context, s model.State) error {
	for attempt := 0; ; attempt++ {
		err := f.applyOnce(ctx, s)
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) || attempt == mostAttempts {
			return err
		}
		if err := f.catchUp(ctx, attempt); err != nil {
			return err
		}
	}
}

// applyOnce makes a plan of commits and makes them one after another, each on
// the condition that nobody else changed anything since the plan.
func (f *Fleet) applyOnce(ctx context.Context, s model.State) error {
	var plan []store.Commit
	var revision int64
	var refused error
	err := f.Look(ctx, func(v *View) {
		if refused = v.newer(); refused != nil {
			return
		}
		var w wanted
		if w, refused = v.join(s); refused == nil {
			plan = pack(v.towards(w), f.store.MaxKeys()-1) // and the schema
		}
		for i := range plan {
			plan[i].Exact = map[string]int64{keySchema: v.revisions[keySchema]}
		}
		if len(plan) > 0 {
			v.mark(&plan[0])
		}
		revision = v.revision
	})
	if err = errors.Join(err, refused); err != nil {
		return err
	}
	for i, c := range plan {
		if i > 0 && c.Exact[keySchema] == 0 {
			delete(c.Exact, keySchema) // the first one has just written it
		}
		c.Ranges = map[string]int64{inNodes: revision, inNetworks: revision, inGateways: revision, inPolicies: revision, inRoutes: revision, inPorts: revision}
		if revision, err = f.store.Commit(ctx, c); err != nil {
			return err
		}
	}
	f.seen(ctx, revision)
	return nil
}

// step is what belongs into one commit: an object with all its keys.
type step struct {
	put    []entry
	delete []string
}

type entry struct {
	key   string
	value []byte
}

// pack puts steps into as few commits as they fit in, in their order.
func pack(steps []step, most int) (plan []store.Commit) {
	size := 0
	for first, last := 0, 0; last <= len(steps); last++ {
		more := 0
		if last < len(steps) {
			more = len(steps[last].put) + len(steps[last].delete)
		}
		if size > 0 && (last == len(steps) || size+more > most) {
			plan = append(plan, together(steps[first:last], size))
			first, size = last, 0
		}
		size += more
	}
	return plan
}

// together is one commit of steps that have so many keys.
func together(steps []step, keys int) store.Commit {
	c := store.Commit{Put: make(map[string][]byte, keys)}
	for _, s := range steps {
		for _, e := range s.put {
			c.Put[e.key] = e.value
		}
		c.Delete = append(c.Delete, s.delete...)
	}
	return c
}

// towards are the steps from the view to what is wanted.
func (v *View) towards(w wanted) (steps []step) {
	for _, r := range v.Routes() {
		if key := routeKey(r); w.objects[key] == nil {
			steps = append(steps, step{delete: []string{key}})
		}
	}
	steps = append(steps, v.portsAway(w)...)
	for _, place := range []string{keySettings, inPolicies, inNodes, inNetworks, inGateways} {
		steps = append(steps, v.puts(w, place)...)
	}
	var ports []*model.Port
	for _, p := range w.ports {
		if !v.hasPort(p) {
			ports = append(ports, p)
		}
	}
	slices.SortFunc(ports, func(a, b *model.Port) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range ports {
		steps = append(steps, step{put: portEntries(*p)})
	}
	steps = append(steps, v.puts(w, inRoutes)...)
	var last []string
	for key := range v.revisions {
		place, _, _ := strings.Cut(key, "/")
		if slices.Contains([]string{inNodes, inNetworks, inGateways, inPolicies}, place+"/") && w.objects[key] == nil {
			last = append(last, key)
		}
	}
	slices.Sort(last)
	for _, key := range last {
		steps = append(steps, step{delete: []string{key}})
	}
	return steps
}

// portsAway deletes the keys of ports that nobody wants any more: all of one that
// is gone, the former addresses of one that has others now.
func (v *View) portsAway(w wanted) (steps []step) {
	var away []string
	for name, is := range v.ports {
		p := w.ports[name]
		if !w.stay[name] && (p == nil || p.Network != is.Network || p.MAC != is.MAC || !slices.Equal(p.IPs, is.IPs)) {
			away = append(away, name)
		}
	}
	if len(away) == 0 {
		return nil
	}
	slices.Sort(away)
	keep := map[string]bool{}
	for _, p := range w.ports {
		for _, key := range portKeys(*p) {
			keep[key] = true
		}
	}
	for name := range w.stay {
		for _, key := range portKeys(*v.ports[name]) {
			keep[key] = true
		}
	}
	for _, name := range away {
		keys := portKeys(*v.ports[name])
		steps = append(steps, step{delete: slices.DeleteFunc(keys, func(key string) bool { return keep[key] })})
	}
	return steps
}

// portKeys are all keys of a port.
func portKeys(p model.Port) []string { return append(own(p), portKey(p.Network, p.Name)) }

// portEntries are a port's keys with their values.
func portEntries(p model.Port) []entry {
	keys := own(p)
	all := append(make([]entry, 0, len(keys)+1), entry{portKey(p.Network, p.Name), encode(p)}, entry{keys[0], encode(p.Network)})
	name := encode(p.Name)
	for _, key := range keys[1:] {
		all = append(all, entry{key, name})
	}
	return all
}

func (v *View) hasPort(p *model.Port) bool {
	is := v.ports[p.Name]
	return is != nil && v.broken[portKey(p.Network, p.Name)] == nil && is.Equal(*p)
}

// puts are the objects of a place that are not as they are wanted.
func (v *View) puts(w wanted, place string) (steps []step) {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if strings.HasPrefix(key, place) && !v.has(key, w.objects[key]) {
			steps = append(steps, step{put: []entry{{key, encode(w.objects[key])}}})
		}
	}
	return steps
}

// has tells whether an object is as it is wanted.
func (v *View) has(key string, object any) bool {
	if v.revisions[key] == 0 || v.broken[key] != nil {
		return false
	}
	_, name, _ := strings.Cut(key, "/")
	var is any
	switch o := object.(type) {
	case model.Settings:
		is = v.settings
	case model.Node:
		is = v.nodes[name]
	case model.Network:
		is = v.networks[name]
	case model.Gateway:
		is = v.gateways[name]
	case model.Policy:
		is = v.policies[name]
	case model.Route:
		is = v.routes[o.Network][o.Prefix]
	}
	return bytes.Equal(encode(is), encode(object))
}

// wanted is what an applied document stands for.
type wanted struct {
	objects map[string]any         // by key
	ports   map[string]*model.Port // by name
	stay    map[string]bool        // names of ports that came by other doors
}

// join refuses a document that is not valid together with the ports that stay.
func (v *View) join(s model.State) (wanted, error) {
	if err := valid(s); err != nil {
		return wanted{}, err
	}
	s = s.WithDefaults()
	w := wantedBy(s)
	var stay []model.Port
	for _, p := range v.MadeOtherwise() {
		name := p.Name
		if applied := w.ports[name]; applied != nil {
			a := *applied
			a.Origin, a.Owner = p.Origin, p.Owner
			if named(a).Equal(named(p)) {
				continue // the document takes it over
			}
			return w, refuse(Exists, "port %q of the state: a port of that name, but different, was made by %s; delete that one with `vrouter port delete %s`, or rename the state's", name, p.Origin, name)
		}
		w.stay[name] = true
		stay = append(stay, p)
	}
	if len(stay) > 0 {
		s.Ports = slices.Concat(s.Ports, stay)
		if err := s.Validate(); err != nil {
			return w, &Refusal{Exists, fmt.Errorf("together with the ports that were made otherwise: %w", err)}
		}
	}
	return w, nil
}

// MadeOtherwise are the ports that did not come with a document, by name.
func (v *View) MadeOtherwise() (all []model.Port) {
	for _, p := range v.ports {
		if p.Origin != model.Applied {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b model.Port) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// wantedBy is what a document with its defaults stands for.
func wantedBy(s model.State) wanted {
	w := wanted{map[string]any{keySettings: s.Settings}, make(map[string]*model.Port, len(s.Ports)), map[string]bool{}}
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
	for _, p := range s.Ports {
		p.Origin, p.Owner = model.Applied, ""
		w.ports[p.Name] = &p
	}
	return w
}
