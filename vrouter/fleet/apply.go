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
	put    map[string][]byte
	delete []string
}

// pack puts steps into as few commits as they fit in, in their order.
func pack(steps []step, most int) (plan []store.Commit) {
	var c store.Commit
	for _, s := range steps {
		if len(c.Put)+len(c.Delete)+len(s.put)+len(s.delete) > most {
			plan = append(plan, c)
			c = store.Commit{}
		}
		if c.Put == nil {
			c.Put = map[string][]byte{}
		}
		maps.Copy(c.Put, s.put)
		c.Delete = append(c.Delete, s.delete...)
	}
	if len(c.Put)+len(c.Delete) > 0 {
		plan = append(plan, c)
	}
	return plan
}

// towards are the steps from the view to what is wanted.
func (v *View) towards(w wanted) (steps []step) {
	var last []step
	for _, network := range slices.Sorted(maps.Keys(v.routes)) {
		for _, r := range v.routesOf(network) {
			if w.put[routeKey(r)] == nil {
				steps = append(steps, step{delete: []string{routeKey(r)}})
			}
		}
	}
	for _, name := range sortedNames(v.ports) {
		if s, has := v.portAway(*v.ports[name], w); has {
			steps = append(steps, s)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v.revisions)) {
		place, _, _ := strings.Cut(key, "/")
		if slices.Contains([]string{inNodes, inNetworks, inGateways, inPolicies}, place+"/") && w.put[key] == nil {
			last = append(last, step{delete: []string{key}})
		}
	}
	for _, place := range []string{keySettings, inPolicies, inNodes, inNetworks, inGateways, inPorts, inRoutes} {
		steps = append(steps, v.puts(w, place)...)
	}
	return append(steps, last...)
}

// portAway deletes the keys of a port that nobody wants any more: all of one that
// is gone, the former addresses of one that has others now.
func (v *View) portAway(p model.Port, w wanted) (s step, has bool) {
	for _, key := range append([]string{portKey(p.Network, p.Name)}, own(p)...) {
		if !w.keep[key] {
			s.delete = append(s.delete, key)
		}
	}
	return s, len(s.delete) > 0
}

// puts are the objects of a place that are not as they are wanted.
func (v *View) puts(w wanted, place string) (steps []step) {
	for _, key := range slices.Sorted(maps.Keys(w.put)) {
		if !strings.HasPrefix(key, place) || v.has(key, w.put[key]) {
			continue
		}
		s := step{put: map[string][]byte{key: encode(w.put[key])}}
		if p, is := w.put[key].(model.Port); is {
			keys := own(p)
			s.put[keys[0]] = encode(p.Network)
			for _, k := range keys[1:] {
				s.put[k] = encode(p.Name)
			}
		}
		steps = append(steps, s)
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
	case model.Port:
		is = *v.ports[o.Name]
	}
	return bytes.Equal(encode(is), encode(object))
}

// wanted are the keys that an applied document stands for.
type wanted struct {
	put  map[string]any
	keep map[string]bool // of ports that came by other doors, and all that applied ones have
}

// join refuses a document that is not valid together with the ports that stay.
func (v *View) join(s model.State) (wanted, error) {
	if err := valid(s); err != nil {
		return wanted{}, err
	}
	s = s.WithDefaults()
	w := wanted{put: map[string]any{keySettings: s.Settings}, keep: map[string]bool{}}
	all := s
	all.Ports = slices.Clone(s.Ports)
	applied := map[string]model.Port{}
	for _, p := range s.Ports {
		applied[p.Name] = p
	}
	for _, name := range sortedNames(v.ports) {
		p := v.ports[name]
		if p.Origin == model.Applied {
			continue
		}
		a, same := applied[name]
		a.Origin, a.Owner = p.Origin, p.Owner
		if same && named(a).Equal(named(*p)) {
			continue // the document takes it over
		} else if same {
			return w, refuse(Exists, "port %q of the state: a port of that name, but different, was made by %s; delete that one with `vrouter port delete %s`, or rename the state's", name, p.Origin, name)
		}
		w.keep[portKey(p.Network, name)] = true
		for _, key := range own(*p) {
			w.keep[key] = true
		}
		all.Ports = append(all.Ports, *p)
	}
	if len(w.keep) > 0 {
		if err := all.Validate(); err != nil {
			return w, &Refusal{Exists, fmt.Errorf("together with the ports that were made otherwise: %w", err)}
		}
	}
	w.objects(s)
	return w, nil
}

func (w wanted) objects(s model.State) {
	for _, n := range s.Nodes {
		w.put[inNodes+n.Name] = n
	}
	for _, n := range s.Networks {
		w.put[inNetworks+n.Name] = n
	}
	for _, g := range s.Gateways {
		w.put[inGateways+g.Name] = g
	}
	for _, p := range s.Policies {
		w.put[inPolicies+p.Name] = p
	}
	for _, r := range s.Routes {
		w.put[routeKey(r)] = r
	}
	for _, p := range s.Ports {
		p.Origin, p.Owner = model.Applied, ""
		w.put[portKey(p.Network, p.Name)] = p
		w.keep[portKey(p.Network, p.Name)] = true
		for _, key := range own(p) {
			w.keep[key] = true
		}
	}
}

func sortedNames(all map[string]*model.Port) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
