package fleet

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/go-json-experiment/json"

	"windtunnel/vrouter/model"
)

// The keys, under the store's prefix:
//
//	schema                    {"version": 2}
//	settings                  model.Settings
//	nodes/NODE                model.Node
//	networks/NETWORK          model.Network
//	node-ports/NODE/NETWORK/PORT/MAC,ADDRESS…  model.Port
//	ports/NETWORK/PORT        model.Port, in a store of schema 1
//	names/PORT                the port's network; names are unique in the fleet
//	addresses/NETWORK/ADDRESS the name of the port that has it
//	macs/NETWORK/MAC          the name of the port that has it
//	routes/NETWORK/PREFIX     model.Route
//	gateways/GATEWAY          model.Gateway
//	policies/POLICY           model.Policy
//	alive/NODE                Alive; expires with the node's lease
//
// A node's role may write alive/NODE and node-ports/NODE/, and the keys under
// names/, addresses/ and macs/; see NodeRole.
//
// Values are JSON. One commit writes or deletes a port with its keys under names/,
// addresses/ and macs/. These keys make the commits of two hosts conflict if both
// allocate the same address.
const (
	keySchema   = "schema"
	keySettings = "settings"
	inNodes     = "nodes/"
	inNetworks  = "networks/"
	inPorts     = "node-ports/"
	inFlat      = "ports/" // of ports in a store of schema 1
	inNames     = "names/"
	inAddresses = "addresses/"
	inMACs      = "macs/"
	inRoutes    = "routes/"
	inGateways  = "gateways/"
	inPolicies  = "policies/"
	inAlive     = "alive/"
)

// SchemaVersion is the schema version that this program writes. It is also the
// newest version that this program reads.
const SchemaVersion = 2

// flatSchema is the version in which the keys of ports do not contain the node.
const flatSchema = 1

type schema struct {
	Version int `json:"version"`
}

// NewerError says that a newer version of vrouter has written the store. This
// version must not use that store.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("use the store: it has schema %d, this vrouter supports up to %d; nothing was changed; upgrade this vrouter", e.Version, SchemaVersion)
}

// portKey returns the key of a port. The key contains all values that only one port may
// have, so these values cannot change while the key exists; see storedPort.
func portKey(p model.Port) string {
	var b strings.Builder
	b.WriteString(inPorts + p.Node + "/" + p.Network + "/" + p.Name + "/" + p.MAC.String())
	for _, a := range p.IPs {
		b.WriteString(",")
		b.WriteString(a.String())
	}
	return b.String()
}

// portOfKey returns the name of the port that a key contains; "": it is not a port's key.
func portOfKey(key string) string {
	parts := strings.Split(key, "/")
	switch {
	case len(parts) == 5 && strings.HasPrefix(key, inPorts):
		return parts[3]
	case len(parts) == 3 && strings.HasPrefix(key, inFlat):
		return parts[2]
	}
	return ""
}

func isPort(key string) bool {
	return strings.HasPrefix(key, inPorts) || strings.HasPrefix(key, inFlat)
}

func flatKey(p model.Port) string { return inFlat + p.Network + "/" + p.Name }

func addressKey(network string, a netip.Addr) string {
	return inAddresses + network + "/" + a.String()
}

func macKey(network string, m model.MAC) string { return inMACs + network + "/" + m.String() }

func routeKey(r model.Route) string { return inRoutes + r.Network + "/" + r.Prefix.String() }

// splitKey splits a key after a prefix into the network and the rest.
func splitKey(key, prefix string) (network, rest string, ok bool) {
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
	err = json.Unmarshal(text, &v, json.RejectUnknownMembers(true))
	return v, err
}

// isIndex reports whether a key exists only to make commits conflict.
func isIndex(key string) bool {
	return strings.HasPrefix(key, inNames) || strings.HasPrefix(key, inAddresses) || strings.HasPrefix(key, inMACs)
}
