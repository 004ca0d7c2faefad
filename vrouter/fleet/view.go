package fleet

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"unique"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// View is the shared state at one revision.
type View struct {
	revision  int64                  // of all objects that are not ports; without part also of the ports
	part      bool                   // true: ports of some networks are left out
	revisions map[string]int64       // by key, except ports in ports and ignored
	broken    map[string]error       // errors of values that cannot be decoded, by key
	ignored   map[string]*storedPort // ports that conflict with an older port, by key
	added     []*storedPort          // ports for the next call of resolve
	freed     bool                   // true: a used port was removed since the last call of resolve

	schema   schema
	id       string // of the store; "": it is new, or an older version of the agent created it
	settings model.Settings
	nodes    map[string]model.Node
	networks map[string]model.Network
	gateways map[string]model.Gateway
	policies map[string]model.Policy
	routes   map[string]map[netip.Prefix]model.Route // by network
	ports    map[string]*storedPort                  // by name
	members  map[string][]*model.CompactPort         // network → ports, sorted by node and name
	hosts    map[string]map[string]int               // node → network → number of ports
	listed   map[string]map[string]int64             // network → node → revision that created the place's key
	users    map[string]map[string]bool              // policy → ports that name it
	index    index                                   // the ports in ports, by MAC and by address
	blocks   map[string]map[netip.Prefix]int         // network → block of addresses → number of addresses in use
	last     map[place]position
	alive    map[string]Alive
	installs map[string]install
	leaks    map[string][]string // of model.Leaks
}

// Read returns a copy of a store that does not follow the store.
func Read(ctx context.Context, s store.Store) (*View, error) {
	image, err := s.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	return newView(image)
}

// newView decodes an image.
func newView(i store.Image) (*View, error) {
	v := &View{
		revision: i.Revision, revisions: map[string]int64{}, broken: map[string]error{},
		nodes: map[string]model.Node{}, networks: map[string]model.Network{}, gateways: map[string]model.Gateway{}, policies: map[string]model.Policy{},
		routes: map[string]map[netip.Prefix]model.Route{}, ports: map[string]*storedPort{}, members: map[string][]*model.CompactPort{},
		hosts: map[string]map[string]int{}, listed: map[string]map[string]int64{}, users: map[string]map[string]bool{},
		blocks: map[string]map[netip.Prefix]int{}, alive: map[string]Alive{}, installs: map[string]install{},
		ignored: map[string]*storedPort{}, last: map[place]position{},
	}
	v.putAll(i.Entries, &Touched{})
	v.resolve(&Touched{})
	v.leaks = model.Leaks(v.Networks())
	if v.broken[keySchema] != nil {
		return nil, fmt.Errorf("read the store's schema: %w; check that the store belongs to vrouter", v.broken[keySchema])
	}
	return v, v.known()
}

// known returns a *SchemaError if another version of the program has written the store.
func (v *View) known() error {
	if v.revisions[keySchema] != 0 && v.schema.Version != schemaVersion {
		return &SchemaError{v.schema.Version}
	}
	return nil
}

// Revision is the store's revision of this view.
func (v *View) Revision() int64 { return v.revision }

// Settings returns the settings of the fleet.
func (v *View) Settings() model.Settings { return v.settings }

// Touched says which parts of the state have changed.
type Touched struct {
	All      bool            // anything: settings, nodes, policies, gateways
	Networks map[string]bool // networks with changed settings, ports or routes
	Alive    bool            // which nodes are alive
	hosts    []place         // places with changed keys
	leaks    bool            // route targets of networks
}

func (t *Touched) network(name string) {
	if t.Networks == nil {
		t.Networks = map[string]bool{}
	}
	t.Networks[name] = true
}

func (t *Touched) merge(u Touched) {
	t.All, t.Alive, t.leaks = t.All || u.All, t.Alive || u.Alive, t.leaks || u.leaks
	for name := range u.Networks {
		t.network(name)
	}
}

// IsZero reports whether nothing has changed.
func (t Touched) IsZero() bool { return !t.All && !t.Alive && len(t.Networks) == 0 }

// apply updates the view to a later revision.
func (v *View) apply(ch store.Changes) (t Touched) {
	for _, key := range ch.Deleted {
		v.remove(key, &t)
	}
	v.putAll(ch.Put, &t)
	v.resolve(&t)
	if t.leaks {
		v.leaks = model.Leaks(v.Networks())
	}
	v.revision = max(v.revision, ch.Revision)
	return t
}

// putAll updates entries. It decodes the ports first, on all CPUs.
func (v *View) putAll(entries []store.Entry, t *Touched) {
	ports := make([]decodedPort, len(entries))
	places := map[place]*model.Place{}
	for i, e := range entries {
		if p := placeOfKey(e.Key); isPort(e.Key) && e.Key != p.last() {
			if places[p] == nil {
				places[p] = &model.Place{Network: strings.Clone(p.network), Node: strings.Clone(p.node)}
			}
			ports[i].at = places[p]
		}
	}
	onAllCPUs(len(entries), func(i int) {
		if d := &ports[i]; d.at != nil {
			d.port, d.err = decodePort(entries[i], d.at)
		}
	})
	for i, e := range entries {
		v.put(e, ports[i], t)
	}
}

// put updates an entry. If the entry is a port, the argument port is its decoded value. If the
// value is invalid, Problems lists the error, and an object of an operator keeps its former value.
// An invalid port is removed: a reader that starts later does not have the former value, and all
// readers must have the same ports.
func (v *View) put(e store.Entry, port decodedPort, t *Touched) {
	v.revisions[e.Key] = e.Revision
	delete(v.broken, e.Key)
	if err := v.keep(e, port, t); err != nil {
		v.broken[e.Key] = err
	} else if isPort(e.Key) && e.Key != placeOfKey(e.Key).last() {
		delete(v.revisions, e.Key)
	}
}

// revisionOf returns the revision of a key; 0: the copy does not have the key.
func (v *View) revisionOf(key string) int64 {
	if p := v.ports[portOfKey(key)]; p != nil && p.hasKey(key) {
		return p.revision
	}
	if p := v.ignored[key]; p != nil {
		return p.revision
	}
	return v.revisions[key]
}

func (v *View) keep(e store.Entry, port decodedPort, t *Touched) (err error) {
	kind, name, _ := strings.Cut(e.Key, "/")
	switch kind + "/" {
	case keySchema + "/":
		err = decodeInto(&v.schema, e.Value)
	case keyID + "/":
		err = decodeInto(&v.id, e.Value)
	case keySettings + "/":
		t.All = true
		err = decodeInto(&v.settings, e.Value)
	case inNodes:
		t.All = true
		err = decodeEntry(v.nodes, name, e.Value)
	case inNetworks:
		was := v.networks[name]
		t.network(name)
		err = decodeEntry(v.networks, name, e.Value)
		t.leaks = t.leaks || hasTargets(was) || hasTargets(v.networks[name])
	case inGateways:
		t.All = true
		err = decodeEntry(v.gateways, name, e.Value)
	case inPolicies:
		t.All = true
		err = decodeEntry(v.policies, name, e.Value)
	case inAlive:
		t.Alive = true
		err = decodeEntry(v.alive, name, e.Value)
	case inInstalls:
		err = decodeEntry(v.installs, name, e.Value)
	case inHosts:
		v.keepPlace(name, e.Created, t)
	case inRoutes:
		err = v.keepRoute(e, t)
	case inPorts:
		if p := placeOfKey(e.Key); e.Key == p.last() {
			return v.keepPosition(p, e)
		}
		v.dropKey(e.Key, t)
		if err = port.err; err == nil {
			err = v.keepPort(port.port)
		}
	}
	return err // keys of later versions are ignored
}

func decodeInto[V any](into *V, text []byte) error {
	value, err := decode[V](text)
	if err == nil {
		*into = value
	}
	return err
}

func decodeEntry[V any](into map[string]V, name string, text []byte) error {
	value, err := decode[V](text)
	if err == nil {
		into[name] = value
	}
	return err
}

func hasTargets(n model.Network) bool { return len(n.Import) > 0 || len(n.Export) > 0 }

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

// maxPortValue is the maximum length of a port's value in bytes.
const maxPortValue = 8 << 10

// maxPortIPs is the maximum number of addresses of a port.
const maxPortIPs = 2 * model.MaxSources

// keepPlace lists a place: a node and a network of which the node has ports.
func (v *View) keepPlace(name string, created int64, t *Touched) {
	node, network, _ := strings.Cut(name, "/")
	nodes := inner(v.listed, network)
	if was, is := nodes[node]; is && was != created {
		v.forget(place{node, network}, t)
	}
	nodes[node] = created
	t.hosts = append(t.hosts, place{node, network})
}

// forget removes the ports of a place, also those that are not used.
func (v *View) forget(p place, t *Touched) {
	for _, port := range slices.Clone(v.membersOn(p.network, p.node)) {
		v.dropPort(port.Name, t)
		v.freed = true
	}
	is := func(key string) bool { return strings.HasPrefix(key, p.ports()) }
	delete(v.last, p)
	delete(v.revisions, p.last())
	maps.DeleteFunc(v.ignored, func(key string, _ *storedPort) bool { return is(key) })
	for key := range v.broken {
		if is(key) {
			delete(v.broken, key)
			delete(v.revisions, key)
		}
	}
}

// decodedPort is the value of a port's key, or the reason why it cannot be used.
type decodedPort struct {
	at   *model.Place // network and node in the key; nil if the key is not that of a port
	port *storedPort
	err  error
}

// decodePort decodes a port of the store. A node keeps the ports of all its networks, so storedPort
// must fit into 80 bytes, a size of Go's allocator (TestAStoredPortIsSmall).
func decodePort(e store.Entry, at *model.Place) (*storedPort, error) {
	if len(e.Value) > maxPortValue {
		return nil, fmt.Errorf("the value has %d bytes, at most %d are allowed", len(e.Value), maxPortValue)
	}
	p := decoding.Get().(*model.Port)
	defer decoding.Put(p)
	*p = model.Port{}
	if err := decodeTo(p, e.Value); err != nil {
		return nil, err
	}
	if !hasKey(p, e.Key) || portOfKey(e.Key) != p.Name {
		return nil, fmt.Errorf("port %q in network %q on node %q must have the key %s", p.Name, p.Network, p.Node, portKey(*p))
	}
	if len(p.IPs) > maxPortIPs || len(p.Floating) > model.MaxFloating {
		return nil, fmt.Errorf("port %q has %d addresses and %d floating addresses, at most %d and %d are allowed", p.Name, len(p.IPs), len(p.Floating), maxPortIPs, model.MaxFloating)
	}
	p.Origin = intern(p.Origin)
	for i := range p.Policies {
		p.Policies[i] = intern(p.Policies[i])
	}
	return &storedPort{p.Compact(at), e.Created, e.Revision}, nil
}

// decoding keeps Ports that decodePort has decoded and copied, so that the next call can use their memory.
var decoding = sync.Pool{New: func() any { return new(model.Port) }}

// keepPort stores p until the next call of resolve, which adds p to the copy. If the copy has ports of the same network and node,
// p then points to their Place.
func (v *View) keepPort(p *storedPort) error {
	if created, is := v.listed[p.Network][p.Node]; !is || p.created < created {
		return fmt.Errorf("port %q is older than the key %s, or that key is missing", p.Name, place{p.Node, p.Network}.key())
	}
	if v.hosts[p.Node][p.Network] > 0 {
		p.Place = v.membersOn(p.Network, p.Node)[0].Place
	}
	v.added = append(v.added, p)
	return nil
}

// intern returns an equal string that shares its memory with other equal strings.
func intern[S ~string](s S) S { return unique.Make(s).Value() }

// insertPort copies a port, and adds the copy to the view. The port must not conflict with another port of the view.
// The copy saves memory: the decoder allocates temporary objects between the ports, which leave gaps in the heap.
func (v *View) insertPort(decoded *storedPort, t *Touched) {
	p := new(*decoded)
	p.Name, p.IPs = strings.Clone(p.Name), slices.Clone(p.IPs)
	v.ports[p.Name] = p
	v.addMember(&p.CompactPort)
	inner(v.hosts, p.Node)[p.Network]++
	for _, policy := range p.Policies {
		inner(v.users, policy)[p.Name] = true
	}
	v.index.add(p)
	v.count(p, 1)
	t.network(p.Network)
}

// blockBits are the sizes of the blocks of addresses that View counts, in bits.
var blockBits = [...]int{16, 8}

func blockOf(a netip.Addr, bits int) netip.Prefix {
	return netip.PrefixFrom(a, a.BitLen()-bits).Masked()
}

// count adds more to the number of addresses in use of the blocks of a port's addresses.
func (v *View) count(p *storedPort, more int) {
	blocks := inner(v.blocks, p.Network)
	for k := range p.keys() {
		if k.isMAC {
			continue
		}
		for _, bits := range blockBits {
			b := blockOf(k.address, bits)
			if blocks[b] += more; blocks[b] == 0 {
				delete(blocks, b)
			}
		}
	}
}

// inner returns the map of a name; it makes a missing one.
func inner[K comparable, V any](all map[string]map[K]V, name string) map[K]V {
	m := all[name]
	if m == nil {
		m = map[K]V{}
		all[name] = m
	}
	return m
}

// addMember adds a port to its network's list.
func (v *View) addMember(p *model.CompactPort) {
	at, _ := v.memberAt(p)
	v.members[p.Network] = slices.Insert(v.members[p.Network], at, p)
}

// removeMember removes a port from its network's list.
func (v *View) removeMember(p *model.CompactPort) {
	if at, is := v.memberAt(p); is {
		v.members[p.Network] = slices.Delete(v.members[p.Network], at, at+1)
	}
	if len(v.members[p.Network]) == 0 {
		delete(v.members, p.Network)
	}
}

func (v *View) memberAt(p *model.CompactPort) (at int, is bool) {
	return slices.BinarySearchFunc(v.members[p.Network], p, model.ComparePorts)
}

// membersOn returns the ports of a network on a node, sorted by name.
func (v *View) membersOn(network, node string) []*model.CompactPort {
	all := v.members[network]
	first, _ := v.memberAt(&model.CompactPort{Place: &model.Place{Network: network, Node: node}})
	return all[first : first+v.hosts[node][network]]
}

func (v *View) dropPort(name string, t *Touched) {
	p := v.ports[name]
	if p == nil {
		return
	}
	delete(v.ports, name)
	v.removeMember(&p.CompactPort)
	for _, policy := range p.Policies {
		if delete(v.users[policy], name); len(v.users[policy]) == 0 {
			delete(v.users, policy)
		}
	}
	v.index.remove(p)
	v.count(p, -1)
	if v.hosts[p.Node][p.Network]--; v.hosts[p.Node][p.Network] == 0 {
		delete(v.hosts[p.Node], p.Network)
	}
	t.network(p.Network)
}

func (v *View) remove(key string, t *Touched) {
	delete(v.revisions, key)
	delete(v.broken, key)
	kind, name, _ := strings.Cut(key, "/")
	switch kind + "/" {
	case keySettings + "/":
		t.All = true
		v.settings = model.Settings{}
	case inNodes:
		t.All = true
		delete(v.nodes, name)
	case inNetworks:
		t.network(name)
		t.leaks = t.leaks || hasTargets(v.networks[name])
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
	case inInstalls:
		delete(v.installs, name)
	case inRoutes:
		network, text, _ := splitKey(key, inRoutes)
		if prefix, err := netip.ParsePrefix(text); err == nil {
			delete(v.routes[network], prefix)
			t.network(network)
		}
	case inHosts:
		node, network, _ := strings.Cut(name, "/")
		t.hosts = append(t.hosts, place{node, network})
		v.forget(place{node, network}, t)
		if delete(v.listed[network], node); len(v.listed[network]) == 0 {
			delete(v.listed, network)
		}
	case inPorts:
		if p := placeOfKey(key); key == p.last() {
			delete(v.last, p)
			return
		}
		v.dropKey(key, t)
	}
}

// Problems describes the values that cannot be used, with their keys. A node can write very
// many such values, so Problems lists at most model.MaxProblems, and counts the others.
func (v *View) Problems() (all []string) {
	count := len(v.broken) + len(v.ignored)
	for _, key := range smallest(v.broken) {
		remedy := "its former value stays in use; write it again"
		if isPort(key) {
			remedy = "the port is ignored; delete the key"
		}
		all = append(all, fmt.Sprintf("read %q from the store: %v; %s", key, v.broken[key], remedy))
	}
	for _, key := range smallest(v.ignored)[:min(len(v.ignored), model.MaxProblems-len(all))] {
		all = append(all, fmt.Sprintf("read %q from the store: %v; the newer port is ignored; delete one of the two ports", key, v.explain(&v.ignored[key].CompactPort)))
	}
	if len(all) < count {
		all = append(all, fmt.Sprintf("and %d more problems in the store", count-len(all)))
	}
	return all
}

// smallest returns the smallest keys of a map in order, at most model.MaxProblems.
func smallest[V any](all map[string]V) []string {
	keys := slices.Sorted(maps.Keys(all))
	return keys[:min(len(keys), model.MaxProblems)]
}

// State returns the whole state as one document, sorted by name.
func (v *View) State() model.State {
	return model.State{
		Settings: v.settings, Nodes: v.Nodes(), Networks: v.Networks(), Ports: v.Ports(""), Routes: v.Routes(), Gateways: v.Gateways(), Policies: v.Policies(),
	}
}

// Nodes are the fleet's nodes, sorted by name.
func (v *View) Nodes() []model.Node { return sorted(v.nodes) }

// Networks are the fleet's networks, sorted by name.
func (v *View) Networks() []model.Network { return sorted(v.networks) }

// Gateways are the fleet's gateways, sorted by name.
func (v *View) Gateways() []model.Gateway { return sorted(v.gateways) }

// Policies are the fleet's policies, sorted by name.
func (v *View) Policies() []model.Policy { return sorted(v.policies) }

// Ports are the ports of a network, sorted by name; "": of all networks.
func (v *View) Ports(network string) []model.Port {
	from := v.members[network]
	if network == "" {
		for _, p := range v.ports {
			from = append(from, &p.CompactPort)
		}
	}
	return copiesByName(from)
}

// copiesByName returns copies of ports, sorted by name.
func copiesByName(from []*model.CompactPort) []model.Port {
	list := make([]model.Port, 0, len(from))
	for _, p := range from {
		list = append(list, p.Port())
	}
	slices.SortFunc(list, func(a, b model.Port) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Routes are the fleet's static routes, sorted by network and prefix.
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
		return p.Port(), true
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

// around returns the places of which the agent of a node needs the ports: those of the
// networks that have ports on the node, and of the networks whose routes these import. The values are
// the revisions that created the places' keys.
func (v *View) around(node string) map[place]int64 {
	here := map[string]bool{}
	for network, nodes := range v.listed {
		if _, is := nodes[node]; is {
			here[network] = true
		}
	}
	all := map[place]int64{}
	for network := range model.WithLeaks(here, v.leaks) {
		for name, created := range v.listed[network] {
			all[place{name, network}] = created
		}
	}
	return all
}

// isAround reports whether the agent of a node needs the ports of a network on other nodes.
func (v *View) isAround(network, node string) bool {
	if v.listed[network][node] != 0 {
		return true
	}
	for importer, from := range v.leaks {
		if v.listed[importer][node] != 0 && slices.Contains(from, network) {
			return true
		}
	}
	return false
}

// NetworksOf are the networks that have ports on a node, and those whose routes these import.
func (v *View) NetworksOf(node string) map[string]bool {
	return model.WithLeaks(v.hosts[node], v.leaks)
}

// PortsOn is the number of ports on a node.
func (v *View) PortsOn(node string) (count int) {
	for _, n := range v.hosts[node] {
		count += n
	}
	return count
}

// Alive returns the record of a node's agent, while the agent runs.
func (v *View) Alive(node string) (Alive, bool) {
	a, ok := v.alive[node]
	return a, ok
}

// IsNew reports whether no agent has ever written to the store.
func (v *View) IsNew() bool { return v.revisions[keySchema] == 0 }

// ID is the random id of the store, which it keeps for ever; "": it has none.
func (v *View) ID() string { return v.id }

// IsEmpty reports whether the state has no nodes, networks and ports.
func (v *View) IsEmpty() bool { return len(v.nodes) == 0 && len(v.networks) == 0 && len(v.ports) == 0 }

// PortAt is the port that has an address in a network.
func (v *View) PortAt(network string, a netip.Addr) (model.Port, bool) {
	return v.Port(v.index.get(addressOf(network, a)).name())
}
