package netns

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

func usableCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

func TestThreeNodesReachEachOther(t *testing.T) {
	for _, system := range []string{"raw", "bridge", "vxlan"} {
		t.Run(system, func(t *testing.T) {
			tb := up(t, executor(t), 3, fabric(nil))
			endpoint := attach(t, tb, system)
			mtu := 1500
			if system == "vxlan" {
				mtu = 1450
			}
			for from := range 3 {
				for to := range 3 {
					if from != to {
						prove(t, tb, endpoint, from, to, 4, mtu)
						prove(t, tb, endpoint, from, to, 6, mtu)
					}
				}
			}
		})
	}
}

func TestJumboFramesArriveWhole(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.MTU = 9000 }))
	prove(t, tb, "", 0, 1, 4, 9000)
	largest := watchFrames(t, tb)
	flow{network: "tcp", duration: 300 * time.Millisecond}.run(t, tb, "")
	if n := largest(); n != 9000+meter.EthernetHeader {
		t.Errorf("the largest frame has %d bytes, want 9014", n)
	}
}

// With several flows every parallel link carries some, and their addresses
// stay the same. Which link a flow takes is by chance: there are flows until both
// have had one.
func TestParallelLinksShareTheFlows(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.Links, f.Queues = 2, 2 }))
	prove(t, tb, "", 0, 1, 6, 1500)
	flows := 1
	for slices.Min(carried(t, tb, 1)) < 10<<20 && flows < 40 {
		prove(t, tb, "", 0, 1, 4, 1500)
		flows++
	}
	for l, n := range carried(t, tb, 1) {
		if n < 10<<20 {
			t.Errorf("link %d carried %d bytes of %d flows of 10 MiB", l, n, flows)
		}
	}
}

// A rate limits what passes. TCP fills the short queue at the start and loses some segments.
func TestARateLimitsTheWire(t *testing.T) {
	tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.Rate = 100e6 }))
	before, began := countersOf(t, tb), time.Now()
	bytes := flow{network: "tcp", duration: time.Second}.run(t, tb, "")
	allowed := 100e6 / 8 * time.Since(began).Seconds()
	// Frames on the wire, with their headers, are never more than the rate
	// allows, and a first burst.
	if float64(bytes) > allowed || float64(bytes) < allowed/10 {
		t.Errorf("%d bytes passed, want at most %.0f at 100 Mbit/s and a tenth of that or more", bytes, allowed)
	}
	if c := arrived(t, tb, before); c.segments == 0 || c.lost() > c.segments/20 {
		t.Errorf("%d of %d segments were lost", c.lost(), c.segments)
	}
}

// A link never carries more than its rate and 1 %. On a quiet machine that can fill it, it also
// carries 99 % of the rate: a bridge sends jumbo frames, which need less CPU time. Other
// programs may take the CPUs, so the best of three trials counts.
func TestARateIsExactToOnePercent(t *testing.T) {
	quiet := os.Getenv("WINDTUNNEL_TIMING_TESTS") != ""
	for _, rate := range []float64{2e9, 10e9} {
		t.Run(fmt.Sprintf("%g Gbit/s", rate/1e9), func(t *testing.T) {
			var free, best float64
			for range 3 {
				got := framesPerSecond(t, int64(rate))
				if got == 0 || got > 1.01*rate {
					t.Fatalf("a link of %g Gbit/s carries %.3f Gbit/s of frames", rate/1e9, got/1e9)
				}
				if best = max(best, got); !quiet || best >= 0.99*rate {
					return
				}
				free = max(free, framesPerSecond(t, 0))
				t.Logf("%.3f Gbit/s of frames, %.3f without a rate", got/1e9, free/1e9)
			}
			if free < 1.25*rate {
				t.Skipf("without a rate the bridge carries %.2f Gbit/s of frames: too little to fill a link of %g", free/1e9, rate/1e9)
			}
			t.Errorf("a link of %g Gbit/s carries %.3f Gbit/s of frames at most", rate/1e9, best/1e9)
		})
	}
}

// framesPerSecond is what a link of a rate (0: none) carries from a bridge, in bit/s
// with the Ethernet headers.
func framesPerSecond(t *testing.T, rate int64) float64 {
	t.Helper()
	tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.Rate, f.MTU = rate, 9000 }))
	endpoint := attach(t, tb, "bridge")
	bits := make(chan float64, 1)
	go func() {
		time.Sleep(500 * time.Millisecond)
		before, began := receivedBy(t, tb, 1, 0), time.Now()
		time.Sleep(time.Second)
		after, took := receivedBy(t, tb, 1, 0), time.Since(began)
		// A veth that polls counts bytes without the Ethernet header.
		bytes := after.RxBytes - before.RxBytes + meter.EthernetHeader*(after.RxPackets-before.RxPackets)
		bits <- 8 * float64(bytes) / took.Seconds()
	}()
	flow{network: "tcp", duration: 1800 * time.Millisecond}.run(t, tb, endpoint)
	must.Succeed(t, tb.Down(context.Background()))
	return <-bits
}

func TestTheOffloadProfileIsTheNICs(t *testing.T) {
	for profile, want := range map[suite.Offload]string{
		suite.OffloadNone:   "",
		suite.OffloadTCP:    "tx-tcp-segmentation tx-tcp6-segmentation",
		suite.OffloadTunnel: "tx-gre-segmentation tx-tcp-segmentation tx-tcp6-segmentation tx-udp_tnl-segmentation",
	} {
		tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.Offload = profile }))
		on := must.Get(tb.nodes[0].space.OffloadsOn(fabricDevice(0, 0)))(t)
		text := " " + strings.Join(on, " ") + " "
		for _, f := range []string{"tx-gre-segmentation", "tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-udp_tnl-segmentation"} {
			if has, should := strings.Contains(text, " "+f+" "), strings.Contains(want, f); has != should {
				t.Errorf("profile %s: %s on is %v, want %v", profile, f, has, should)
			}
		}
		if err := tb.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestCoalescingIsTheFabrics(t *testing.T) {
	for _, c := range []struct {
		off                   bool
		polls, flush, example string
	}{{false, "10", "50000", "coalescing 50 µs"}, {true, "0", "0", "no coalescing"}} {
		tb := up(t, executor(t), 2, fabric(func(f *suite.Fabric) { f.NoCoalescing = c.off }))
		if about := tb.Describe(); !strings.Contains(about, c.example) {
			t.Errorf("described as %q, which lacks %q", about, c.example)
		}
		for _, n := range tb.nodes {
			for file, want := range map[string]string{"napi_defer_hard_irqs": c.polls, "gro_flush_timeout": c.flush, "threaded": "1"} {
				if got, err := n.space.ReadSysfs(fabricDevice(n.index, 0) + "/" + file); err != nil || got != want {
					t.Errorf("coalescing off %v: node %s has %s %q (%v), want %s", c.off, n.Name(), file, got, err, want)
				}
			}
			checkNAPIPriority(t, n)
		}
		if err := tb.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// napiOf lists the threads that poll the receive queues of a node's first NIC.
func napiOf(t *testing.T, n *node) []int {
	t.Helper()
	l, err := n.space.Link(fabricDevice(n.index, 0))
	must.Succeed(t, err)
	pids, err := napiThreads(n.space, l.Attrs().Index)
	if err != nil || len(pids) == 0 {
		pids, err = space.NAPIThreads(l.Attrs().Name)
	}
	if err != nil || len(pids) == 0 {
		t.Fatalf("NAPI threads of node %s: %v (%v)", n.Name(), pids, err)
	}
	return pids
}

// checkNAPIPriority asserts that a node's NIC preempts applications.
func checkNAPIPriority(t *testing.T, n *node) {
	t.Helper()
	for _, pid := range napiOf(t, n) {
		// The system call returns 20 − nice, so that it is never negative.
		if got, err := unix.Getpriority(unix.PRIO_PROCESS, pid); err != nil || got != 20-napiNice {
			t.Errorf("NAPI thread %d of node %s: 20 − nice is %d (%v), want %d", pid, n.Name(), got, err, 20-napiNice)
		}
	}
}

func TestSettingsSeparateSysctlsOffloadsAndOthers(t *testing.T) {
	set := up(t, executor(t), 2, fabric(nil)).Settings()
	for want, got := range map[string]string{
		"1":     set.Sysctls["b net.ipv4.ip_forward"],
		"on":    set.Offloads["a faba0 tx-tcp-segmentation"],
		"off":   set.Offloads["wire portb0 tx-tcp-segmentation"],
		"50000": set.Others["b fabb0/gro_flush_timeout"],
		"-10":   set.Others["b fabb0/napi nice"],
	} {
		if got != want {
			t.Errorf("%q, want %q, of %+v", got, want, set)
		}
	}
	for name, value := range set.Offloads {
		if !slices.Contains([]string{"on", "off", "absent"}, value) {
			t.Errorf("%s is recorded as an offload, with %q", name, value)
		}
	}
	for name := range set.Sysctls {
		if !strings.Contains(name, " net.") {
			t.Errorf("%s is recorded as a sysctl", name)
		}
	}
}

// Bringing a testbed up and down leaves the host as it was.
func TestTheHostStaysAsItWas(t *testing.T) {
	x := executor(t)
	state := func() string {
		var b strings.Builder
		for _, f := range []string{"/proc/thread-self/net/dev", "/proc/thread-self/net/route", "/proc/thread-self/net/if_inet6"} {
			text, _ := os.ReadFile(f)
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "wts") { // a device of the tests of hosts, which run at the same time
					continue
				}
				b.WriteString(strings.Fields(line + " -")[0] + "\n")
			}
		}
		for _, f := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/core/netdev_max_backlog", "/proc/sys/net/core/rmem_max", "/proc/sys/net/ipv4/tcp_congestion_control"} {
			text, _ := os.ReadFile(f)
			b.Write(text)
		}
		return b.String()
	}
	before := state()
	tb := up(t, x, 2, fabric(nil))
	attach(t, tb, "vxlan")
	prove(t, tb, "c1", 0, 1, 4, 1450)
	must.Succeed(t, tb.Down(context.Background()))
	must.Equal(t, before, state())
}

func TestAFabricThatCannotBeBuiltIsRefusedWithTheReason(t *testing.T) {
	x := executor(t)
	for _, c := range []struct {
		nodes int
		f     suite.Fabric
		say   string
	}{
		{3, fabric(func(f *suite.Fabric) { f.Kind = suite.Veth }), "kind: wire"},
		{2, fabric(func(f *suite.Fabric) { f.Kind, f.Links = suite.Veth, 2 }), "kind: wire"},
		{2, fabric(func(f *suite.Fabric) { f.Kind, f.Rate = suite.Veth, 1e9 }), "no rate"},
		{2, fabric(func(f *suite.Fabric) { f.CPUs = 1000 }), "run on a machine with more CPUs"},
	} {
		tb, err := x.Up(context.Background(), testbed.Spec{ID: testID(t), Nodes: c.nodes, Fabric: c.f})
		if err == nil {
			tb.Down(context.Background())
		}
		must.Fail(t, err, c.say)
		left, err := space.Named(space.TestbedPrefix(testID(t)))
		if err != nil || len(left) > 0 {
			t.Errorf("the refused testbed left %v (%v)", left, err)
		}
	}
	one := &Executor{CPUs: x.CPUs[:1], Agent: x.Agent}
	_, err := one.Up(context.Background(), testbed.Spec{ID: testID(t), Nodes: 2, Fabric: fabric(nil)})
	must.Fail(t, err, "2 CPUs or more")
}

// Testbeds that follow each other closely do not trip over what is left of the
// one before: its namespaces and NAPI threads end in the kernel's own time.
func TestTestbedsCanFollowEachOtherWithoutAPause(t *testing.T) {
	x := executor(t)
	for i := range 12 {
		tb, err := x.Up(context.Background(), testbed.Spec{ID: testID(t), Nodes: 2, Fabric: fabric(nil)})
		if err != nil {
			t.Fatalf("testbed %d: %v", i+1, err)
		}
		must.Succeed(t, tb.Down(context.Background()))
	}
}
