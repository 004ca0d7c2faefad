package datapath

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// A connection of a client to a service for the tests of idle flows. The times of the shared datapath are 3 minutes
// for idle flows, 30 s for unanswered ones, and 10 s for half-open connections.
type servedFlow struct {
	*rig
	client, service, backend segment // packets from the client, of the service to it, and of the backend
}

func (r *rig) servedFlow(protocol uint8, name string) servedFlow {
	a := families[name]
	return servedFlow{r, segment{at(a.client, 40000), at(a.service, 80), protocol, ""}, segment{at(a.service, 80), at(a.client, 40000), protocol, ""}, segment{at(a.backend, 8080), at(a.client, 40000), protocol, ""}}
}

// ask sends a packet to the service; the backend must get it.
func (f servedFlow) ask(t *testing.T, what, flags string) {
	t.Helper()
	f.client.flags, f.backend.flags = flags, flags
	want := segment{f.client.from, f.backend.from, f.client.protocol, f.client.flags}
	if f.client.protocol == unix.IPPROTO_UDP {
		want.flags, f.client.flags = "", ""
	}
	if got := f.toBackend(t, f.client); got != want {
		t.Errorf("%s: the backend gets %v, want %v", what, got, want)
	}
}

// answer sends a packet of the backend; the client must get it from the service.
func (f servedFlow) answer(t *testing.T, what, flags string) {
	t.Helper()
	f.service.flags, f.backend.flags = flags, flags
	if f.client.protocol == unix.IPPROTO_UDP {
		f.service.flags = ""
	}
	if got := f.answered(t, f.backend); got != f.service {
		t.Errorf("%s: the client gets %v, want %v", what, got, f.service)
	}
}

// pass lets time pass, after which the agent removes expired flows.
func (f servedFlow) pass(t *testing.T, by time.Duration) {
	t.Helper()
	f.ageFlows(t, by)
	if _, _, err := f.ExpireFlows(); err != nil {
		t.Fatal(err)
	}
}

// everyServedFlow runs a test for both IP versions, with and without a policy.
func everyServedFlow(t *testing.T, protocol uint8, test func(t *testing.T, f servedFlow)) {
	for name, a := range families {
		for _, policy := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " policy ", policy), func(t *testing.T) {
				r := newRig(t, model.MPLSoUDP, false, withServicesAnd(policy, at(a.backend, 8080)))
				r.setService(t, a.service, at(a.backend, 8080))
				test(t, r.servedFlow(protocol, name))
			})
		}
	}
}

// After the handshake, neither end has to send anything for two hours: the keepalive packets of a kernel come after
// that time, from either end.
func TestAnIdleConnectionToAServiceIsStillTranslated(t *testing.T) {
	everyServedFlow(t, unix.IPPROTO_TCP, func(t *testing.T, f servedFlow) {
		f.ask(t, "handshake", "S")
		f.answer(t, "handshake", "AS")
		f.ask(t, "handshake", "A")
		for range 2 {
			f.pass(t, 2*time.Hour)
			f.ask(t, "keepalive of the client", "A")
			f.answer(t, "answer", "A")
			f.pass(t, 2*time.Hour)
			f.answer(t, "keepalive of the backend", "A")
			f.ask(t, "answer", "A")
		}
	})
}

// If an answer takes longer than the time for unanswered flows, the client sends again from the same port.
func TestALateAnswerToADatagramIsTranslated(t *testing.T) {
	everyServedFlow(t, unix.IPPROTO_UDP, func(t *testing.T, f servedFlow) {
		f.ask(t, "question", "")
		f.pass(t, time.Minute)
		f.ask(t, "repeated question", "")
		f.answer(t, "answer", "")
	})
}

// A client that only receives keeps its backend: each datagram of the backend renews both entries of the flow.
func TestDatagramsOfABackendKeepTheFlow(t *testing.T) {
	everyServedFlow(t, unix.IPPROTO_UDP, func(t *testing.T, f servedFlow) {
		f.ask(t, "subscription", "")
		for range 4 {
			f.answer(t, "news", "")
			f.pass(t, 100*time.Second)
		}
		var n int
		if err := f.Flows(func(FlowKey, Flow) bool { n++; return true }); err != nil || n != 2 {
			t.Errorf("%d flows %v, want the entry with the service and the one with the backend", n, err)
		}
	})
}

// A connection to a service needs two entries in the table of flows. If only one is free, the connection
// is refused, and the connections in the table continue.
func TestAFullTableRefusesNewConnectionsToServicesOnly(t *testing.T) {
	everyServedFlow(t, unix.IPPROTO_TCP, func(t *testing.T, f servedFlow) {
		f.ask(t, "handshake", "S")
		f.answer(t, "handshake", "AS")
		for n := uint32(3); n < f.maps.Flows.MaxEntries(); n++ { // all but one
			must.Succeed(t, f.maps.Flows.Put(layout.FlowKey{Vif: 9, Local: layout.Address{Bytes: [16]byte{byte(n >> 8), byte(n)}}}, layout.Flow{}))
		}
		refused := f.client
		refused.from, refused.flags = at(f.client.from.Addr(), 40001), "S"
		before, _ := f.Drops()
		f.run(t, f.programs.FromWorkload, f.vif, frame(macA, model.RouterMAC, refused.packet(t)))
		must.Equal(t, "flow_table_full", f.drop(t, before))
		f.ask(t, "with a full table", "A")
		f.answer(t, "with a full table", "A")
	})
}
