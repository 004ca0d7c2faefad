package experiment

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/program"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/vm"
	"windtunnel/lab/vm/kernel"
)

// vmScenario is a scenario whose endpoints are VMs; it skips where they cannot
// be had.
func vmScenario(t *testing.T, system string, change func(*suite.Scenario)) suite.Scenario {
	t.Helper()
	if _, err := exec.LookPath(vm.Program); err != nil {
		t.Skipf("%s is not installed", vm.Program)
	}
	if _, err := kernel.Find(); err != nil {
		t.Skip(err)
	}
	return scenario(system, func(sc *suite.Scenario) {
		sc.Workload.Rate = 50e6 // emulated CPUs reach it too
		sc.Endpoint = suite.Endpoint{Name: "guest", Kind: suite.VM, CPUs: 1, Memory: 256 << 20}
		sc.Timing = suite.Timing{Warmup: 500 * time.Millisecond, Duration: 1500 * time.Millisecond, Cooldown: 500 * time.Millisecond}
		if change != nil {
			change(sc)
		}
	})
}

func TestVMsReachEachOtherOverABridge(t *testing.T) {
	must.Long(t)
	s := runVMs(t, vmScenario(t, "bridge", nil))
	wantVMFigures(t, s)
}

// runVMs runs a scenario with VMs once; its trial must yield figures.
func runVMs(t *testing.T, sc suite.Scenario) sample.Sample {
	t.Helper()
	n := &notebook{}
	n.up = func(b *Bench) { t.Logf("up: %v", b.Settings().Others[b.Testbed.Nodes()[0].Name()+" VMs"]) }
	e := lab(t, n, sc)
	must.Succeed(t, e.Run(t.Context()))
	s := n.samples[0]
	if !s.OK() {
		t.Fatalf("%s: %v", sc.ID, s.Failure)
	}
	t.Logf("the trial took %v with %.0f Mbit/s, sender %.2f cores in the guest and %.2f outside", s.Took, s.Metrics[sample.Throughput]/1e6, s.Metrics[sample.SenderGuestCores], s.Metrics[sample.SenderNetworkCores])
	return s
}

// wantVMFigures asserts what only VMs have.
func wantVMFigures(t *testing.T, s sample.Sample) {
	t.Helper()
	if s.Metrics[sample.Throughput] < 1e6 {
		t.Errorf("%.0f bit/s passed", s.Metrics[sample.Throughput])
	}
	for _, m := range []sample.Metric{sample.SenderGuestCores, sample.ReceiverGuestCores, sample.SenderNetworkCores, sample.ReceiverNetworkCores} {
		if s.Metrics[m] <= 0 {
			t.Errorf("%s is %v", m, s.Metrics[m])
		}
	}
	whole := s.Metrics[sample.SenderGuestCores] + s.Metrics[sample.SenderNetworkCores]
	if cores := s.Metrics[sample.SenderCores]; whole < 0.98*cores || whole > 1.02*cores {
		t.Errorf("guest and network CPU are %.3f cores together, the node %.3f", whole, cores)
	}
	if emulated := slices.Contains(s.Warnings, sample.Emulated); emulated != !kvmWorks(t) {
		t.Errorf("warnings %q; KVM works: %t", s.Warnings, kvmWorks(t))
	}
	roles := map[string]bool{}
	for _, h := range s.Hops {
		roles[h.Role+" "+h.Device] = h.RxPackets > 0 && h.TxPackets > 0
	}
	for _, want := range []string{"endpoint eth0", "vif vifc1"} {
		if !roles[want] {
			t.Errorf("%s has counted no packets: %+v", want, s.Hops)
		}
	}
}

func kvmWorks(t *testing.T) bool {
	k := must.Get(kernel.Find())(t)
	return vm.TryKVM(t.Context(), k) == nil
}

func TestTheFailureOfAVMThatCannotBootHasTheLinesOfItsConsole(t *testing.T) {
	must.Long(t)
	n := &notebook{}
	e := lab(t, n, vmScenario(t, "bridge", func(sc *suite.Scenario) { sc.Endpoint.Memory = 80 << 20 }))
	must.Succeed(t, e.Run(t.Context()))
	f := n.samples[0].Failure
	if f == nil || f.Kind != sample.SetupFailed || !strings.Contains(f.Message, "VM c1") || !strings.Contains(f.Message, "its console showed last") || !strings.Contains(f.Message, "Kernel panic") {
		t.Errorf("a VM with too little memory: %+v", f)
	}
	t.Log(f)
}

func TestVMsReachEachOtherOverVRouterByIPv6(t *testing.T) {
	must.Long(t)
	if _, err := program.Beside("vrouter"); err != nil {
		t.Skip(err)
	}
	s := runVMs(t, vmScenario(t, "vrouter-mpls-udp", func(sc *suite.Scenario) { sc.Workload.IPVersion = 6 }))
	wantVMFigures(t, s)
}

func TestColocatedVMsWithTwoCPUsSpreadReceiveWorkAndCutStreamsThemselves(t *testing.T) {
	must.Long(t)
	s := runVMs(t, vmScenario(t, "vxlan", func(sc *suite.Scenario) {
		sc.Placement, sc.Fabric.Kind = suite.Colocated, suite.Veth
		sc.Endpoint.CPUs, sc.Endpoint.Spread, sc.Endpoint.NoSegmentation = 2, true, true
		sc.Workload.Rate = 5e6 // two virtual CPUs share each CPU
	}))
	if s.Metrics[sample.SenderGuestCores] <= 0 || s.Metrics[sample.Throughput] < 1e5 {
		t.Errorf("colocated VMs: %v", s.Metrics)
	}
	if !slices.ContainsFunc(s.Series, func(p sample.Point) bool { return p.Bits > 1e5 }) {
		t.Errorf("the series has seen no traffic: %+v", s.Series)
	}
	// The sender's device sends what fits into a frame, so its tap counts as
	// many packets as the receiver's TCP needs segments.
	found := false
	for _, h := range s.Hops {
		if h.Role != "endpoint" || h.Endpoint != "c1" {
			continue
		}
		found = true
		if h.TxBytes/max(h.TxPackets, 1) > 1600 {
			t.Errorf("the sender's device took packets of %d bytes on average", h.TxBytes/h.TxPackets)
		}
	}
	if !found {
		t.Errorf("the sender's device is none of %+v", s.Hops)
	}
}

func TestVMsLeaveNothingAfterTheirAgentsWereKilled(t *testing.T) {
	must.Long(t)
	n := &notebook{}
	e := lab(t, n, vmScenario(t, "bridge", nil))
	began := time.Now()
	b := must.Get(NewBench(t.Context(), e.Executor, e.ID, &e.Plan.Scenarios[0], 2))(t)
	t.Logf("two VMs were up after %v", time.Since(began))
	prefix := space.TestbedPrefix(e.ID)
	defer space.Clean(prefix)
	machines := qemus(t, prefix)
	if len(machines) != 2 {
		t.Errorf("QEMU runs as %v; want two processes", machines)
	}
	for _, n := range b.Testbed.Nodes() {
		hello := must.Get(n.Agent().Hello(t.Context()))(t)
		must.Succeed(t, unix.Kill(hello.PID, unix.SIGKILL))
	}
	if _, err := space.Clean(prefix); err != nil {
		t.Error(err)
	}
	if left := qemus(t, prefix); len(left) > 0 {
		t.Errorf("QEMU still runs: %v", left)
	}
	if left, _ := filepath.Glob(space.Home(prefix) + "*"); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
	if err := b.Testbed.Down(t.Context()); err == nil {
		t.Error("taking down what is gone is said to have gone well")
	}
}

func TestAnInterruptWhileVMsBootLeavesNothing(t *testing.T) {
	must.Long(t)
	n := &notebook{}
	e := lab(t, n, vmScenario(t, "bridge", nil))
	why := errors.New("interrupted")
	ctx, stop := context.WithCancelCause(t.Context())
	prefix := space.TestbedPrefix(e.ID)
	go func() {
		for deadline := time.Now().Add(30 * time.Second); len(qemus(t, prefix)) < 2 && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
		}
		stop(why)
	}()
	if _, err := NewBench(ctx, e.Executor, e.ID, &e.Plan.Scenarios[0], 2); !errors.Is(err, why) {
		t.Errorf("interrupted, it says %v", err)
	}
	if left := qemus(t, prefix); len(left) > 0 {
		t.Errorf("QEMU still runs: %v", left)
	}
	if left, _ := filepath.Glob(space.Home(prefix) + "*"); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// qemus are the processes whose command line names a testbed's files.
func qemus(t *testing.T, prefix string) (pids []string) {
	t.Helper()
	lines := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), vm.Program) && strings.Contains(string(text), prefix) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}
