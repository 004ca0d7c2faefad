// Package api is how programs speak to a vrouter agent: HTTP and JSON on a unix
// socket that root alone may open.
//
//	GET    /v1/status              Status
//	GET    /v1/state               model.State
//	PUT    /v1/state               model.State → Applied      refused whole when invalid
//	GET    /v1/ports?network=&node=&address=&origin=   []model.Port of the whole fleet
//	POST   /v1/ports               PortRequest → Port
//	GET    /v1/ports/{name}        → Port
//	PATCH  /v1/ports/{name}        PortChange → Port
//	DELETE /v1/ports/{name}        → Applied
//	GET    /v1/networks            []model.Network
//	POST   /v1/networks            model.Network → model.Network   id and VNI are chosen
//	PUT    /v1/networks/{name}     model.Network → model.Network
//	GET    /v1/nodes               []Node
//	GET    /v1/policies|gateways|routes            []model.Policy, …
//	PUT    /v1/nodes|policies|gateways/{name}      model.Node, … → {}
//	DELETE /v1/networks|nodes|policies|gateways/{name}   → {}; nodes: ?ports=true deletes theirs too
//	PUT    /v1/routes              model.Route → {}
//	DELETE /v1/routes?network=N&prefix=P           → {}
//	GET    /v1/vif|nh|rt|bridge|mpls|vxlan|flow   ?vrf=N      rows of package inspect
//	GET    /v1/dropstats           []inspect.Drop
//	GET    /v1/droplog             []inspect.DropEvent, oldest first
//	GET    /v1/vrfstats            []inspect.VRFStats
//	POST   /v1/trace               TraceRequest → inspect.Trace
//	GET    /v1/doctor              []Finding
//	POST   /v1/shutdown            ShutdownRequest → {}
//	GET    /metrics                Prometheus text
//
// An error is {"error": "…"} with status 400 (bad input), 404 (no such
// object), 409 (in use, or exists), 503 (the store is out of reach), 507 (a
// table's limit, or no address is free), 500.
package api

import (
	"net/netip"
	"time"

	"windtunnel/vrouter/model"
)

// Status says how the agent is.
type Status struct {
	Node     string    `json:"node"`
	Version  string    `json:"version"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Synced   time.Time `json:"synced"`             // last time maps and links equalled the desired state
	Problems []string  `json:"problems,omitempty"` // what could not be made so, and is retried
	Repairs  uint64    `json:"repairs"`            // drift found and mended since the start
	Routes   int       `json:"routes"`
	Ports    int       `json:"ports"` // of this node
	Fabric   []Fabric  `json:"fabric"`
	Store    Store     `json:"store"`
}

// Store is how the place of the desired state is.
type Store struct {
	Address  string    `json:"address"`
	Revision int64     `json:"revision"`          // of what is known of it
	Heard    time.Time `json:"heard"`             // when it last answered
	Problem  string    `json:"problem,omitempty"` // why it does not
	Refused  string    `json:"refused,omitempty"` // why what it says is not in force
	Waiting  []string  `json:"waiting,omitempty"` // ports to delete once it answers
}

// Fabric is an underlay device.
type Fabric struct {
	Device string `json:"device"`
	Mode   string `json:"mode"`          // "xdp+tcx", "tcx", "xdp+clsact", "clsact"
	Why    string `json:"why,omitempty"` // why not XDP
	MTU    int    `json:"mtu"`
}

// Applied is what a change came to.
type Applied struct {
	Updated  int           `json:"updated"`
	Deleted  int           `json:"deleted"`
	Took     time.Duration `json:"took_ns"`
	Warnings []string      `json:"warnings,omitempty"`
}

// PortRequest asks for a port, on the agent's node unless it names another. What
// is empty is chosen. A port without a place is only made known; ChangePort says
// later where it is.
type PortRequest struct {
	model.Port
	// From are prefixes from which addresses are chosen.
	From []netip.Prefix `json:"from,omitempty"`
	// Four and Six ask for an address of that family alone; neither: of each that
	// the network has.
	Four bool `json:"four,omitempty"`
	Six  bool `json:"six,omitempty"`
	// Replaces are ports in whose place this one comes, with their addresses: in
	// one step, in which nobody else gets them.
	Replaces []string `json:"replaces,omitempty"`
}

// Port is what a workload has.
type Port struct {
	model.Port
	Device   string         `json:"device"` // on the node
	MTU      int            `json:"mtu"`
	Gateways []netip.Addr   `json:"gateways,omitempty"`
	Prefixes []netip.Prefix `json:"prefixes,omitempty"` // its addresses with their subnets' lengths
	Took     time.Duration  `json:"took_ns"`            // from the request until it forwards
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

// Finding of the doctor.
type Finding struct {
	Topic  string `json:"topic"` // kernel, attach, mtu, offload, pins
	Level  string `json:"level"` // ok, note, problem
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// ShutdownRequest ends the agent.
type ShutdownRequest struct {
	Remove    bool `json:"remove"`               // take everything down too: programs, maps, devices
	WithStore bool `json:"with_store,omitempty"` // also where it is the store of other nodes
}
