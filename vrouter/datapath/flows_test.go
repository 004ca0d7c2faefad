package datapath

import (
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

func TestExpiryJudgesFlowsAsTheDataPathDoes(t *testing.T) {
	now := must.Get(monotonic())(t)
	const idle, unanswered, closed = 100 * time.Second, 30 * time.Second, 10 * time.Second
	udp := func(reply uint8, out, in uint64) layout.Flow {
		return layout.Flow{Policy: 1, Reply: reply, Packets: [2]uint64{out, in}}
	}
	tcp := func(state uint8) layout.Flow { return layout.Flow{Policy: 1, TCP: state} }
	for _, c := range []struct {
		name         string
		idle, closed time.Duration
		vif          uint32
		protocol     uint8
		flow         layout.Flow
		age          uint64
		stays        bool
	}{
		{"UDP, young", idle, closed, 1, 17, udp(0, 1, 1), 50, true},
		{"UDP, idle", idle, closed, 1, 17, udp(0, 1, 1), 150, false},
		{"UDP without a limit", 0, closed, 1, 17, udp(0, 1, 1), 1500, true},
		{"UDP, unanswered and young", idle, closed, 1, 17, udp(0, 9, 0), 20, true},
		{"UDP, unanswered", idle, closed, 1, 17, udp(0, 9, 0), 50, false},
		{"UDP, unanswered by the workload", idle, closed, 1, 17, udp(1, 0, 9), 50, false},
		{"UDP, answered by the workload", idle, closed, 1, 17, udp(1, 1, 9), 50, true},
		{"UDP of a vif without a policy, where answers are not seen", idle, closed, 1, 17, layout.Flow{Packets: [2]uint64{1, 0}}, 50, true},
		{"TCP, half open", idle, closed, 1, 6, tcp(tcpSYN), 50, false},
		{"TCP, established", idle, closed, 1, 6, tcp(tcpSYN | tcpEstablished), 50, true},
		{"TCP, established, for longer than other flows", idle, closed, 1, 6, tcp(tcpSYN | tcpEstablished), 150, true},
		{"TCP, closed", idle, closed, 1, 6, tcp(tcpSYN | tcpEstablished | tcpFINIn | tcpFINOut), 50, false},
		{"TCP, closed on one side", idle, closed, 1, 6, tcp(tcpSYN | tcpEstablished | tcpFINIn), 50, true},
		{"TCP, reset", idle, closed, 1, 6, tcp(tcpSYN | tcpEstablished | tcpRST), 50, false},
		{"TCP, closed, no limit for it", idle, 0, 1, 6, tcp(tcpRST), 150, true},
		{"TCP, reset, no limit when idle", 0, closed, 1, 6, tcp(tcpRST), 50, false},
		{"of a vif that is gone", 0, 0, 9, 17, udp(0, 1, 1), 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := shared(t)
			defer func(t FlowTimes) { d.options.Times = t }(d.options.Times)
			d.options.Times = FlowTimes{c.idle, unanswered, c.closed}
			must.Get(d.Apply(scene(7, 8, 9, model.MPLSoUDP, false)))(t)
			key := layout.FlowKey{Vif: c.vif, Protocol: c.protocol, LocalPort: 80}
			c.flow.SeenNs = now - min(now, c.age*1e9)
			must.Succeed(t, d.maps.Flows.Put(&key, &c.flow))
			n, left, err := d.ExpireFlows()
			if err != nil || (n == 0) != c.stays || n+left != 1 {
				t.Errorf("removed %d, left %d, %v", n, left, err)
			}
			var f layout.Flow
			if err := d.maps.Flows.Lookup(&key, &f); (err == nil) != c.stays {
				t.Errorf("lookup: %v", err)
			}
		})
	}
}

// RFC 5382 requires at least 2 hours and 4 minutes, so that keepalive packets keep a connection.
func TestAnEstablishedConnectionIsKeptForMoreThanTwoHours(t *testing.T) {
	const now, hours = 1e6, 2*3600 + 4*60 // seconds
	for _, c := range []struct {
		idle time.Duration // seconds
		age  uint64
		want bool
	}{{180, hours - 1, false}, {180, hours + 1, true}, {hours + 100, hours + 99, false}, {hours + 100, hours + 101, true}, {0, now, false}} {
		f := layout.Flow{TCP: tcpSYN | tcpEstablished, SeenNs: (now - c.age) * 1e9}
		if got := isForgotten(FlowTimes{Idle: c.idle * time.Second, Closed: 10 * time.Second}, 6, &f, now*1e9); got != c.want {
			t.Errorf("flow_idle %d s, idle for %d s: forgotten %v, want %v", c.idle, c.age, got, c.want)
		}
	}
}
