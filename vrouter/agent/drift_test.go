package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// harm is something that somebody does to a node that works.
type harm struct {
	what string
	do   func(t *testing.T, b *bed)
}

// onMaps does harm to the maps of node a.
func onMaps(what string, maps ...string) harm {
	return harm{what, func(t *testing.T, b *bed) {
		for _, m := range maps {
			emptied(t, b.nodes["a"].config, m)
		}
	}}
}

// onPins does it to pins of node a.
func onPins(what, pattern string, do func(*testing.T, config.Config, string)) harm {
	return harm{what, func(t *testing.T, b *bed) { do(t, b.nodes["a"].config, pattern) }}
}

// onHost does it to the node's end of port a1's pair.
func onHost(what string, do func(*netlink.Handle, netlink.Link) error) harm {
	return harm{what, func(t *testing.T, b *bed) {
		must.Succeed(t, do(b.A.Links, agenttest.LinkIn(t, b.A, b.nodes["a"].device(t, "a1"))))
	}}
}

// onWorkload does it to the workload's end.
func onWorkload(what string, do func(*netlink.Handle, netlink.Link) error) harm {
	return harm{what, func(t *testing.T, b *bed) {
		w := b.workloads["a1"]
		must.Succeed(t, do(w.Links, agenttest.LinkIn(t, w, "eth0")))
	}}
}

func small(h *netlink.Handle, l netlink.Link) error { return h.LinkSetMTU(l, 1300) }

func TestDeletedEntriesAreRepaired(t *testing.T) {
	t.Parallel()
	withstands(t,
		onMaps("all host routes", "hosts4", "hosts6"),
		onMaps("other routes", "lpm4"),
		onMaps("all nexthops", "nexthops"),
		onMaps("all vifs", "vifs"),
		onMaps("all labels", "ilm"),
		onMaps("the known sources", "remotes"),
		onMaps("the networks", "vrfs"),
		onMaps("the settings", "settings"),
		onMaps("the keys of nexthops", "nexthop_entries"),
		harm{"one route with a wrong nexthop", func(t *testing.T, b *bed) { misled(t, b.nodes["a"].config, "hosts4", 1) }},
		harm{"one nexthop with the key of another nexthop", func(t *testing.T, b *bed) { misled(t, b.nodes["a"].config, "nexthop_entries", 2) }},
	)
}

func TestDetachedProgramsAndDeletedPinsAreRepaired(t *testing.T) {
	must.Long(t)
	t.Parallel()
	withstands(t,
		onPins("a vif's program", "links/vif-*", detached),
		onPins("the fabric's tc program", "links/fabric-*", detached),
		onPins("the fabric's XDP program", "links/xdp-*", detached),
		onPins("the pins of the links", "links/*-*", unpinned),
		onPins("the pins of the maps", "g*/*", unpinned),
		onPins("the pin of one map", "g*/flows", unpinned),
	)
}

func TestChangedDevicesAreRepaired(t *testing.T) {
	t.Parallel()
	withstands(t,
		onHost("the node's end is down", (*netlink.Handle).LinkSetDown),
		onHost("the node's end is small", small),
		onHost("the node's end has no mark", func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetAlias(l, "") }),
		onWorkload("the workload's end is down", (*netlink.Handle).LinkSetDown),
		onWorkload("the workload's end is small", small),
		onWorkload("the workload's MAC is another", func(h *netlink.Handle, l netlink.Link) error {
			return h.LinkSetHardwareAddr(l, []byte{2, 9, 9, 9, 9, 9})
		}),
		onWorkload("the workload's default routes are deleted", defaultsDeleted),
		onWorkload("the workload's addresses are deleted", addressesDeleted),
		onWorkload("the workload's device has another name", func(h *netlink.Handle, l netlink.Link) error {
			return errors.Join(h.LinkSetDown(l), h.LinkSetName(l, "other0"), h.LinkSetUp(l))
		}),
	)
}

// withstands does one harm after another, and waits each time until the node is
// as before: by traffic, by the maps, by what status tells.
func withstands(t *testing.T, all ...harm) {
	b := newBed(t, nil)
	a := b.nodes["a"]
	must.Succeed(t, b.nodes["b"].healthy())
	before := contents(t, a.config)
	for _, h := range all {
		t.Run(h.what, func(t *testing.T) {
			repairs := a.repairs(t)
			mtu, mac := shape(t, b)
			h.do(t, b)
			must.Eventually(t, "the repair", func() error {
				if n := a.repairs(t); n <= repairs {
					return fmt.Errorf("repairs were %d, are %d", repairs, n)
				}
				if l, err := b.workloads["a1"].Link("eth0"); err != nil || l == nil {
					return fmt.Errorf("the workload's device eth0: %v, %v", l, err)
				}
				if err := errors.Join(a.healthy(), b.traffic()); err != nil {
					return err
				}
				// A repair can come between two deletions of a harm.
				if diff := cmp.Diff(before, contents(t, a.config)); diff != "" {
					return fmt.Errorf("the maps differ (-before +now):\n%s", diff)
				}
				return nil
			})
			if nowMTU, nowMAC := shape(t, b); nowMTU != mtu || nowMAC != mac {
				t.Errorf("the workload's device has MTU %d and MAC %s, had %d and %s", nowMTU, nowMAC, mtu, mac)
			}
			for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
				routes := must.Get(netdev.Routes(b.workloads["a1"].Links, family))(t)
				if !netdev.HasDefault(routes) {
					t.Errorf("no default route in family %d", family)
				}
			}
		})
	}
}

// shape is what the workload's device of port a1 has.
func shape(t *testing.T, b *bed) (mtu int, mac string) {
	t.Helper()
	attrs := agenttest.LinkIn(t, b.workloads["a1"], "eth0").Attrs()
	return attrs.MTU, attrs.HardwareAddr.String()
}

func defaultsDeleted(h *netlink.Handle, _ netlink.Link) error {
	var errs []error
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		all, err := netdev.Routes(h, family)
		errs = append(errs, err)
		for _, r := range all {
			if netdev.HasDefault([]netlink.Route{r}) {
				errs = append(errs, h.RouteDel(&r))
			}
		}
	}
	return errors.Join(errs...)
}

func addressesDeleted(h *netlink.Handle, l netlink.Link) error {
	all, err := h.AddrList(l, netlink.FAMILY_ALL)
	errs := []error{err}
	for _, a := range all {
		if !a.IP.IsLinkLocalUnicast() {
			errs = append(errs, h.AddrDel(l, &a))
		}
	}
	return errors.Join(errs...)
}

// emptied deletes what is in a map; an array's entries are made zero.
func emptied(t *testing.T, c config.Config, name string) {
	t.Helper()
	m := pinnedMap(t, c, name)
	all := entries(t, m)
	if len(all) == 0 {
		t.Fatalf("map %s is empty already", name)
	}
	for key := range all {
		err := m.Delete([]byte(key))
		if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) {
			err = m.Put([]byte(key), make([]byte, m.ValueSize()))
		}
		must.Succeed(t, err)
	}
}

// misled adds step to the value of a map's last entry, so that it refers to another object.
func misled(t *testing.T, c config.Config, name string, step byte) {
	t.Helper()
	m := pinnedMap(t, c, name)
	all := entries(t, m)
	if len(all) == 0 {
		t.Fatalf("map %s is empty", name)
	}
	key := slices.Max(slices.Collect(maps.Keys(all)))
	changed := []byte(all[key])
	changed[0] += step
	must.Succeed(t, m.Put([]byte(key), changed))
}

func detached(t *testing.T, c config.Config, pattern string) {
	t.Helper()
	for _, path := range pinned(t, c, pattern) {
		l := must.Get(link.LoadPinnedLink(path, nil))(t)
		must.Succeed(t, errors.Join(l.Detach(), l.Close()))
	}
}

// unpinned removes pins; a link goes with its pin.
func unpinned(t *testing.T, c config.Config, pattern string) {
	t.Helper()
	for _, path := range pinned(t, c, pattern) {
		must.Succeed(t, os.Remove(path))
	}
}

func pinned(t *testing.T, c config.Config, pattern string) []string {
	t.Helper()
	found := must.Get(filepath.Glob(filepath.Join(pinsOf(t, c), pattern)))(t)
	if len(found) == 0 {
		t.Fatalf("nothing is pinned at %s", pattern)
	}
	return found
}

// TestUnmountedPinsAreMountedAndFilledAgain takes programs, maps and links away
// at one blow.
func TestUnmountedPinsAreMountedAndFilledAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	before, was := contents(t, a.config), links(t, a.config)
	must.Succeed(t, unix.Unmount(a.config.PinsDir(), unix.MNT_DETACH))
	must.Eventually(t, "the repair", func() error {
		if a.repairs(t) == 0 {
			return errors.New("no repair")
		}
		return errors.Join(a.healthy(), b.traffic())
	})
	if !datapath.IsMounted(a.config.PinsDir()) {
		t.Error("nothing is mounted there")
	}
	now := contents(t, a.config)
	for _, all := range []map[string]map[string]string{before, now} {
		// The nonce is new too, and these maps have cookies that depend on it.
		for _, name := range []string{"nexthops", "remotes"} {
			for key := range all[name] {
				all[name][key] = ""
			}
		}
	}
	unchanged(t, before, now)
	must.Eventually(t, "links as before", func() error {
		// The kernel may release the old XDP link after the repair, which then uses tcx at first.
		if now := links(t, a.config); len(now) != len(was) || len(now) < 4 {
			return fmt.Errorf("links were %v, are %v", was, now)
		}
		return nil
	})
	// What is read now is the new maps': a drop is told and counted.
	mac := b.state.Ports[0].MAC
	inject(t, b.workloads["a1"], "eth0", 3, datagram(t, mac, mac, "10.7.0.99", "10.7.0.11", 30))
	must.Eventually(t, "the drop log of the new maps", func() error {
		log, err := a.client.DropLog(t.Context())
		if err != nil || len(log) == 0 || log[len(log)-1].Reason != "spoofed_ip" {
			return fmt.Errorf("the drop log is %+v (%v), want spoofed_ip last", log, err)
		}
		return nil
	})
	if told, counted := float64(a.repairs(t)), scrape(t, a)["vrouter_repairs_total"]; told != counted {
		t.Errorf("status tells %v repairs, the metrics %v", told, counted)
	}
	// And they outlive the agent, as the others did.
	a.stop(t)
	must.Succeed(t, b.traffic())
}

// TestXDPIsUsedOnceAnotherProgramIsDetached starts an agent while another XDP program is on the
// fabric device. Packets then pass by tcx. The agent must use XDP when the other program is
// detached, without a restart.
func TestXDPIsUsedOnceAnotherProgramIsDetached(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	fab := agenttest.LinkIn(t, b.A, "fab0").Attrs().Index
	ours := fmt.Sprint("xdp-", fab)
	a.stop(t)
	must.Succeed(t, os.Remove(filepath.Join(pinsOf(t, a.config), "links", ours)))
	passes, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	must.Succeed(t, err)
	defer passes.Close()
	var other link.Link
	must.Eventually(t, "the other program", func() error { // the kernel releases the unpinned link later
		return b.A.Do(func() (err error) {
			other, err = link.AttachXDP(link.XDPOptions{Interface: fab, Program: passes, Flags: link.XDPDriverMode})
			return err
		})
	})
	a = start(t, a.config)
	b.nodes["a"] = a
	must.Succeed(t, b.traffic())
	if now := links(t, a.config); now[ours] != 0 {
		t.Fatalf("the agent has an XDP link beside another program: %v", now)
	}
	must.Succeed(t, other.Close())
	must.Eventually(t, "an XDP link", func() error {
		if now := links(t, a.config); now[ours] == 0 {
			return fmt.Errorf("links are %v", now)
		}
		return errors.Join(a.healthy(), b.traffic())
	})
}

// TestADeletedDeviceIsMadeAgain deletes either end of a workload's veth pair. The agent must
// create the pair again, and packets must pass.
func TestADeletedDeviceIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	for name, s := range map[string]*netdev.Space{a.device(t, "a1"): b.A, "eth0": b.workloads["a1"]} {
		repairs := a.repairs(t)
		old := agenttest.LinkIn(t, b.A, a.device(t, "a1")).Attrs().Index
		must.Succeed(t, s.Links.LinkDel(agenttest.LinkIn(t, s, name)))
		must.Eventually(t, "the pair is made anew", func() error {
			if a.repairs(t) <= repairs {
				return errors.New("no repair")
			}
			return errors.Join(a.healthy(), b.traffic())
		})
		if now := agenttest.LinkIn(t, b.A, a.device(t, "a1")).Attrs().Index; now == old {
			t.Errorf("device %d is the old one", now)
		}
	}
	must.Eventually(t, "a link instead of the first filter", a.linked)
	if n := len(links(t, a.config)); n != 6 { // two vifs and the loopback device with one link each, one fabric device with three
		t.Errorf("%d links are pinned, want 6", n)
	}
}

// TestADeletedNamespaceIsReportedAndConnectedAgainWhenItReturns is about a
// workload's.
func TestADeletedNamespaceIsReportedAndConnectedAgainWhenItReturns(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a, name := b.nodes["a"], b.workloads["a1"].Name
	b.workloads["a1"].Close()
	agenttest.DeleteSpace(name)
	must.Eventually(t, "the report", func() error {
		return a.complains("port a1", "network namespace "+name+" does not exist", "ip netns add "+name)
	})
	if p := a.problemOf(t, "port", "a1"); p.Tries == 0 || time.Until(p.Retry) > 10*time.Second || p.Retry.IsZero() {
		t.Errorf("port a1 is listed as %+v, want a retry in the next seconds", p)
	}
	must.Succeed(t, exchange(b.workloads["a2"], b.workloads["b1"], "10.7.0.11"))
	b.workloads["a1"] = agenttest.NamedSpace(t, name)
	must.Eventually(t, "the port in its new namespace", func() error { return errors.Join(a.healthy(), b.traffic()) })
}

// TestTheUnderlaysChangesAreFollowed: routes, MTU, addresses, devices.
func TestTheUnderlaysChangesAreFollowed(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	const overhead = 32
	fits := func(outer int) func() error {
		return func() error {
			if got := a.tunnelMTU(t, "172.31.0.2"); got != outer-overhead {
				return fmt.Errorf("the tunnel's MTU is %d, want %d", got, outer-overhead)
			}
			if mtu, _ := shape(t, b); mtu != outer-overhead {
				return fmt.Errorf("the workload's MTU is %d, want %d", mtu, outer-overhead)
			}
			return errors.Join(a.healthy(), b.traffic())
		}
	}
	must.Succeed(t, fits(agenttest.UnderlayMTU)())
	t.Run("the device's MTU", func(t *testing.T) {
		must.Succeed(t, b.A.Links.LinkSetMTU(agenttest.LinkIn(t, b.A, "fab0"), 1550))
		must.Eventually(t, "smaller", fits(1550))
		must.Succeed(t, b.A.Links.LinkSetMTU(agenttest.LinkIn(t, b.A, "fab0"), agenttest.UnderlayMTU))
		must.Eventually(t, "as before", fits(agenttest.UnderlayMTU))
	})
	t.Run("a route's MTU", func(t *testing.T) {
		narrow := &netlink.Route{LinkIndex: agenttest.LinkIn(t, b.A, "fab0").Attrs().Index, Dst: netdev.IPNet(netip.MustParsePrefix("172.31.0.2/32")), Scope: netlink.SCOPE_LINK, MTU: 1500}
		must.Succeed(t, b.A.Links.RouteAdd(narrow))
		must.Eventually(t, "smaller", func() error {
			if got := a.tunnelMTU(t, "172.31.0.2"); got != 1500-overhead {
				return fmt.Errorf("the tunnel's MTU is %d", got)
			}
			return errors.Join(a.healthy(), b.traffic())
		})
		must.Succeed(t, b.A.Links.RouteDel(narrow))
		must.Eventually(t, "as before", fits(agenttest.UnderlayMTU))
	})
	t.Run("no route", func(t *testing.T) {
		none := &netlink.Route{Dst: netdev.IPNet(netip.MustParsePrefix("172.31.0.2/32")), Type: unix.RTN_UNREACHABLE}
		must.Succeed(t, b.A.Links.RouteAdd(none))
		must.Eventually(t, "the report", func() error { return a.complains("no route from 172.31.0.1 to 172.31.0.2") })
		if p := a.problemOf(t, "tunnel", "b"); !strings.Contains(p.Text, "no way through the underlay") || !p.Retry.IsZero() {
			t.Errorf("the problem of the tunnel to node b is %+v", p)
		}
		must.Succeed(t, exchange(b.workloads["a2"], b.workloads["a1"], "10.7.0.10"))
		must.Succeed(t, b.A.Links.RouteDel(none))
		must.Eventually(t, "as before", fits(agenttest.UnderlayMTU))
	})
	t.Run("the address", func(t *testing.T) {
		address := &netlink.Addr{IPNet: netdev.IPNet(netip.MustParsePrefix("172.31.0.1/24"))}
		must.Succeed(t, b.A.Links.AddrDel(agenttest.LinkIn(t, b.A, "fab0"), address))
		must.Eventually(t, "the report", func() error {
			return a.complains("no device has this node", "172.31.0.1", "add the address to a device")
		})
		must.Succeed(t, exchange(b.workloads["a2"], b.workloads["a1"], "10.7.0.10"))
		must.Succeed(t, b.A.Links.AddrAdd(agenttest.LinkIn(t, b.A, "fab0"), address))
		must.Eventually(t, "as before", fits(agenttest.UnderlayMTU))
	})
	t.Run("the device is down", func(t *testing.T) {
		must.Succeed(t, b.A.Links.LinkSetDown(agenttest.LinkIn(t, b.A, "fab0")))
		must.Eventually(t, "the report", func() error { return a.complains("fab0", "down") })
		must.Succeed(t, b.A.Links.LinkSetUp(agenttest.LinkIn(t, b.A, "fab0")))
		must.Eventually(t, "as before", fits(agenttest.UnderlayMTU))
	})
	t.Run("the device is unplugged", func(t *testing.T) {
		must.Succeed(t, b.A.Links.LinkDel(agenttest.LinkIn(t, b.A, "fab0")))
		must.Eventually(t, "the report", func() error { return a.complains("no device has this node", "172.31.0.1") })
		must.Succeed(t, exchange(b.workloads["a2"], b.workloads["a1"], "10.7.0.10"))
		agenttest.Joined(t, b.A, b.B, "fab0", "fab0", agenttest.UnderlayMTU)
		agenttest.Addressed(t, b.A, "fab0", "172.31.0.1/24")
		agenttest.Addressed(t, b.B, "fab0", "172.31.0.2/24")
		must.Eventually(t, "as before", fits(agenttest.UnderlayMTU))
		must.Equal(t, 6, len(links(t, a.config)))
	})
}

// TestALinkThatIsCutCarriesNoPackets has two underlay links. A node must leave the link without
// carrier, and report it. The kernel keeps the route of a device that is up and has no carrier.
func TestALinkThatIsCutCarriesNoPackets(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	uses := b.addLink(t)
	must.Succeed(t, b.B.Links.LinkSetDown(agenttest.LinkIn(t, b.B, "fab1")))
	must.Eventually(t, "one link", uses("fab0"))
	must.Eventually(t, "the report", func() error { return a.complains("fab1", "no carrier") })
	must.Succeed(t, b.B.Links.LinkSetUp(agenttest.LinkIn(t, b.B, "fab1")))
	must.Eventually(t, "two links again", uses("fab0", "fab1"))
	must.Eventually(t, "no problem", a.healthy)
}

// A link that is cut at the far end keeps its carrier at this end. The node must stop using the link
// when the other node does not answer on it. No ECMP route is necessary for that.
func TestALinkOnWhichANodeIsSilentCarriesNoPackets(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *config.Config) { c.Liveness = 50 * time.Millisecond })
	uses := b.addLink(t)
	far := &netlink.Addr{IPNet: netdev.IPNet(netip.MustParsePrefix("172.31.1.2/24"))}
	must.Eventually(t, "replies", func() error { // at least three of each address
		var text []byte
		must.Succeed(t, b.A.Do(func() (err error) { text, err = os.ReadFile("/proc/thread-self/net/snmp"); return err }))
		var names, values []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "IcmpMsg:") {
				names, values = values, strings.Fields(line)
			}
		}
		at := slices.Index(names, "InType0")
		if at < 0 {
			return errors.New("no echo reply")
		}
		if n, err := strconv.Atoi(values[at]); err != nil || n < 10 {
			return fmt.Errorf("%s echo replies, %w", values[at], err)
		}
		return nil
	})
	must.Succeed(t, b.B.Links.AddrDel(agenttest.LinkIn(t, b.B, "fab1"), far))
	must.Eventually(t, "one link", uses("fab0"))
	must.Eventually(t, "the report", func() error { return b.nodes["a"].complains("node \"b\" does not answer", "172.31.1.2") })
	must.Succeed(t, b.B.Links.AddrAdd(agenttest.LinkIn(t, b.B, "fab1"), far))
	must.Eventually(t, "two links again", uses("fab0", "fab1"))
	must.Eventually(t, "no problem", b.nodes["a"].healthy)
}

// addLink adds a second link between the nodes. It returns a function that makes a check whether
// the paths of node a to node b leave by some devices.
func (b *bed) addLink(t *testing.T) (uses func(devices ...string) func() error) {
	t.Helper()
	agenttest.Joined(t, b.A, b.B, "fab1", "fab1", agenttest.UnderlayMTU)
	agenttest.Addressed(t, b.A, "fab1", "172.31.1.1/24")
	agenttest.Addressed(t, b.B, "fab1", "172.31.1.2/24")
	b.state.Nodes = slices.Clone(b.state.Nodes)
	b.state.Nodes[0].Underlay = append(b.state.Nodes[0].Underlay, netip.MustParseAddr("172.31.1.1"))
	b.state.Nodes[1].Underlay = append(b.state.Nodes[1].Underlay, netip.MustParseAddr("172.31.1.2"))
	b.apply(t, "a", b.state)
	b.apply(t, "b", b.state)
	uses = func(want ...string) func() error {
		return func() error {
			rows := must.Get(b.nodes["a"].client.Nexthops(context.Background(), 0))(t)
			for _, row := range rows {
				var devices []string
				for _, p := range row.Paths {
					devices = append(devices, p.Device)
				}
				if row.Type == "tunnel" && !slices.Equal(devices, want) {
					return fmt.Errorf("the paths to node b leave by %q, want %q", devices, want)
				}
			}
			return b.traffic()
		}
	}
	must.Eventually(t, "two links", uses("fab0", "fab1"))
	return uses
}

// The data path reads and writes Ethernet headers, so a node must not use a device without them.
func TestAnUnderlayDeviceWithoutEthernetIsRefused(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, nil, "a")
	must.Succeed(t, b.A.Once(func() error {
		return netlink.LinkAdd(&netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: "tun0"}, Mode: netlink.TUNTAP_MODE_TUN})
	}))
	must.Succeed(t, b.A.Links.LinkSetUp(agenttest.LinkIn(t, b.A, "tun0")))
	agenttest.Addressed(t, b.A, "tun0", "172.31.1.1/24")
	b.state.Nodes = slices.Clone(b.state.Nodes)
	b.state.Nodes[0].Underlay = append(b.state.Nodes[0].Underlay, netip.MustParseAddr("172.31.1.1"))
	b.state.Nodes[1].Underlay = append(b.state.Nodes[1].Underlay, netip.MustParseAddr("172.31.1.2"))
	b.apply(t, "a", b.state)
	for range 2 { // also in a pass that looks up only what changed
		must.Succeed(t, b.nodes["a"].complains("fabric device tun0 has no Ethernet header"))
		must.Succeed(t, b.nodes["a"].complains("the route from 172.31.1.1 to 172.31.1.2 leaves by device tun0, which has no Ethernet header"))
		b.state.Routes = nil
		b.apply(t, "a", b.state)
	}
	for name := range links(t, b.nodes["a"].config) {
		if strings.HasSuffix(name, fmt.Sprintf("-%d", agenttest.LinkIn(t, b.A, "tun0").Attrs().Index)) {
			t.Errorf("tun0 has a program: %s", name)
		}
	}
}

// In a network that bridges, workloads have neighbour entries of each other. A port's new MAC
// address must reach them at once: entries that TCP uses are not asked again for up to 49 s.
func TestANewMACIsAnnouncedToNeighbours(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	b.state.Networks = slices.Clone(b.state.Networks)
	b.state.Networks[0].Forwarding = model.L2L3
	b.apply(t, "a", b.state)
	b.apply(t, "b", b.state)
	must.Eventually(t, "traffic", b.traffic)
	knows := func(from, address string, mac model.MAC) error {
		entries := must.Get(b.workloads[from].Links.NeighList(0, netlink.FAMILY_ALL))(t)
		for _, e := range entries {
			if e.IP.String() == address && e.HardwareAddr.String() == mac.String() {
				return nil
			}
		}
		return fmt.Errorf("%s does not know that %s has %s: %v", from, address, mac, entries)
	}
	for _, w := range []string{"b1", "a2"} {
		entries, err := b.workloads[w].Links.NeighList(0, netlink.FAMILY_ALL) // with the router's MAC address
		must.Succeed(t, err)
		for _, e := range entries {
			must.Succeed(t, b.workloads[w].Links.NeighDel(&e))
		}
		for _, address := range []string{"10.7.0.10", "fd07::10"} {
			must.Succeed(t, exchange(b.workloads[w], b.workloads["a1"], address))
			must.Succeed(t, knows(w, address, b.state.Ports[0].MAC))
		}
	}
	all := b.state.Ports
	for i, between := range []bool{false, true} { // whether the port is deleted before the new one
		if between {
			b.state.Ports = all[1:]
			b.apply(t, "a", b.state)
			b.apply(t, "b", b.state)
		}
		b.state.Ports = slices.Clone(all)
		b.state.Ports[0].MAC = model.MAC{2, 0, 0, 0, 7, byte(90 + i)}
		b.apply(t, "a", b.state)
		b.apply(t, "b", b.state)
		for _, address := range []string{"10.7.0.10", "fd07::10"} {
			for _, w := range []string{"b1", "a2"} {
				must.Eventually(t, "the announcement", func() error { return knows(w, address, b.state.Ports[0].MAC) })
			}
		}
		must.Eventually(t, "traffic", b.traffic)
	}
}
