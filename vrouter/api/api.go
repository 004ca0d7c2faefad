// Package api is how programs speak to a vrouter agent: HTTP and JSON on a unix
// socket that root alone may open.
//
//	GET    /v1/status              Status
//	GET    /v1/state               model.State
//	PUT    /v1/state               model.State → Applied      refused whole when invalid
//	POST   /v1/ports               PortRequest → Port
//	DELETE /v1/ports/{name}        → Applied
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
// object), 409 (in use, or exists), 507 (a table's limit), 500.
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

// PortRequest asks for a port on the agent's node. What is empty is chosen.
type PortRequest struct {
	Name     string           `json:"name,omitempty"`
	Network  string           `json:"network"`
	IPs      []netip.Addr     `json:"ips,omitempty"`
	MAC      model.MAC        `json:"mac,omitzero"`
	Attach   model.Attachment `json:"attach"`
	Policies []string         `json:"policies,omitempty"`
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
	Remove bool `json:"remove"` // take everything down too: programs, maps, devices
}
