package e2e

import (
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/model"
)

// strict makes the switch between the nodes drop frames to addresses that it has not learned. It
// forgets an address after the time age without a frame from it.
func (b *bed) strict(age time.Duration) {
	b.t.Helper()
	sw := b.handle(b.sw)
	br, err := sw.LinkByName("br")
	b.must(err)
	ports, err := sw.LinkList()
	b.must(err)
	for _, p := range ports {
		if p.Attrs().MasterIndex == br.Attrs().Index {
			b.must(sw.LinkSetFlood(p, false))
		}
	}
	hundredths := strconv.FormatInt(age.Milliseconds()/10, 10)
	testprogram.Output(b.t, "ip -n "+b.name+"-sw link set dev br type bridge ageing_time "+hundredths)
}

// learned reports whether the switch knows the port of a node's label.
func (b *bed) learned(n *node, network uint32) bool {
	b.t.Helper()
	return strings.Contains(testprogram.Output(b.t, "bridge -n "+b.name+"-sw fdb show br br"), direct.Label(network, n.v4).String())
}

// A switch that does not flood learns the labels of a new network before the first packets,
// although the agents announce all networks only every 5 s and every minute. Nothing is lost.
func TestASwitchThatDoesNotFloodLearnsANewNetworkAtOnce(t *testing.T) {
	t.Parallel()
	needs(t, "bridge")
	b := newBed(t, options{nodes: 4})
	b.strict(5 * time.Minute)
	directPair(b, model.L3, model.VXLAN)
	for i, forwarding := range []model.Forwarding{model.L3, model.L2, model.L2L3} {
		name, id := "new-"+string(forwarding), uint32(400+i)
		prefix := netip.AddrFrom4([4]byte{10, 4, byte(i), 0})
		b.state.Networks = append(b.state.Networks, model.Network{Name: name, ID: id, VNI: 2000 + id, Forwarding: forwarding, Subnets: []netip.Prefix{netip.PrefixFrom(prefix, 24)}})
		for k := range b.nodes {
			ip := prefix.As4()
			ip[3] = byte(10 + k)
			b.workload(name+b.nodes[k].name, name, k, netip.AddrFrom4(ip).String())
		}
		began := time.Now()
		b.apply()
		for _, n := range b.nodes {
			soon(t, "the switch learns a new network of node "+n.name, func() error {
				if !b.learned(n, id) {
					return errTimeout
				}
				return nil
			})
		}
		if took := time.Since(began); took > 2*time.Second && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
			t.Errorf("the switch has learned the network after %v, want at most 2 s", took)
		}
	}
}

// The agents do not run for much longer than the switch remembers addresses. Frames of a network
// that only bridges and packets of a network that only routes still arrive: the switch learns
// the labels from these packets.
func TestDataKeepsLabelsInASwitchThatDoesNotFlood(t *testing.T) {
	must.Long(t)
	for _, forwarding := range []model.Forwarding{model.L2, model.L3} {
		t.Run(string(forwarding), func(t *testing.T) {
			t.Parallel()
			needs(t, "bridge")
			b := newBed(t, options{})
			x, y := directPair(b, forwarding, model.VXLAN)
			must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
			b.strict(2 * time.Second)
			datagrams := count(t, x, y)
			for _, n := range b.nodes {
				n.kill(syscall.SIGKILL)
			}
			time.Sleep(8 * time.Second)
			for _, n := range b.nodes {
				if !b.learned(n, 291) {
					t.Errorf("the switch has forgotten the label of node %s", n.name)
				}
			}
			datagrams.lost(t)
			for _, n := range b.nodes { // for the removal at the end
				n.start()
				if n.sent(model.Direct) == 0 {
					t.Errorf("node %s has sent no packet with the encapsulation direct", n.name)
				}
			}
		})
	}
}
