package agent

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// desired is what the agent works to: a fleet's state as it was applied, and
// the ports that were added on this node beside it. The two are kept apart: a
// new state replaces the first and leaves the second, as far as they do not
// contradict each other.
type desired struct {
	node    string
	applied model.State  // with defaults filled in
	local   []model.Port // sorted by name
	ids     *fib.IDs
	whole   model.State // applied and local as one
}

// newDesired joins the two, or says how they contradict each other.
func newDesired(node string, applied model.State, local []model.Port, ids *fib.IDs) (*desired, error) {
	applied = applied.WithDefaults()
	local = slices.Clone(local)
	slices.SortFunc(local, func(a, b model.Port) int { return strings.Compare(a.Name, b.Name) })
	local, err := apart(applied, local)
	if err != nil {
		return nil, err
	}
	d := &desired{node: node, applied: applied, local: local, ids: ids, whole: applied}
	d.whole.Ports = slices.Concat(applied.Ports, local)
	return d, nil
}

// apart drops local ports that the state has taken over as they are, and
// refuses those that contradict it, naming both.
func apart(applied model.State, local []model.Port) ([]model.Port, error) {
	if len(local) == 0 {
		return nil, nil
	}
	var wrong []error
	taken := takenBy(local)
	for _, p := range applied.Ports {
		l, same := taken.names[p.Name]
		if same && reflect.DeepEqual(normal(l), normal(p)) {
			taken.drop(l)
			continue
		}
		if same {
			wrong = append(wrong, fmt.Errorf("port %q of the state: a port of that name, but different, was added on this node; delete that one with `vrouter port delete %s`, or rename the state's", p.Name, p.Name))
		}
		wrong = append(wrong, taken.contradictions(p)...)
	}
	var kept []model.Port
	for _, l := range local {
		if _, ok := taken.names[l.Name]; !ok {
			continue
		}
		kept = append(kept, l)
		has := slices.ContainsFunc(applied.Networks, func(n model.Network) bool { return n.Name == l.Network })
		if !has {
			wrong = append(wrong, fmt.Errorf("port %q, added on this node, is in network %q, which the state does not have; delete the port with `vrouter port delete %s`, or keep the network", l.Name, l.Network, l.Name))
		}
	}
	return kept, errors.Join(wrong...)
}

// taken is what local ports have: name → port; network and MAC or address →
// name.
type taken struct {
	names    map[string]model.Port
	stations map[station]string
}

// station is a MAC or an address in a network.
type station struct{ network, address string }

func takenBy(local []model.Port) taken {
	t := taken{map[string]model.Port{}, map[station]string{}}
	for _, l := range local {
		t.names[l.Name] = l
		for _, s := range stations(l) {
			t.stations[s] = l.Name
		}
	}
	return t
}

func stations(p model.Port) []station {
	all := []station{{p.Network, p.MAC.String()}}
	for _, ip := range p.IPs {
		all = append(all, station{p.Network, ip.String()})
	}
	return all
}

func (t taken) drop(p model.Port) {
	delete(t.names, p.Name)
	for _, s := range stations(p) {
		delete(t.stations, s)
	}
}

// contradictions between a state's port and local ones of other names.
func (t taken) contradictions(p model.Port) []error {
	var wrong []error
	for _, s := range stations(p) {
		if owner, ok := t.stations[s]; ok && owner != p.Name {
			wrong = append(wrong, fmt.Errorf("port %q of the state has %s, which is port %q's, added on this node; give it another, or delete that port with `vrouter port delete %s`", p.Name, s.address, owner, owner))
		}
	}
	return wrong
}

// normal makes ports comparable: an empty list is as good as none.
func normal(p model.Port) model.Port {
	if len(p.IPs) == 0 {
		p.IPs = nil
	}
	if len(p.Policies) == 0 {
		p.Policies = nil
	}
	if len(p.AllowSources) == 0 {
		p.AllowSources = nil
	}
	if p.Attach.Netns != "" && p.Attach.Interface == "" {
		p.Attach.Interface = model.DefaultInterface
	}
	return p
}

// hasNode tells whether the state has this node. An agent to which nothing was
// applied yet has none to look for.
func (d *desired) hasNode() bool {
	_, ok := d.self()
	return ok
}

func (d *desired) self() (model.Node, bool) {
	i := slices.IndexFunc(d.whole.Nodes, func(n model.Node) bool { return n.Name == d.node })
	if i < 0 {
		return model.Node{}, false
	}
	return d.whole.Nodes[i], true
}

// isEmpty tells whether nothing was applied yet.
func (d *desired) isEmpty() bool {
	return len(d.applied.Nodes) == 0 && len(d.applied.Networks) == 0 && len(d.whole.Ports) == 0
}

// ports are this node's.
func (d *desired) ports() []model.Port {
	var own []model.Port
	for _, p := range d.whole.Ports {
		if p.Node == d.node {
			own = append(own, p)
		}
	}
	return own
}

func (d *desired) network(name string) (model.Network, bool) {
	i := slices.IndexFunc(d.whole.Networks, func(n model.Network) bool { return n.Name == name })
	if i < 0 {
		return model.Network{}, false
	}
	return d.whole.Networks[i], true
}

// localPort finds a port that was added on this node.
func (d *desired) localPort(name string) (model.Port, bool) {
	i := slices.IndexFunc(d.local, func(p model.Port) bool { return p.Name == name })
	if i < 0 {
		return model.Port{}, false
	}
	return d.local[i], true
}

// port finds any port.
func (d *desired) port(name string) (model.Port, bool) {
	i := slices.IndexFunc(d.whole.Ports, func(p model.Port) bool { return p.Name == name })
	if i < 0 {
		return model.Port{}, false
	}
	return d.whole.Ports[i], true
}

// with is the desired state with one more port on this node.
func (d *desired) with(p model.Port) (*desired, error) {
	return newDesired(d.node, d.applied, append(slices.Clone(d.local), p), d.ids)
}
