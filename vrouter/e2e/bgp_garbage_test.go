package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/bgp/bgptest"
	"windtunnel/vrouter/model"
)

// A neighbour that sends random changes of UPDATE messages harms no other neighbour.
func TestANeighborThatSendsGarbageDoesNotDisturbOthers(t *testing.T) {
	t.Parallel()
	sendGarbage(t, 2000, 1000)
}

// The same with a million messages, of which each 20,000th ends the session.
func TestAMillionGarbageUpdates(t *testing.T) {
	must.Long(t)
	sendGarbage(t, 1_000_000, 20_000)
}

// sendGarbage sends messages to the agent from a neighbour: in each session `perSession` messages that do not end it, and
// then one that does. Networks of the node import the routes in them. Meanwhile another neighbour keeps its routes, packets
// pass to it, and its changes are used.
func sendGarbage(t *testing.T, messages, perSession int) {
	const routes = 200
	var y *workload
	b, x, gateways := gatewayBed(t, 2, nil, func(b *bed) {
		b.state.Nodes[0].Encapsulations = []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE, model.VXLAN}
		b.state.Networks = append(b.state.Networks, model.Network{Name: "grey", ID: 3, VNI: 3003, Subnets: subnets("10.3.0.0/16", "fd00:3::/64"), Import: target("64512:7")})
		b.state.Networks[1].Import = target("64512:8")
		b.workload("w", "wire", 0, "10.2.0.10", "fd00:2::10")
		y = b.workload("y", "grey", 0, "10.3.0.10", "fd00:3::10")
	})
	a, bad, good := b.nodes[0], gateways[0], gateways[1]
	prefixes := networksFrom("11.0.0.0", 24, routes+2)
	stable := prefixes[0].Addr().Next()
	good.send(good.reach(1001, 300, prefixes[:routes]...))
	good.probe(x, stable, 300, time.Now())
	from := len(good.sightings(0))
	end := x.traffic(stable, 16, 200)

	random, valid := rand.New(rand.NewPCG(38, 2)), bgptest.Messages(bad.v4, 7, 8)
	handled := map[bgp.ErrorHandling]int{}
	next := func(ends bool) []byte {
		for {
			m := bgptest.Mutate(random, valid[random.IntN(len(valid))])
			h := bgptest.Handling(m)
			handled[h]++
			if (h == bgp.ERROR_HANDLING_SESSION_RESET) == ends {
				return m
			}
		}
	}
	began, sent, sessions, early := time.Now(), 0, 0, 0
	for ; sent < messages; bad.open() {
		n, err := 0, error(nil)
		for batch := []byte(nil); err == nil && n < perSession; {
			last := n == perSession-1 || sent+n == messages-1
			batch = append(batch, next(last)...)
			if n++; last || len(batch) > 1<<16 {
				_, err = bad.peer.Write(batch)
				batch = nil
			}
			if last {
				break
			}
		}
		select {
		case <-bad.ended:
		case <-time.After(patience * 5 * time.Minute):
			t.Fatalf("after %d messages, the session does not end with the last one", sent+n)
		}
		if err != nil {
			if early++; early > 10 {
				t.Fatalf("%d sessions end earlier than expected; the neighbours are %+v", early, answer(a, (*api.Client).BGPNeighbors))
			}
			continue
		}
		sent, sessions = sent+n, sessions+1
		for _, n := range answer(a, (*api.Client).BGPNeighbors) {
			if n.Address == good.v4 && (n.State != "established" || n.Received != routes) {
				t.Fatalf("after %d messages, the session with the other neighbour is %+v, want one with %d routes", sent, n, routes)
			}
		}
		if sessions%10 == 0 {
			t.Logf("%d messages, %d sessions, %s, %d MB resident at most", sent, sessions, time.Since(began).Round(time.Second), a.peak()>>20)
		}
	}
	took := time.Since(began)
	if out := a.run("bgp", "rib", "--why"); !strings.Contains(out, "neighbour "+bad.v4.String()+": a malformed UPDATE message: ") {
		t.Errorf("`bgp rib --why` does not say that the neighbour sends malformed messages:\n%s", out)
	}
	good.send(good.reach(1001, 301, prefixes[routes]))
	good.probe(x, prefixes[routes].Addr().Next(), 301, time.Now())
	bad.send(bad.reach(7, 302, prefixes[routes+1]))
	bad.probe(y, prefixes[routes+1].Addr().Next(), 302, time.Now())
	packets := end()
	soon(t, "all packets arrive", func() error {
		if got := good.distinct(from, packets); got != packets {
			return fmt.Errorf("%d of %d packets have arrived", got, packets)
		}
		return nil
	})
	log, err := os.ReadFile(filepath.Join(b.dir, "a.log"))
	b.must(err)
	entries := strings.Count(string(log), "neighbor="+bad.v4.String())
	t.Logf("%d messages in %d sessions in %s: the last ones of the sessions end them. %d other sessions end earlier. Of the others, GoBGP takes %d, ignores attributes of %d, and withdraws the routes of %d", messages, sessions, took.Round(time.Second), early,
		handled[bgp.ERROR_HANDLING_NONE], handled[bgp.ERROR_HANDLING_ATTRIBUTE_DISCARD], handled[bgp.ERROR_HANDLING_TREAT_AS_WITHDRAW])
	t.Logf("%d packets to the other neighbour, none lost; the agent: %d MB resident at most, %d log entries about the neighbour", packets, a.peak()>>20, entries)
	if limit := 1 << 30; a.peak() > limit {
		t.Errorf("the agent takes %d MB, want at most %d", a.peak()>>20, limit>>20)
	}
	if most := 30 + int(took/(10*time.Second)); entries > most {
		t.Errorf("the agent has written %d log entries about the neighbour, want at most %d", entries, most)
	}
	a.kill(syscall.SIGTERM)
	a.start()
	good.open()
	bad.probe(y, prefixes[routes+1].Addr().Next(), 302, time.Now())
}
