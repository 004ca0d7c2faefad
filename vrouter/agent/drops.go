package agent

import (
	"context"
	"sync"

	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/inspect"
)

// dropRing keeps the last dropped packets.
type dropRing struct {
	mu     sync.Mutex
	events []datapath.DropEvent
	next   int // where the next goes once the ring is full
}

// keptDrops is how many are kept.
const keptDrops = 1000

func newDropRing() *dropRing { return &dropRing{} }

func (r *dropRing) add(e datapath.DropEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) < keptDrops {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % keptDrops
}

// list decodes what is kept, oldest first: of a VRF, or with 0 all.
func (r *dropRing) list(v *view, vrf uint32) []inspect.DropEvent {
	r.mu.Lock()
	kept := append(append([]datapath.DropEvent(nil), r.events[r.next:]...), r.events[:r.next]...)
	r.mu.Unlock()
	rows := []inspect.DropEvent{}
	for _, e := range kept {
		if vrf != 0 && e.VRF != vrf {
			continue
		}
		reason := datapath.ReasonOf(e.Reason)
		rows = append(rows, inspect.DropEvent{
			Time: e.Time, Reason: reason.Name, Meaning: reason.Meaning, Vif: e.Vif, Device: v.device(e.Vif, e.Ifindex),
			VRF: e.VRF, Length: e.Length, Packet: wordsOf(e.Data), Data: e.Data,
		})
	}
	return rows
}

// followDrops fills the ring from a data path until the returned function is
// called.
func (a *agent) followDrops(from plane) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := from.DropLog(ctx, a.drops.add); err != nil {
			a.log.Error("dropped packets are no longer shown; their counters go on", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
