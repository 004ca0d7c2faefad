package datapath

import (
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// A router outside the fleet, which has the routes to the outside, reaches a workload by its floating address, and receives
// packets with this address, also in the quotes of ICMP errors. The address of a workload without a floating address stays.
func TestARouterReachesAFloatingAddressByATunnel(t *testing.T) {
	for name, a := range outsides {
		for _, encap := range []model.Encapsulation{model.VXLAN, model.MPLSoUDP} {
			for _, policy := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " ", encap, " policy ", policy), func(t *testing.T) {
					r := newRig(t, encap, false, func(f *fib.Tables) {
						withFloating(policy)(f)
						router := f.Nexthops[nhTunnel]
						router.Flags |= layout.NexthopNAT
						f.Nexthops[nhTunnel] = router
						label := labelOf(encap, false)
						host := func(x netip.Addr) fib.RouteKey {
							return fib.RouteKey{VRF: 1, Prefix: netip.PrefixFrom(x, x.BitLen())}
						}
						f.Routes[host(a.outside)] = layout.Route{Nexthop: nhTunnel, Label: label}
						f.Routes[host(a.floating)] = layout.Route{Nexthop: nhOutside, Flags: layout.RouteFloating}
						f.Floatings[layout.FloatingKey{Vif: 1, Address: layout.AddressOf(a.workload)}] = layout.Floating{Other: layout.AddressOf(a.floating)}
						v := f.Vifs[devices(f)[1]]
						v.Flags |= layout.VifFloating
						f.Vifs[devices(f)[1]] = v
					})
					out := func(ip []byte) []byte {
						t.Helper()
						code, b := r.run(t, r.programs.FromWorkload, r.vif, frame(macA, model.RouterMAC, ip))
						if code != actRedirect {
							t.Fatalf("a packet to the router was dropped: %s", r.drop(t, nil))
						}
						_, inner, _ := outerOf(t, encap, false, b)
						if encap == model.VXLAN {
							inner = inner[14:]
						}
						return inner
					}
					in := func(ip []byte) []byte {
						t.Helper()
						inner := ip
						if encap == model.VXLAN {
							inner = frame(macB, model.RouterMAC, ip)
						}
						code, b := r.run(t, r.programs.FabricTc, r.fabric, wrapped(t, encap, false, labelOf(encap, false), 1, inner))
						if code != actRedirect {
							t.Fatalf("a packet of the router was dropped: %s", r.drop(t, nil))
						}
						return b[14:]
					}
					for _, flags := range [][2]string{{"S", "AS"}, {"A", "A"}} {
						request := segment{at(a.outside, 4000), at(a.floating, 80), unix.IPPROTO_TCP, flags[0]}.packet(t)
						if got, want := segmentOf(t, in(request)), (segment{at(a.outside, 4000), at(a.workload, 80), unix.IPPROTO_TCP, flags[0]}); got != want {
							t.Errorf("the packet that the router sent arrives as %v, want %v", got, want)
						}
						answer := segment{at(a.workload, 80), at(a.outside, 4000), unix.IPPROTO_TCP, flags[1]}.packet(t)
						if got, want := segmentOf(t, out(answer)), (segment{at(a.floating, 80), at(a.outside, 4000), unix.IPPROTO_TCP, flags[1]}); got != want {
							t.Errorf("the packet of the workload leaves as %v, want %v", got, want)
						}
					}
					opened := out(segment{at(a.workload, 53), at(a.outside, 81), unix.IPPROTO_UDP, ""}.packet(t))
					if got, want := segmentOf(t, opened), (segment{at(a.floating, 53), at(a.outside, 81), unix.IPPROTO_UDP, ""}); got != want {
						t.Errorf("the datagram of the workload leaves as %v, want %v", got, want)
					}
					sent := segment{at(a.workload, 53), at(a.outside, 81), unix.IPPROTO_UDP, ""}.packet(t)
					checkError(t, "to the workload", in(portUnreachable(t, a.outside, a.floating, opened)), a.outside, a.workload, sent, true)
					asked := segment{at(a.outside, 81), at(a.floating, 53), unix.IPPROTO_UDP, ""}.packet(t)
					checkError(t, "of the workload", out(portUnreachable(t, a.workload, a.outside, in(asked))), a.floating, a.outside, asked, false)
					if from, to, id := idOf(t, in(echo(t, a.outside, a.floating, false, 7))); from != a.outside || to != a.workload || id != 7 {
						t.Errorf("ping from %s to %s, identifier %d", from, to, id)
					}
					if from, to, id := idOf(t, out(echo(t, a.workload, a.outside, true, 7))); from != a.floating || to != a.outside || id != 7 {
						t.Errorf("pong from %s to %s, identifier %d", from, to, id)
					}
					var fragments [][]byte
					for _, f := range fragmentsOf(segment{at(a.workload, 53), at(a.outside, 81), unix.IPPROTO_UDP, ""}.packetOf(t, string(make([]byte, 1300))), 6) {
						fragments = append(fragments, out(f))
					}
					if got, want := segmentOf(t, joined(fragments)), (segment{at(a.floating, 53), at(a.outside, 81), unix.IPPROTO_UDP, ""}); got != want {
						t.Errorf("the fragments leave as %v, want %v", got, want)
					}
					other := segment{at(a.other, 5000), at(a.outside, 81), unix.IPPROTO_TCP, "S"}
					if got := segmentOf(t, out(other.packet(t))); got != other {
						t.Errorf("the packet of a workload without a floating address leaves as %v, want %v", got, other)
					}
					must.Succeed(t, r.Flows(func(k FlowKey, f Flow) bool {
						if k.Local.Addr() == a.floating || k.Remote.Addr() == a.floating {
							t.Errorf("packets of a floating address made the flow %+v %+v, want none", k, f)
						}
						return true
					}))
				})
			}
		}
	}
}

// devices returns the devices of the vifs by id.
func devices(f *fib.Tables) map[uint32]uint32 {
	all := map[uint32]uint32{}
	for device, v := range f.Vifs {
		all[v.ID] = device
	}
	return all
}
