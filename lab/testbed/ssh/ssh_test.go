package ssh

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/lab/experiment"
	"windtunnel/lab/probe"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// assertFigures checks that a trial measured the paced stream on both hosts.
func assertFigures(t *testing.T, s sample.Sample) {
	t.Helper()
	if !s.OK() {
		t.Fatalf("%s: %v", s.Scenario, s.Failure)
	}
	if bits := s.Metrics[sample.Throughput]; bits < 150e6 || bits > 250e6 {
		t.Errorf("%s: throughput %.0f bit/s of a stream of 200 Mbit/s", s.Scenario, bits)
	}
	// The lab reads the devices' counters shortly before or after the tool's measurement starts and ends, so the ratio
	// of a short trial can differ from 1. If the lab read a wrong device, the ratio would be about 0 or 2.
	if ratio := s.Metrics[sample.FabricGoodput] / s.Metrics[sample.Throughput]; ratio < 0.75 || ratio > 1.33 {
		t.Errorf("%s: the devices of the hosts counted %.3f of the throughput", s.Scenario, ratio)
	}
	for _, m := range []sample.Metric{sample.SenderCores, sample.ReceiverCores} {
		if used := s.Metrics[m]; used <= 0 || used > 1.05 {
			t.Errorf("%s: %s is %.3f on a host with one CPU", s.Scenario, m, used)
		}
	}
}

func TestRawRunsBetweenHostsAndLeavesNothing(t *testing.T) {
	s := newSite(t)
	for i := range s.hosts.Hosts {
		s.hosts.Hosts[i].Directory = s.Path("new")
	}
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	s.Must(runTrials(x, n, 2, scenario("raw", 1500*time.Millisecond)))
	if len(n.samples) < 2 { // one more replaces a trial that a gate rejected
		t.Fatalf("%d samples, want those of 2 trials", len(n.samples))
	}
	counted := slices.DeleteFunc(slices.Clone(n.samples), func(smp sample.Sample) bool { return !smp.Counts() })
	if len(counted) == 0 {
		t.Errorf("no trial counts: %+v", n.samples)
	}
	for _, smp := range counted {
		assertFigures(t, smp)
	}
	if argv := n.samples[0].Commands[0].Argv; argv[0] != "windtunnel" {
		t.Errorf("the tool was started as %q", argv)
	}
	s.Must(x.Remove(context.Background()))
	if _, err := os.Stat(s.Path("new")); !os.IsNotExist(err) {
		t.Errorf("the program's directory is left: %v", err)
	}
	s.Must(x.Close(context.Background()))
	if left := leftovers(t, runID()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// dataDevice describes the data device of a host with its addresses and routes.
func (s *site) dataDevice(i int) string {
	s.t.Helper()
	sp := s.spaces[i]
	l, err := sp.Link("data")
	s.Must(err)
	addresses, err := sp.Links.AddrList(l, netlink.FAMILY_V4)
	s.Must(err)
	routes, err := sp.Links.RouteList(l, netlink.FAMILY_V4)
	s.Must(err)
	text := fmt.Sprintf("up %t, MTU %d, features %s;", l.Attrs().Flags&1 == 1, l.Attrs().MTU, segmentation(s.t, sp))
	for _, a := range addresses {
		text += " " + a.IPNet.String()
	}
	for _, r := range routes {
		text += fmt.Sprintf("; %s via %s", r.Dst, r.Gw)
	}
	s.Must(sp.Do(func() error {
		value, err := os.ReadFile("/proc/sys/net/ipv4/conf/data/arp_ignore")
		text += "; arp_ignore " + strings.TrimSpace(string(value))
		return err
	}))
	return text
}

func TestSystemsUseDedicatedDevicesAndReturnThem(t *testing.T) {
	s := newSite(t)
	s.Must(s.spaces[0].DeviceSysctl("ipv4", "data", "arp_ignore", "2"))
	before := s.dataDevice(0)
	s.hosts.Dedicated = true
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	outside := scenario("bridge-nat", 1500*time.Millisecond)
	outside.Placement = suite.Gateway
	s.Must(runTrials(x, n, 1, scenario("raw", 1500*time.Millisecond), scenario("bridge", 1500*time.Millisecond), scenario("vxlan", 1500*time.Millisecond), outside))
	for _, smp := range n.samples {
		assertFigures(t, smp)
	}
	if _, err := s.spaces[0].Link("data"); err == nil {
		t.Error("the data device is on the host during the run: the test does not test")
	}
	s.Must(x.Close(context.Background()))
	s.untouched(0, before)
}

// untouched reports what a run has left on the hosts. before is the data device of one of them before the run.
func (s *site) untouched(host int, before string) {
	s.t.Helper()
	if after := s.dataDevice(host); after != before {
		s.t.Errorf("the data device was %q before the run, and is %q after it", before, after)
	}
	if left := leftovers(s.t, runID()); len(left) > 0 {
		s.t.Errorf("left behind: %v", left)
	}
}

func TestAHostThatVanishesFailsItsTrialAndNotTheRun(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	x := s.connect()
	s.hold(x)
	b := s.spaces[1]
	link, err := b.Link("mgmt")
	s.Must(err)
	n := &notebook{}
	cut := false
	n.moved = func() {
		if !cut && len(n.samples) == 1 { // the link comes back when the second trial has failed
			cut = true
			s.Must(b.Links.LinkSetDown(link))
			time.AfterFunc(7*time.Second, func() { _ = b.Links.LinkSetUp(link) })
		}
	}
	s.Must(runTrials(x, n, 6, scenario("raw", 1500*time.Millisecond)))
	if lost := n.samples[1]; lost.OK() || lost.Failure.Kind != sample.AgentLost || !strings.Contains(lost.Failure.Message, "node b's agent") {
		t.Errorf("the trial during the cut: %v", lost.Failure)
	}
	assertFigures(t, n.samples[len(n.samples)-1])
}

func TestARunContinuesWhenItsProgramsOnAHostAreKilled(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	before := s.dataDevice(1)
	s.hosts.Dedicated = true
	x := s.connect()
	s.hold(x)
	b := x.machines[1]
	n := &notebook{}
	var agentPID int
	n.up = func(bench *experiment.Bench) { agentPID = bench.Testbed.Nodes()[1].Hello().PID }
	killed := map[int]bool{}
	n.moved = func() {
		trial := len(n.samples)
		victim := map[int]int{1: agentPID, 3: b.agent.Hello.PID}[trial]
		if victim == 0 || killed[trial] {
			return
		}
		killed[trial] = true
		if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
			t.Errorf("kill %d in trial %d: %v", victim, trial, err)
		}
	}
	s.Must(runTrials(x, n, 5, scenario("bridge", 1500*time.Millisecond)))
	if len(killed) != 2 {
		t.Fatalf("killed in the trials %v, want 1 and 3", killed)
	}
	assertFigures(t, n.samples[0])
	if lost := n.samples[1]; lost.OK() || lost.Failure.Kind != sample.AgentLost {
		t.Errorf("the trial whose agent was killed: %v", lost.Failure)
	}
	assertFigures(t, n.samples[2])
	assertFigures(t, n.samples[4])
	s.Must(x.Close(context.Background()))
	s.untouched(1, before)
}

func TestAnEngineThatIsKilledLeavesNothingOnTheHosts(t *testing.T) {
	s := newSite(t)
	before := s.dataDevice(1)
	file := s.WriteHosts("dedicated: true")
	self, err := os.Executable()
	s.Must(err)
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), engineVariable+"="+file), os.Stderr
	out, err := cmd.StdoutPipe()
	s.Must(err)
	s.Must(cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if _, err := out.Read(make([]byte, 16)); err != nil { // the traffic flows
		t.Fatal(err)
	}
	id := fmt.Sprintf("run%x", cmd.Process.Pid)
	if left := leftovers(t, id); len(left) < 2 || len(s.Processes(0)) == 1 {
		t.Errorf("during the run there are the namespaces %v: the test does not test", left)
	}
	s.Must(cmd.Process.Kill())
	must.Eventually(t, "nothing is left after the kill", func() error {
		left, a, b := leftovers(t, id), s.Processes(0), s.Processes(1)
		if len(left) == 0 && len(a) == 1 && len(b) == 1 { // sshd
			return nil
		}
		return fmt.Errorf("there are the namespaces %v and the processes %v and %v", left, a, b)
	})
	s.untouched(1, before)
}

// engine is the engine that the test kills: it prints a line when traffic flows.
func engine(path string) error {
	hosts, err := ReadHosts(path)
	if err != nil {
		return err
	}
	x, err := Connect(context.Background(), hosts, nil)
	if err != nil {
		return err
	}
	if _, err := x.Hold(context.Background()); err != nil {
		return err
	}
	n := &notebook{moved: func() { fmt.Println("moved") }}
	sc := scenario("bridge", 30*time.Second)
	sc.Fabric.Offload = suite.OffloadNone
	return runTrials(x, n, 1, sc)
}

func TestErrorsOfHostsNameTheHostAndTheRemedy(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	s.WriteKey("other")
	s.Write("empty", "")
	s.Must(exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", s.Path("locked")).Run())
	known, err := os.ReadFile(s.Path("known"))
	s.Must(err)
	address := s.Hosts[1].Address
	first, _, _ := strings.Cut(string(known), "\n") // the line of host a
	s.Write("changed", strings.ReplaceAll(first, s.Hosts[0].Address, s.Hosts[1].Address)+"\n")
	for name, c := range map[string]struct {
		change func(*Host)
		want   string
	}{
		"unknown host key":    {func(h *Host) { h.knownHosts = s.Path("empty") }, "host b: the host key of " + address + ":22 is not known; log in once with `ssh -p 22 root@" + address + "` and check the key, or add the output of `ssh-keyscan -p 22 " + address + "` to the known_hosts file"},
		"changed host key":    {func(h *Host) { h.knownHosts = s.Path("changed") }, "`ssh-keygen -f " + s.Path("changed") + " -R "},
		"wrong key":           {func(h *Host) { h.Key = s.Path("other") }, "authorized_keys"},
		"key of a passphrase": {func(h *Host) { h.Key = s.Path("locked") }, "ssh-add " + s.Path("locked")},
		"missing key":         {func(h *Host) { h.Key = s.Path("absent") }, "no such file or directory; set `key`"},
		"no private key":      {func(h *Host) { h.Key = s.Path("known") }, "the file without .pub"},
		"missing known keys":  {func(h *Host) { h.knownHosts = s.Path("absent") }, "set `known_hosts`"},
		"unreachable":         {func(h *Host) { h.Port = 23 }, "connect to " + s.Hosts[1].Address + ":23"},
		"no such address":     {func(h *Host) { h.Data = "10.77.0.9" }, "ip address"},
		"no directory":        {func(h *Host) { h.Directory = "/proc/wt" }, "copy the windtunnel program|look for the windtunnel program"},
		"unreachable jump":    {func(h *Host) { h.Jump = []string{s.Hosts[0].Address + ":24"} }, "connect to " + s.Hosts[0].Address + ":24"},
		"CPU that is absent":  {func(h *Host) { h.CPUs = "4000" }, "CPU 4000"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := *s.hosts
			hosts.Hosts = append([]Host(nil), s.hosts.Hosts...)
			b := &hosts.Hosts[1]
			c.change(b)
			b.data = nil
			s.Must(b.check())
			x, err := Connect(context.Background(), &hosts, nil)
			if err == nil {
				x.Close(context.Background())
				t.Fatal("no error")
			}
			wanted := false
			for _, w := range strings.Split(c.want, "|") {
				wanted = wanted || strings.Contains(err.Error(), w)
			}
			if !wanted || !strings.Contains(err.Error(), "host b") && !strings.Contains(err.Error(), "node b") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestAHostIsReachedThroughAJumpHostAndBySudo(t *testing.T) {
	if _, err := exec.LookPath("sudo"); err != nil {
		t.Skip("sudo is not installed; get it with: apt-get install sudo")
	}
	s := newSite(t)
	s.jump()
	s.hosts.Hosts[1].Sudo = true
	x := s.connect()
	if blocks := x.machines[1].survey.Device.Blocks; len(blocks) != 1 || !strings.Contains(blocks[0], "SSH session") {
		t.Errorf("a device that the session uses may be moved: %q", blocks)
	}
	tb, err := x.Up(context.Background(), testbed.Spec{ID: runID(), Nodes: 2, Fabric: suite.Fabric{MTU: 1500}})
	s.Must(err)
	defer tb.Down(context.Background())
	if hello := tb.Nodes()[1].Hello(); len(hello.CPUs) != 1 || hello.CPUs[0] != 1 {
		t.Errorf("the agent of host b: %+v", hello)
	}
}

func TestALoginShellCanPrint(t *testing.T) {
	must.Long(t)
	s := newSite(t, `ForceCommand printf 'Welcome\nLinux never sleeps'; eval "$SSH_ORIGINAL_COMMAND"`)
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	s.Must(runTrials(x, n, 1, scenario("raw", 1500*time.Millisecond)))
	assertFigures(t, n.samples[0])
}

func TestScenariosThatTheHostsCannotRunAreRefused(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	x := s.connect()
	for want, change := range map[string]func(*suite.Scenario){
		"dedicated: true":          func(sc *suite.Scenario) { sc.System = "bridge" },
		"has MTU 1500":             func(sc *suite.Scenario) { sc.Fabric.MTU = 9000 },
		"set `data6`":              func(sc *suite.Scenario) { sc.Workload.IPVersion, x.machines[0].Data6 = 6, "" },
		"its fabric has a rate":    func(sc *suite.Scenario) { sc.Fabric.Rate = 1e9 },
		"VMs as endpoints do not ": func(sc *suite.Scenario) { sc.Endpoint.Kind = suite.VM },
	} {
		sc := scenario("raw", time.Second)
		change(&sc)
		_, err := requires(x, &sc)
		must.Fail(t, err, want)
	}
	x.dedicated = true
	bridge := scenario("bridge", time.Second)
	if features, err := requires(x, &bridge); err != nil || len(features) != 1 || features[0] != probe.Netns {
		t.Errorf("bridge on dedicated devices: %v, %v", features, err)
	}
}

// sshdCPU returns the CPU time of sshd on both hosts, s.
func (s *site) sshdCPU() (seconds float64) {
	s.t.Helper()
	for i := range s.spaces {
		for _, pid := range s.Processes(i) {
			p, err := procfs.NewProc(pid)
			if err != nil {
				continue // it has ended
			}
			stat, err := p.Stat()
			if err == nil && strings.HasPrefix(stat.Comm, "sshd") {
				seconds += stat.CPUTime()
			}
		}
	}
	return seconds
}

func TestTheTransportIsCheap(t *testing.T) {
	if os.Getenv("WINDTUNNEL_TIMING_TESTS") == "" {
		t.Skip("times depend on the machine; set WINDTUNNEL_TIMING_TESTS=1 on a quiet one")
	}
	s := newSite(t)
	x := s.connect()
	s.hold(x)
	started := time.Now()
	tb, err := x.Up(context.Background(), testbed.Spec{ID: runID(), Nodes: 2, Fabric: suite.Fabric{MTU: 1500}})
	s.Must(err)
	took := time.Since(started)
	s.Must(tb.Down(context.Background()))
	if took > time.Second {
		t.Errorf("the agents of two hosts started in %v, want at most 1s", took)
	}

	n := &notebook{}
	var first, last time.Time
	var before, after float64
	n.moved = func() {
		last, after = time.Now(), s.sshdCPU()
		if first.IsZero() {
			first, before = last, after
		}
	}
	s.Must(runTrials(x, n, 1, scenario("raw", 5*time.Second)))
	assertFigures(t, n.samples[0])
	share := (after - before) / last.Sub(first).Seconds() / 2
	if last.Sub(first) < 2*time.Second || share > 0.01 {
		t.Errorf("sshd took %.2f %% of a CPU on each host in %v, want at most 1 %% in 2s or more", 100*share, last.Sub(first))
	}
	t.Logf("agents started in %v; sshd took %.2f %% of a CPU on each host", took, 100*share)
}
