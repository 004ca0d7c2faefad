// Package api is the API of a vrouter agent: HTTP and JSON on a unix socket that
// only root can open.
//
//	GET    /v1/status              Status
//	GET    /v1/state               model.State; with ?known=true without reading the store
//	PUT    /v1/state               model.State → Applied      an invalid state changes nothing
//	GET    /v1/ports?network=&node=&address=&origin=   []model.Port of the whole fleet
//	POST   /v1/ports               model.PortRequest → Port
//	GET    /v1/ports/{name}        → Port
//	PATCH  /v1/ports/{name}        PortChange → Port
//	DELETE /v1/ports/{name}        → Applied
//	GET    /v1/networks            []model.Network
//	POST   /v1/networks            model.Network → model.Network   id and VNI 0: allocated
//	PATCH  /v1/networks/{name}     fields of a model.Network, as a JSON merge patch (RFC 7396) → model.Network
//	GET    /v1/nodes               []Node
//	GET    /v1/policies|gateways|routes            []model.Policy, …
//	PUT    /v1/nodes|policies|gateways/{name}      model.Node, … → {}
//	DELETE /v1/networks|nodes|policies|gateways/{name}   → {}; nodes: ?ports=true deletes their ports too
//	PUT    /v1/routes              model.Route → {}
//	DELETE /v1/routes?network=N&prefix=P           → {}
//	PUT    /v1/bgp                 BGPRequest → {}
//	GET    /v1/bgp/neighbors       []bgp.Neighbor
//	GET    /v1/bgp/rib             []bgp.Verdict; with ?announced=true the paths that the node announces
//	GET    /v1/vif|nh|rt|bridge|mpls|vxlan|flow   ?vrf=N      rows of package inspect
//	GET    /v1/dropstats           []inspect.Drop
//	GET    /v1/droplog             []inspect.DropEvent, oldest first
//	GET    /v1/vrfstats            []inspect.VRFStats
//	GET    /v1/fallbackstats       []inspect.Fallback
//	GET    /v1/service             []service.Service
//	POST   /v1/trace               TraceRequest → inspect.Trace
//	GET    /v1/doctor              []Finding
//	POST   /v1/shutdown            ShutdownRequest → {}
//	GET    /metrics                Prometheus text
//
// An error is {"error": "…"} with status 400 (bad input), 403 (the node's
// role in the store does not allow the request), 404 (no such object), 409
// (in use, or exists), 503 (the store is unreachable), 507 (a table is full, or no
// address is free), 500 (other).
package api

import (
	"net/netip"
	"time"

	"windtunnel/vrouter/model"
)

// Status is the state of the agent.
type Status struct {
	Node     string    `json:"node"`
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Synced   time.Time `json:"synced"`  // last time maps and links equalled the desired state
	InSync   bool      `json:"in_sync"` // they do now, and the state is the store's
	Problems []Problem `json:"problems,omitempty"`
	Repairs  uint64    `json:"repairs"` // differences repaired since the agent started
	Routes   int       `json:"routes"`
	Ports    int       `json:"ports"` // of this node
	Fabric   []Fabric  `json:"fabric"`
	Store    Store     `json:"store"`
}

// Problem is an object that is not in force, or a warning.
type Problem struct {
	Kind  string    `json:"kind,omitempty"`  // port, network, route, tunnel, device or node; empty: a warning
	Name  string    `json:"name,omitempty"`  // of the object; route: NETWORK PREFIX; tunnel: a node, or gateway NAME; node: a part of this node
	Text  string    `json:"text"`            // reason, with the remedy
	Tries int       `json:"tries,omitempty"` // failed attempts in a row
	Retry time.Time `json:"retry,omitzero"`  // next attempt; zero: after a change, or at the next check for drift
}

// Store is the state of the store.
type Store struct {
	Address  string    `json:"address"`
	Revision int64     `json:"revision"`            // revision of the agent's copy of the state
	Heard    time.Time `json:"heard"`               // when the store last answered
	Problem  string    `json:"problem,omitempty"`   // why the store does not answer
	WentBack string    `json:"went_back,omitempty"` // when and how the store last went back to an older revision
	Refused  string    `json:"refused,omitempty"`   // why the agent does not use the store's state
	Waiting  []string  `json:"waiting,omitempty"`   // ports to delete when the store answers
}

// Fabric is an underlay device.
type Fabric struct {
	Device string `json:"device"`
	Mode   string `json:"mode"`          // "xdp+tcx", "tcx", "xdp+clsact", "clsact"
	Why    string `json:"why,omitempty"` // why not XDP
	MTU    int    `json:"mtu"`
}

// Applied is the result of a change: how many table entries it updated and
// deleted.
type Applied struct {
	Updated  int           `json:"updated"`
	Deleted  int           `json:"deleted"`
	Took     time.Duration `json:"took_ns"`
	Warnings []string      `json:"warnings,omitempty"`
}

// Port is a port with the settings of its workload.
type Port struct {
	model.Port
	Device   string         `json:"device"` // on the node
	MTU      int            `json:"mtu"`
	Gateways []netip.Addr   `json:"gateways,omitempty"`
	Prefixes []netip.Prefix `json:"prefixes,omitempty"` // the port's addresses with the prefix lengths of their subnets
	Took     time.Duration  `json:"took_ns"`            // from the request until the port forwards
}

// TraceRequest describes a packet from a port.
type TraceRequest struct {
	From            string     `json:"from"` // port
	To              netip.Addr `json:"to"`
	Protocol        string     `json:"protocol"` // icmp (default), tcp, udp
	SourcePort      uint16     `json:"source_port,omitempty"`
	DestinationPort uint16     `json:"destination_port,omitempty"`
	Length          int        `json:"length,omitempty"` // of the IP packet; default the smallest
}

// Levels of a finding.
const (
	LevelOK      = "ok"
	LevelNote    = "note"
	LevelProblem = "problem"
)

// Finding of the doctor.
type Finding struct {
	Topic  string `json:"topic"` // kernel, attach, direct, mtu, offload, pins, host, state
	Level  string `json:"level"` // ok, note, problem
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// ShutdownRequest stops the agent.
type ShutdownRequest struct {
	Node      string `json:"node,omitempty"`       // refuse if the agent runs another node; empty: stop any agent
	Remove    bool   `json:"remove"`               // delete programs, maps, devices and state too
	WithStore bool   `json:"with_store,omitempty"` // delete the embedded store even if other nodes use it
}
