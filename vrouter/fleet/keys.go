package fleet

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/go-json-experiment/json"

	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// The keys, under the store's prefix:
//
//	schema                    {"version": 4}
//	id                        random text; written once, with the schema
//	leader                    name of the client that leads; see Lead
//	objects                   nothing; written with each object that is not a port
//	settings                  model.Settings
//	nodes/NODE                model.Node
//	networks/NETWORK          model.Network
//	routes/NETWORK/PREFIX     model.Route
//	gateways/GATEWAY          model.Gateway
//	policies/POLICY           model.Policy
//	alive/NODE                Alive; expires with the node's lease
//	installs/NODE             install
//	hosts/NODE/NETWORK        nothing; the node has, or had, ports in the network
//	switch-ports/NODE/NETWORK/PORT/MAC,ADDRESS…  model.Port
//	switch-ports/NODE/NETWORK/last  position: the addresses that the node last allocated
//	unique/names/PORT                the port's key; names are unique in the fleet
//	unique/addresses/NETWORK/ADDRESS the name of the port that has it; see also model.SlotAddress
//	unique/macs/NETWORK/MAC          the name of the port that has it
//
// A node's role may write alive/NODE, installs/NODE, hosts/NODE/ and switch-ports/NODE/, and
// the keys under unique/; see NodeRole.
//
// Every agent watches the keys before switch-ports/ by one watch, and the ports of each place
// around its node by another; see place. So the keys of ports must sort after the keys of all
// other objects.
//
// Values are JSON, except under unique/. One commit writes or deletes a port with its
// keys under unique/. These keys make the commits of two hosts conflict if both allocate
// the same address. Copies do not have these keys; see store.Unique.
//
// A change of a port depends on all nodes, networks, routes, gateways and policies that
// were used to check it. One comparison with the revision of the key objects covers them.
const (
	keySchema   = "schema"
	keyID       = "id"
	keyLeader   = "leader"
	keyObjects  = "objects"
	keySettings = "settings"
	inNodes     = "nodes/"
	inNetworks  = "networks/"
	inHosts     = "hosts/"
	inPorts     = "switch-ports/"
	inNames     = store.Unique + "names/"
	inAddresses = store.Unique + "addresses/"
	inMACs      = store.Unique + "macs/"
	inRoutes    = "routes/"
	inGateways  = "gateways/"
	inPolicies  = "policies/"
	inAlive     = "alive/"
	inInstalls  = "installs/"
)

// schemaVersion is the only schema version that this program reads and writes.
const schemaVersion = 4

type schema struct {
	Version int `json:"version"`
}

// SchemaError says that another version of vrouter has written the store. This
// version must not use that store.
type SchemaError struct{ Version int }

func (e *SchemaError) Error() string {
	remedy := "upgrade this vrouter"
	if e.Version < schemaVersion {
		remedy = "save the state with the older vrouter (`vrouter state`), delete the store's keys, and apply the state with this one"
	}
	return fmt.Sprintf("use the store: it has schema %d, but this vrouter supports only schema %d; nothing was changed; %s", e.Version, schemaVersion, remedy)
}

// portKey returns the key of a port. The key contains all values that only one port may
// have, so these values cannot change while the key exists; see storedPort.
func portKey(p model.Port) string { return string(appendPortKey(make([]byte, 0, usualKey), &p)) }

// hasKey reports whether key is the key of a port.
func hasKey(p *model.Port, key string) bool {
	return string(appendPortKey(make([]byte, 0, usualKey), p)) == key
}

// usualKey is the length up to which a port's key needs no memory while it is made.
const usualKey = 256

func appendPortKey(b []byte, p *model.Port) []byte {
	for _, part := range []string{inPorts, p.Node, "/", p.Network, "/", p.Name, "/", p.MAC.String()} {
		b = append(b, part...)
	}
	for _, a := range p.Addresses() {
		b = a.AppendTo(append(b, ','))
	}
	return b
}

// portOfKey returns the name of the port that a key contains; "": it is not a port's key.
func portOfKey(key string) string {
	if !isPort(key) || strings.Count(key, "/") != 4 {
		return ""
	}
	key = key[:strings.LastIndexByte(key, '/')]
	return key[strings.LastIndexByte(key, '/')+1:]
}

// objects has the keys of everything but ports.
var objects = store.Span{To: inPorts}

// place is a network on a node. Its key under hosts/ tells all agents that the node has ports
// in the network. The first port of a place is written in one commit with this key. A port
// is used only if its key was created when the key of its place existed, or with it: a port
// that other agents did not watch must not become older than their ports later.
type place struct{ node, network string }

func placeOf(p model.Port) place { return place{p.Node, p.Network} }

func (p place) key() string { return inHosts + p.node + "/" + p.network }

// ports is the prefix of the keys of the place's ports.
func (p place) ports() string { return inPorts + p.node + "/" + p.network + "/" }

// last is the key of the place's position.
func (p place) last() string { return p.ports() + "last" }

// placeOfKey returns the place of a port's key.
func placeOfKey(key string) place {
	node, rest, _ := splitKey(key, inPorts)
	network, _, _ := strings.Cut(rest, "/")
	return place{node, network}
}

func isUnique(key string) bool { return strings.HasPrefix(key, store.Unique) }

func isPort(key string) bool { return strings.HasPrefix(key, inPorts) }

func addressKey(network string, a netip.Addr) string {
	return inAddresses + network + "/" + a.String()
}

func macKey(network string, m model.MAC) string { return inMACs + network + "/" + m.String() }

func routeKey(r model.Route) string { return inRoutes + r.Network + "/" + r.Prefix.String() }

// splitKey splits a key after a prefix into the first part and the rest.
func splitKey(key, prefix string) (first, rest string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, prefix), "/")
}

func encode(value any) []byte {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err)) // all values are plain data
	}
	return text
}

func decode[V any](text []byte) (v V, err error) {
	err = decodeTo(&v, text)
	return v, err
}

func decodeTo(into any, text []byte) error {
	return json.Unmarshal(text, into, json.RejectUnknownMembers(true))
}
