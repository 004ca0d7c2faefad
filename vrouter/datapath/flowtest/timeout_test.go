package flowtest

import (
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

func TestAnIdleFlowIsForgotten(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	k := flowKey(17, local4, remote4)
	h.expect("out", admitted, fromWorkload, udp(local4, remote4, 1))
	h.age(k, unansweredSeconds-2)
	h.expect("reply within the time", admitted, toWorkload, udp(remote4, local4, 1))
	h.age(k, idleSeconds-2)
	h.expect("a reply within the longer time of an answered flow", admitted, toWorkload, udp(remote4, local4, 1))
	h.age(k, idleSeconds+2)
	h.expect("reply after it", denied, toWorkload, udp(remote4, local4, 1))
	h.expect("the workload asks anew", admitted, fromWorkload, udp(local4, remote4, 1))
	f := h.flow(k)
	if f.Packets != [2]uint64{1, 0} || f.Action != flowForward || f.Reply != 0 {
		t.Errorf("entry %+v, want a new flow of one packet", f)
	}
	if f.CreatedNs < f.SeenNs-2e9 {
		t.Errorf("created at %d, seen at %d: want the new flow's own time", f.CreatedNs, f.SeenNs)
	}
	must.Equal(t, 1, h.count(h.Flows))
}

// A server may send first on a TCP connection that was idle for longer than flow_idle.
func TestAnIdleConnectionIsKept(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	k := h.established(6, local4, remote4)
	h.age(k, idleSeconds+2)
	h.expect("data of the server", admitted, toWorkload, tcp(remote4, local4, "A"))
	h.expect("answer", admitted, fromWorkload, tcp(local4, remote4, "A"))
	h.expect("reset", admitted, toWorkload, tcp(remote4, local4, "R"))
	h.age(k, closedSeconds+2)
	h.expect("data after the reset", denied, toWorkload, tcp(remote4, local4, "A"))
}

func TestAnUnansweredFlowIsForgottenSoon(t *testing.T) {
	for _, c := range []struct {
		name       string
		first      direction
		ask, reply []byte
		key        layout.FlowKey
	}{
		{"UDP from the workload", fromWorkload, udp(local4, remote4, 1), udp(remote4, local4, 1), flowKey(17, local4, remote4)},
		{"UDP to the workload", toWorkload, udp(remote6, local6, 1), udp(local6, remote6, 1), flowKey(17, local6, remote6)},
		{"ping", fromWorkload, icmp(local4.Addr(), remote4.Addr(), 8, 9), icmp(remote4.Addr(), local4.Addr(), 0, 9), flowKey(1, withPort(local4, 9), withPort(remote4, 0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := load(t)
			h.apply(policy{generation: 1, allowIn: true, allowOut: true})
			h.expect("first", admitted, c.first, c.ask)
			h.expect("again", admitted, c.first, c.ask)
			h.age(c.key, unansweredSeconds+2)
			h.expect("after the time of unanswered flows", admitted, c.first, c.ask)
			side := 0
			if c.first == toWorkload {
				side = 1
			}
			if f := h.flow(c.key); f.Packets[side] != 1 || f.Packets[1-side] != 0 {
				t.Errorf("the flow has %v packets, want a new flow with 1 packet from its first side", f.Packets)
			}
			h.expect("answer", admitted, 1-c.first, c.reply)
			h.age(c.key, unansweredSeconds+2)
			h.expect("an answered flow after the time of unanswered flows", admitted, c.first, c.ask)
			if f := h.flow(c.key); f.Packets[side] != 2 || f.Packets[1-side] != 1 {
				t.Errorf("the flow has %v packets, want the same flow with 2 packets and 1 reply", f.Packets)
			}
		})
	}
}

func TestATimeoutOfZeroNeverExpires(t *testing.T) {
	h := load(t, flowTimes(0, 0, 0))
	h.apply(outOnly)
	k := flowKey(17, local4, remote4)
	h.expect("out", admitted, fromWorkload, udp(local4, remote4, 1))
	f := h.flow(k)
	f.SeenNs, f.SeenTick = 1, f.SeenTick-leastHZ
	h.put(h.Flows, k, f)
	h.expect("reply, long after", admitted, toWorkload, udp(remote4, local4, 1))
}

// segment is a step of a connection.
type segment struct {
	d     direction
	flags string
}

func (h *harness) play(steps ...segment) {
	h.t.Helper()
	for _, s := range steps {
		frame := tcp(local4, remote4, s.flags)
		if s.d == toWorkload {
			frame = tcp(remote4, local4, s.flags)
		}
		h.expect(s.flags, admitted, s.d, frame)
	}
}

func TestTCPStateFollowsTheSegmentsAndDecidesTheTimeout(t *testing.T) {
	handshake := []segment{{fromWorkload, "S"}, {toWorkload, "SA"}, {fromWorkload, "A"}}
	incoming := []segment{{toWorkload, "S"}, {fromWorkload, "SA"}, {toWorkload, "A"}}
	for _, c := range []struct {
		name  string
		steps []segment
		state uint8
		brief bool // goes by flow_closed_s
	}{
		{"first SYN", handshake[:1], tcpSyn, true},
		{"SYN repeated", append(handshake[:1:1], handshake[0]), tcpSyn, true},
		{"answered", handshake[:2], tcpSyn, true},
		{"refused", append(handshake[:1:1], segment{toWorkload, "RA"}), tcpSyn | tcpRst, true},
		{"established", handshake, tcpSyn | tcpEstablished, false},
		{"established from there", incoming, tcpSyn | tcpEstablished, false},
		{"closed by the workload alone", append(handshake[:3:3], segment{fromWorkload, "FA"}), tcpSyn | tcpEstablished | tcpFinOut, false},
		{"closed by the other alone", append(handshake[:3:3], segment{toWorkload, "FA"}), tcpSyn | tcpEstablished | tcpFinIn, false},
		{"closed", append(handshake[:3:3], segment{fromWorkload, "FA"}, segment{toWorkload, "FA"}, segment{fromWorkload, "A"}), tcpSyn | tcpEstablished | tcpFinOut | tcpFinIn, true},
		{"reset", append(handshake[:3:3], segment{toWorkload, "R"}), tcpSyn | tcpEstablished | tcpRst, true},
		{"picked up in its midst, one side heard", []segment{{fromWorkload, "A"}, {fromWorkload, "A"}}, 0, true},
		{"picked up in its midst, both heard", []segment{{fromWorkload, "A"}, {toWorkload, "A"}}, tcpEstablished, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := load(t)
			h.apply(policy{generation: 1, allowIn: true, allowOut: true})
			h.play(c.steps...)
			k := flowKey(6, local4, remote4)
			must.Equal(t, c.state, h.flow(k).TCP)
			packets := h.flow(k).Packets
			h.age(k, closedSeconds+2)
			h.play(segment{fromWorkload, "A"})
			if anew := h.flow(k).Packets == [2]uint64{1, 0} && packets != [2]uint64{}; anew != c.brief {
				t.Errorf("after the time of closed flows the entry began anew: %v, want %v", anew, c.brief)
			}
			h.age(k, idleSeconds+2)
			h.play(segment{fromWorkload, "A"})
			lasting := c.state&tcpEstablished != 0 && c.state&(tcpFinIn|tcpFinOut|tcpRst) == 0
			if anew := h.flow(k).Packets == [2]uint64{1, 0}; anew == lasting {
				t.Errorf("after the time of idle flows the entry began anew: %v, want %v", anew, !lasting)
			}
		})
	}
}

func TestANewConnectionOnAClosedOnesPortsIsJudgedByItsOwnDirection(t *testing.T) {
	for _, end := range [][]segment{
		{{fromWorkload, "FA"}, {toWorkload, "FA"}},
		{{fromWorkload, "RA"}},
	} {
		h := load(t)
		h.apply(outOnly)
		open := []segment{{fromWorkload, "S"}, {toWorkload, "SA"}, {fromWorkload, "A"}}
		h.play(append(open, end...)...)
		h.play(segment{toWorkload, "A"}) // what is still on its way
		h.expect("the other end opens", denied, toWorkload, tcp(remote4, local4, "S"))
		h.expect("the workload opens again", admitted, fromWorkload, tcp(local4, remote4, "S"))
		if f := h.flow(flowKey(6, local4, remote4)); f.TCP != tcpSyn || f.Packets != [2]uint64{1, 0} {
			t.Errorf("entry %+v, want a new connection's", f)
		}
	}
}

func TestASynWithinAConnectionDoesNotBeginItAgain(t *testing.T) {
	h := load(t)
	h.apply(outOnly)
	h.play(segment{fromWorkload, "S"}, segment{toWorkload, "SA"}, segment{fromWorkload, "A"}, segment{toWorkload, "S"}, segment{toWorkload, "A"})
	if f := h.flow(flowKey(6, local4, remote4)); f.Packets != [2]uint64{2, 3} || f.Reply != 0 {
		t.Errorf("entry %+v, want the connection's 2 and 3 packets, begun by the workload", f)
	}
}
