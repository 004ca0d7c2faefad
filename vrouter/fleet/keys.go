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
//	schema                    {"version": 1}
//	settings                  model.Settings
//	nodes/NODE                model.Node
//	networks/NETWORK          model.Network
//	ports/NETWORK/PORT        model.Port
//	names/PORT                the port's network: names are the fleet's
//	addresses/NETWORK/ADDRESS the port that has it
//	macs/NETWORK/MAC          the port that has it
//	routes/NETWORK/PREFIX     model.Route
//	gateways/GATEWAY          model.Gateway
//	policies/POLICY           model.Policy
//	alive/NODE                Alive, which ends with the node's lease
//
// Values are JSON. A port's other keys are written and deleted with it, in one
// commit; they are what makes two hosts that want the same address collide.
const (
	keySchema   = "schema"
	keySettings = "settings"
	inNodes     = "nodes/"
	inNetworks  = "networks/"
	inPorts     = "ports/"
	inNames     = "names/"
	inAddresses = "addresses/"
	inMACs      = "macs/"
	inRoutes    = "routes/"
	inGateways  = "gateways/"
	inPolicies  = "policies/"
	inAlive     = "alive/"
)

// SchemaVersion is what this program writes, and the newest that it reads.
const SchemaVersion = 1

type schema struct {
	Version int `json:"version"`
}

// NewerError is why a store may not be used: a newer program wrote it.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("the store has schema %d, this vrouter knows up to %d: upgrade this one; nothing was changed", e.Version, SchemaVersion)
}

func portKey(network, port string) string { return inPorts + network + "/" + port }

func addressKey(network string, a netip.Addr) string {
	return inAddresses + network + "/" + a.String()
}

func macKey(network string, m model.MAC) string { return inMACs + network + "/" + m.String() }

func routeKey(r model.Route) string { return inRoutes + r.Network + "/" + r.Prefix.String() }

// splitKey parts a key under a place into a network and the rest.
func splitKey(key, place string) (network, rest string, ok bool) {
	return strings.Cut(strings.TrimPrefix(key, place), "/")
}

func encode(value any) []byte {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", value, err)) // they are plain values
	}
	return text
}

func decode[V any](text []byte) (v V, err error) {
	err = json.Unmarshal(text, &v, json.RejectUnknownMembers(true))
	return v, err
}

// isIndex tells whether a key only serves to make ports collide.
func isIndex(key string) bool {
	return strings.HasPrefix(key, inNames) || strings.HasPrefix(key, inAddresses) || strings.HasPrefix(key, inMACs)
}
