package meter

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"windtunnel/internal/must"
)

const second = int64(1e9)

// edges are two readings of a quiet node, 2 s apart.
func edges() (a, b Reading) {
	dev := DeviceReading{Name: "fab", Role: RoleFabric, Index: 7, Qdisc: Qdisc{Kind: "pfifo", Handle: 1}}
	a = Reading{Node: "a", Mono: 10 * second, CPUs: map[int]CPUTimes{0: {Idle: 1000}}, Self: 5e6,
		Namespaces: []NamespaceReading{{Counters: Counters{TCPOutSegs: 10}, Devices: []DeviceReading{dev}}}}
	b = Reading{Node: "a", Mono: 12 * second, CPUs: map[int]CPUTimes{0: {Idle: 1200}}, Self: 8e6,
		Namespaces: []NamespaceReading{{Counters: Counters{TCPOutSegs: 25}, Devices: []DeviceReading{dev}}}}
	return a, b
}

func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance }

func TestBusyIsTheWindowLessIdleAndSplitsByTicks(t *testing.T) {
	a := CPUTimes{User: 100, System: 100, Idle: 1000, IOWait: 50, Softirq: 10, IRQ: 5, Steal: 3}
	// Of 3 s: 1 s idle, 0.2 s iowait, 0.1 s steal, so 1.7 s busy; but only 85
	// ticks were seen busy, half as many as it took.
	b := CPUTimes{User: 110, Nice: 7, System: 134, Idle: 1100, IOWait: 70, Softirq: 39, IRQ: 10, Steal: 13}
	u := must.Get(usage(0, a, b, 3*time.Second))(t)
	want := Usage{Busy: 1.7, User: 0.34, System: 0.68, Softirq: 0.58, IRQ: 0.1, Idle: 1, IOWait: 0.2, Steal: 0.1}
	for _, x := range []struct {
		name      string
		got, want float64
	}{
		{"busy", u.Busy, want.Busy}, {"user", u.User, want.User}, {"system", u.System, want.System}, {"softirq", u.Softirq, want.Softirq},
		{"irq", u.IRQ, want.IRQ}, {"idle", u.Idle, want.Idle}, {"iowait", u.IOWait, want.IOWait}, {"steal", u.Steal, want.Steal},
	} {
		if !near(x.got, x.want, 1e-9) {
			t.Errorf("%s %v, want %v", x.name, x.got, x.want)
		}
	}
}

func TestIdleToTheNanosecondReplacesTicksThatAgree(t *testing.T) {
	a := CPUTimes{Idle: 1000, FineIdle: 10_001_000_000}
	b := CPUTimes{Idle: 1099, User: 90, FineIdle: 10_998_500_000}
	u, err := usage(0, a, b, 2*time.Second)
	must.Succeed(t, err)
	if !near(u.Busy, 1.0025, 1e-9) {
		t.Errorf("busy for %v s, want 1.0025", u.Busy)
	}
	b.FineIdle = 12_000_000_000 // a second more than the ticks have
	if u, err = usage(0, a, b, 2*time.Second); err != nil || !near(u.Busy, 1.01, 1e-9) {
		t.Errorf("busy for %v s, want 1.01 by the ticks alone (%v)", u.Busy, err)
	}
}

func TestTheBusyTimeOfAnIdleCPUIsNotNegative(t *testing.T) {
	u, err := usage(0, CPUTimes{Idle: 1000}, CPUTimes{Idle: 1202}, 2*time.Second) // one tick or two beyond the window
	must.Succeed(t, err)
	if u.Busy != 0 || u.Idle != 2 {
		t.Errorf("the CPU has %+v, want 2 s idle", u)
	}
	// Iowait may fall; the kernel moves it between CPUs.
	if u, err = usage(0, CPUTimes{Idle: 1000, IOWait: 40}, CPUTimes{Idle: 1100, IOWait: 30}, 2*time.Second); err != nil || u.Busy != 1 {
		t.Errorf("the CPU has %+v (%v), want 1 s busy", u, err)
	}
}

func TestTheFabricsWorkIsSubtractedFromSoftirqFirst(t *testing.T) {
	u := Usage{Busy: 1, User: 0.2, System: 0.5, Softirq: 0.3}
	got := u.without(0.4)
	if !near(got.Busy, 0.6, 1e-12) || got.Softirq != 0 || !near(got.System, 0.4, 1e-12) || got.User != 0.2 {
		t.Errorf("the rest is %+v, want 0.6 s busy, without softirqs", got)
	}
	if got := u.without(5); !near(got.Busy+got.User+got.System+got.Softirq, 0, 1e-12) {
		t.Errorf("more than all: %+v", got)
	}
}

func TestReadingsThatCannotBeComparedAreErrorsWithTheReason(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(a, b *Reading)
		want   string
	}{
		{"no length", func(a, b *Reading) { b.Mono = a.Mono }, "must be taken after"},
		{"swapped", func(a, b *Reading) { *a, *b = *b, *a }, "must be taken after"},
		{"CPU offline at the end", func(a, b *Reading) { b.CPUs = map[int]CPUTimes{} }, "offline"},
		{"CPU online at the end only", func(a, b *Reading) { a.CPUs = map[int]CPUTimes{} }, "offline"},
		{"idle for longer than the window", func(a, b *Reading) { b.CPUs = map[int]CPUTimes{0: {Idle: 1300}} }, "the clock jumped"},
		{"idle counted anew", func(a, b *Reading) { b.CPUs = map[int]CPUTimes{0: {Idle: 20}} }, "went back"},
		{"user time went back", func(a, b *Reading) { a.CPUs = map[int]CPUTimes{0: {Idle: 1000, User: 100}} }, "went back"},
		{"device made anew", func(a, b *Reading) { b.Namespaces[0].Devices = []DeviceReading{{Name: "fab", Index: 8}} }, "removed, added or replaced"},
		{"device gone", func(a, b *Reading) { b.Namespaces[0].Devices = nil }, "removed, added or replaced"},
		{"namespace gone", func(a, b *Reading) { b.Namespaces = nil }, "removed, added or replaced"},
		{"another namespace", func(a, b *Reading) { b.Namespaces[0].Name = "c1" }, "removed, added or replaced"},
		{"segments went back", func(a, b *Reading) { b.Namespaces[0].Counters = Counters{TCPOutSegs: 9} }, "went back"},
	} {
		a, b := edges()
		x.change(&a, &b)
		_, err := Window(a, b)
		must.Fail(t, err, x.want)
	}
}

func TestCountersOf32BitsMayWrapOnce(t *testing.T) {
	if n, err := since("x", 1<<32-10, 5); n != 15 || err != nil {
		t.Errorf("the counter grew by %d (%v), want 15", n, err)
	}
	if _, err := since("x", 1<<33, 5); err == nil {
		t.Error("a 64-bit counter went back unnoticed")
	}
	if _, err := since("x", 1000, 5); err == nil {
		t.Error("a small counter went back unnoticed")
	}
}

func TestAWindowHasTheDifferencesBetweenItsReadings(t *testing.T) {
	a, b := edges()
	b.Namespaces[0].Devices = []DeviceReading{{Name: "fab", Role: RoleFabric, Index: 7, Traffic: Traffic{RxBytes: 3000, RxPackets: 2}, RxBare: 2,
		Qdisc: Qdisc{Kind: "pfifo", Handle: 1, Drops: 3}}}
	d := must.Get(Window(a, b))(t)
	dev := d.Namespaces[0].Devices[0]
	if d.Seconds != 2 || d.CPUs[0].Busy != 0 || d.Namespaces[0].Counters[TCPOutSegs] != 15 || !near(d.Observer, 0.003, 1e-12) {
		t.Errorf("the window is %+v, want 2 s with 15 segments and 3 ms of the observer", d)
	}
	if dev.RxBytes != 3000 || dev.ReceivedBytes() != 3028 || dev.Qdisc.Drops != 3 {
		t.Errorf("the device has %+v, want 3000 bytes and 3 drops", dev)
	}
	if len(d.Warnings) != 0 {
		t.Errorf("warnings: %q", d.Warnings)
	}
}

func TestANewQueueingDisciplineIsAWarning(t *testing.T) {
	a, b := edges()
	a.Namespaces[0].Devices[0].Qdisc.Drops = 50
	b.Namespaces[0].Devices = []DeviceReading{{Name: "fab", Role: RoleFabric, Index: 7, Qdisc: Qdisc{Kind: "tbf", Handle: 2, Drops: 3}}}
	d := must.Get(Window(a, b))(t)
	if len(d.Warnings) != 1 || d.Namespaces[0].Devices[0].Qdisc.Drops != 3 {
		t.Errorf("the warnings are %q and the device has %+v, want one warning and 3 drops", d.Warnings, d.Namespaces[0].Devices[0])
	}
}

func TestSocketsArePairedByCookie(t *testing.T) {
	local, remote := netip.MustParseAddrPort("10.0.0.1:1"), netip.MustParseAddrPort("10.0.0.2:2")
	a := []Socket{{Local: local, Remote: remote, Cookie: 1, BytesAcked: 100, TotalRetrans: 1<<32 - 2}, {Cookie: 2, BytesAcked: 7}}
	b := []Socket{{Local: local, Remote: remote, Cookie: 1, BytesAcked: 250, TotalRetrans: 8, RTT: 9}, {Cookie: 3, BytesAcked: 11}}
	got := socketWindow(a, b)
	if len(got) != 2 {
		t.Fatalf("%d sockets", len(got))
	}
	if s := got[0]; s.New || s.BytesAcked != 150 || s.TotalRetrans != 10 || s.RTT != 9 {
		t.Errorf("the first socket has %+v, want 150 acknowledged bytes and 10 retransmits", s)
	}
	if s := got[1]; !s.New || s.BytesAcked != 11 {
		t.Errorf("the second socket has %+v, want a new one with 11 acknowledged bytes", s)
	}
}

func TestToolTimeIncludesChildrenThatEnded(t *testing.T) {
	a, b := edges()
	a.Processes = []Process{{Label: "tool", PID: 10, Start: 1, CPU: 1e9}, {Label: "tool", PID: 11, Parent: 10, Start: 2, CPU: 4e9}}
	b.Processes = []Process{{Label: "tool", PID: 10, Start: 1, CPU: 2e9, Waited: 5e9}, {Label: "tool", PID: 12, Parent: 10, Start: 3, CPU: 5e8}}
	d := must.Get(Window(a, b))(t)
	if !near(d.Tools["tool"], 2.5, 1e-9) {
		t.Errorf("%v CPU seconds, want 1 of the parent, 1 of the ended child, 0.5 of the new one", d.Tools["tool"])
	}
}

func TestToolThatEndedInTheWindowHasNoFigure(t *testing.T) {
	a, b := edges()
	a.Processes = []Process{{Label: "tool", PID: 10, Start: 1, CPU: 1e9, Name: "iperf3"}, {Label: "tool", PID: 20, Start: 1, CPU: 1}}
	b.Processes = []Process{{Label: "tool", PID: 20, Start: 1, CPU: 9e9}}
	d := must.Get(Window(a, b))(t)
	if s, ok := d.Tools["tool"]; ok || len(d.Warnings) != 1 {
		t.Errorf("%v s, warnings %q", s, d.Warnings)
	}
}

// The host took the CPU away for a fifth of the time in which it was not idle.
// The fabric's clock continued meanwhile.
func TestStealIsSharedOutAmongNodeAndFabric(t *testing.T) {
	u := Usage{Busy: 0.8, Softirq: 0.8, Steal: 0.2}.without(0.5)
	if !near(u.Busy, 0.4, 1e-9) || !near(u.Softirq, 0.4, 1e-9) {
		t.Errorf("busy %v s, softirq %v s, want 0.4", u.Busy, u.Softirq)
	}
	if u := (Usage{Busy: 0.1, Softirq: 0.1, Steal: 0.9}).without(1); u.Busy != 0 {
		t.Errorf("busy %v s where all was the fabric's", u.Busy)
	}
}

// A CPU that was idle for half of the window, and lost at least the rest to its
// host, has done nothing. This is not a jump of the clock.
func TestStealMayOverlapIdleTime(t *testing.T) {
	u, err := usage(0, CPUTimes{}, CPUTimes{Idle: 50, Steal: 60}, time.Second)
	if err != nil || u.Idle != 0.5 || u.Steal != 0.5 || u.Busy != 0 {
		t.Errorf("the CPU has %+v (%v), want half idle and half stolen", u, err)
	}
	// The CPU did at least the work that the timer interrupt saw.
	u, err = usage(0, CPUTimes{}, CPUTimes{Idle: 50, Steal: 60, User: 5, Softirq: 15}, time.Second)
	if err != nil || !near(u.Busy, 0.2, 1e-9) || !near(u.Steal, 0.3, 1e-9) || !near(u.Softirq, 0.15, 1e-9) {
		t.Errorf("the CPU has %+v (%v), want 0.2 s busy and 0.3 s stolen", u, err)
	}
}
