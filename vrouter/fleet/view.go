package fleet

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// View is the shared state as of one revision.
type View struct {
	revision  int64
	revisions map[string]int64 // of every object's key
	broken    map[string]error // keys whose values cannot be read

	schema   schema
	settings model.Settings
	nodes    map[string]model.Node
	networks map[string]model.Network
	gateways map[string]model.Gateway
	policies map[string]model.Policy
	routes   map[string]map[netip.Prefix]model.Route // by network
	ports    map[string]*model.Port                  // by name
	members  map[string][]*model.Port                // network → its ports, in order of names
	hosts    map[string]map[string]int               // node → network → how many ports
	owners   map[string]map[netip.Addr]string        // network → address → port
	macs     map[string]map[model.MAC]string         // network → MAC → port
	alive    map[string]Alive
}

// newView reads an image.
func newView(i store.Image) (*View, error) {
	v := &View{
		revision: i.Revision, revisions: make(map[string]int64, len(i.Entries)), broken: map[string]error{},
		nodes: map[string]model.Node{}, networks: map[string]model.Network{}, gateways: map[string]model.Gateway{}, policies: map[string]model.Policy{},
		routes: map[string]map[netip.Prefix]model.Route{}, ports: map[string]*model.Port{}, members: map[string][]*model.Port{},
		hosts: map[string]map[string]int{}, owners: map[string]map[netip.Addr]string{}, macs: map[string]map[model.MAC]string{}, alive: map[string]Alive{},
	}
	for _, e := range i.Entries {
		v.put(e, &Touched{})
	}
	if v.broken[keySchema] != nil {
		return nil, fmt.Errorf("the store's schema cannot be read: %w; is it a vrouter's?", v.broken[keySchema])
	}
	return v, v.newer()
}

// newer is a *NewerError of a store that a newer program writes.
func (v *View) newer() error {
	if v.schema.Version > SchemaVersion {
		return &NewerError{v.schema.Version}
	}
	return nil
}

// Revision is the store's, of which the view is.
func (v *View) Revision() int64 { return v.revision }

// Touched is what changes may concern.
type Touched struct {
	All      bool            // anything: settings, nodes, policies, gateways
	Networks map[string]bool // with their ports and routes
	Alive    bool            // which nodes are there
}

func (t *Touched) network(name string) {
	if t.Networks == nil {
		t.Networks = map[string]bool{}
	}
	t.Networks[name] = true
}

func (t *Touched) merge(u Touched) {
	t.All, t.Alive = t.All || u.All, t.Alive || u.Alive
	for name := range u.Networks {
		t.network(name)
	}
}

// IsZero tells whether nothing was touched.
func (t Touched) IsZero() bool { return !t.All && !t.Alive && len(t.Networks) == 0 }

// apply brings the view to a later revision.
func (v *View) apply(ch store.Changes) (t Touched) {
	for _, key := range ch.Deleted {
		v.remove(key, &t)
	}
	for _, e := range ch.Put {
		v.put(e, &t)
	}
	v.revision = max(v.revision, ch.Revision)
	return t
}

// put takes an entry over. One that cannot be read leaves what was there, and is
// told of by Problems.
func (v *View) put(e store.Entry, t *Touched) {
	if isIndex(e.Key) {
		return // the ports themselves say it
	}
	v.revisions[e.Key] = e.Revision
	delete(v.broken, e.Key)
	err := v.keep(e, t)
	if err != nil {
		v.broken[e.Key] = err
	}
}

func (v *View) keep(e store.Entry, t *Touched) (err error) {
	place, name, _ := strings.Cut(e.Key, "/")
	switch place + "/" {
	case keySchema + "/":
		err = keepIn(&v.schema, e.Value)
	case keySettings + "/":
		t.All = true
		err = keepIn(&v.settings, e.Value)
	case inNodes:
		t.All = true
		err = keepAs(v.nodes, name, e.Value)
	case inNetworks:
		t.network(name)
		err = keepAs(v.networks, name, e.Value)
	case inGateways:
		t.All = true
		err = keepAs(v.gateways, name, e.Value)
	case inPolicies:
		t.All = true
		err = keepAs(v.policies, name, e.Value)
	case inAlive:
		t.Alive = true
		err = keepAs(v.alive, name, e.Value)
	case inRoutes:
		err = v.keepRoute(e, t)
	case inPorts:
		err = v.keepPort(e, t)
	}
	return err // other keys serve conditions, or are a later version's
}

func keepIn[V any](into *V, text []byte) error {
	value, err := decode[V](text)
	if err == nil {
		*into = value
	}
	return err
}

func keepAs[V any](into map[string]V, name string, text []byte) error {
	value, err := decode[V](text)
	if err == nil {
		into[name] = value
	}
	return err
}

func (v *View) keepRoute(e store.Entry, t *Touched) error {
	r, err := decode[model.Route](e.Value)
	if err != nil {
		return err
	}
	if v.routes[r.Network] == nil {
		v.routes[r.Network] = map[netip.Prefix]model.Route{}
	}
	v.routes[r.Network][r.Prefix] = r
	t.network(r.Network)
	return nil
}

func (v *View) keepPort(e store.Entry, t *Touched) error {
	p, err := decode[model.Port](e.Value)
	if err != nil {
		return err
	}
	v.dropPort(p.Name, t)
	v.ports[p.Name] = &p
	v.enter(&p)
	inner(v.hosts, p.Node)[p.Network]++
	inner(v.macs, p.Network)[p.MAC] = p.Name
	for _, a := range p.IPs {
		inner(v.owners, p.Network)[a] = p.Name
	}
	t.network(p.Network)
	return nil
}

// inner is a map's map of a name.
func inner[K comparable, V any](all map[string]map[K]V, name string) map[K]V {
	m := all[name]
	if m == nil {
		m = map[K]V{}
		all[name] = m
	}
	return m
}

// enter makes a port a member of its network.
func (v *View) enter(p *model.Port) {
	at, _ := v.memberAt(p)
	v.members[p.Network] = slices.Insert(v.members[p.Network], at, p)
}

// expel takes a port out of its network.
func (v *View) expel(p *model.Port) {
	if at, is := v.memberAt(p); is {
		v.members[p.Network] = slices.Delete(v.members[p.Network], at, at+1)
	}
	if len(v.members[p.Network]) == 0 {
		delete(v.members, p.Network)
	}
}

func (v *View) memberAt(p *model.Port) (at int, is bool) {
	return slices.BinarySearchFunc(v.members[p.Network], p.Name, func(o *model.Port, name string) int { return strings.Compare(o.Name, name) })
}

func (v *View) dropPort(name string, t *Touched) {
	p := v.ports[name]
	if p == nil {
		return
	}
	delete(v.ports, name)
	v.expel(p)
	// What another port has got in the same commit is that one's.
	if v.macs[p.Network][p.MAC] == name {
		delete(v.macs[p.Network], p.MAC)
	}
	for _, a := range p.IPs {
		if v.owners[p.Network][a] == name {
			delete(v.owners[p.Network], a)
		}
	}
	if v.hosts[p.Node][p.Network]--; v.hosts[p.Node][p.Network] == 0 {
		delete(v.hosts[p.Node], p.Network)
	}
	t.network(p.Network)
}

func (v *View) remove(key string, t *Touched) {
	delete(v.revisions, key)
	delete(v.broken, key)
	place, name, _ := strings.Cut(key, "/")
	switch place + "/" {
	case keySettings + "/":
		t.All = true
		v.settings = model.Settings{}
	case inNodes:
		t.All = true
		delete(v.nodes, name)
	case inNetworks:
		t.network(name)
		delete(v.networks, name)
	case inGateways:
		t.All = true
		delete(v.gateways, name)
	case inPolicies:
		t.All = true
		delete(v.policies, name)
	case inAlive:
		t.Alive = true
		delete(v.alive, name)
	case inRoutes:
		network, text, _ := splitKey(key, inRoutes)
		if prefix, err := netip.ParsePrefix(text); err == nil {
			delete(v.routes[network], prefix)
			t.network(network)
		}
	case inPorts:
		network, port, _ := splitKey(key, inPorts)
		if p := v.ports[port]; p != nil && p.Network == network { // else it moved, and is there already
			v.dropPort(port, t)
		}
	}
}

// Problems are what cannot be read, each with its key.
func (v *View) Problems() (all []string) {
	for _, key := range slices.Sorted(maps.Keys(v.broken)) {
		all = append(all, fmt.Sprintf("the store's %s cannot be read: %v; it counts as it was before, write it anew", key, v.broken[key]))
	}
	return all
}

// State is all of it, as one document, in order of names.
func (v *View) State() model.State {
	return model.State{
		Settings: v.settings, Nodes: v.Nodes(), Networks: v.Networks(), Ports: v.Ports(""), Routes: v.Routes(), Gateways: v.Gateways(), Policies: v.Policies(),
	}
}

// Nodes are the fleet's, by name. So are the others.
func (v *View) Nodes() []model.Node { return sorted(v.nodes) }

// Networks are the fleet's networks.
func (v *View) Networks() []model.Network { return sorted(v.networks) }

// Gateways are the fleet's gateways.
func (v *View) Gateways() []model.Gateway { return sorted(v.gateways) }

// Policies are the fleet's policies.
func (v *View) Policies() []model.Policy { return sorted(v.policies) }

// Ports are those of a network, or all where none is named.
func (v *View) Ports(network string) []model.Port {
	from := v.members[network]
	if network == "" {
		from = slices.SortedFunc(maps.Values(v.ports), func(a, b *model.Port) int { return strings.Compare(a.Name, b.Name) })
	}
	list := make([]model.Port, 0, len(from))
	for _, p := range from {
		list = append(list, *p)
	}
	return list
}

// Routes are the fleet's static routes.
func (v *View) Routes() []model.Route {
	list := []model.Route{}
	for _, name := range slices.Sorted(maps.Keys(v.routes)) {
		list = append(list, v.routesOf(name)...)
	}
	return list
}

func sorted[V any](all map[string]V) []V {
	list := make([]V, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, all[name])
	}
	return list
}

func (v *View) routesOf(network string) []model.Route {
	list := slices.Collect(maps.Values(v.routes[network]))
	slices.SortFunc(list, func(a, b model.Route) int { return a.Prefix.Compare(b.Prefix) })
	return list
}

// Port finds a port.
func (v *View) Port(name string) (model.Port, bool) {
	if p := v.ports[name]; p != nil {
		return *p, true
	}
	return model.Port{}, false
}

// Network finds a network.
func (v *View) Network(name string) (model.Network, bool) {
	n, ok := v.networks[name]
	return n, ok
}

// Node finds a node.
func (v *View) Node(name string) (model.Node, bool) {
	n, ok := v.nodes[name]
	return n, ok
}

// NetworksOf are those that have ports on a node.
func (v *View) NetworksOf(node string) map[string]bool {
	all := make(map[string]bool, len(v.hosts[node]))
	for name := range v.hosts[node] {
		all[name] = true
	}
	return all
}

// PortsOn is how many ports a node has.
func (v *View) PortsOn(node string) (count int) {
	for _, n := range v.hosts[node] {
		count += n
	}
	return count
}

// Alive is what a node's agent says of itself, while it is there.
func (v *View) Alive(node string) (Alive, bool) {
	a, ok := v.alive[node]
	return a, ok
}

// IsEmpty tells whether nothing was ever applied.
func (v *View) IsEmpty() bool { return len(v.nodes) == 0 && len(v.networks) == 0 && len(v.ports) == 0 }

// PortAt is the port that has an address in a network.
func (v *View) PortAt(network string, a netip.Addr) (model.Port, bool) {
	return v.Port(v.owners[network][a])
}
