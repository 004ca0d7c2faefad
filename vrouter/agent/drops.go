package agent

import (
	"sync"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/inspect"
)

// dropRing keeps the latest dropped packets.
type dropRing struct {
	mu     sync.Mutex
	events []datapath.DropEvent
	next   int // index of the next event once the ring is full
}

// maxDropEvents is the size of the ring.
const maxDropEvents = 1000

func newDropRing() *dropRing { return &dropRing{} }

func (r *dropRing) add(e datapath.DropEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < maxDropEvents {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % maxDropEvents
}

// list decodes the events of a VRF, oldest first; vrf 0: of all VRFs.
func (r *dropRing) list(v *snapshot, vrf uint32) []inspect.DropEvent {
	r.mu.Lock()
	kept := append(append([]datapath.DropEvent(nil), r.events[r.next:]...), r.events[:r.next]...)
	r.mu.Unlock()
	rows := []inspect.DropEvent{}
	for _, e := range kept {
		if vrf != 0 && e.VRF != vrf {
			continue
		}
		reason := datapath.ReasonOf(e.Reason)
		device, denied := v.device(e.Vif, e.Ifindex), ""
		if reason.Name == "policy" {
			denied = v.deniedFrame(e.Vif, v.names().indexes[e.Ifindex] == device, e.Data)
		}
		rows = append(rows, inspect.DropEvent{
			Time: e.Time, Reason: reason.Name, Meaning: reason.Meaning, Vif: e.Vif, Device: device, Denied: denied,
			VRF: e.VRF, Length: e.Length, Packet: describeFrame(e.Data), Data: e.Data,
		})
	}
	return rows
}
