package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/probe"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/system"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/ssh/sshtest"
)

// twoNodeHops are the roles of a system's hops between two nodes, in path order.
var twoNodeHops = map[string]string{
	"raw":     "fabric port port fabric",
	"bridge":  "endpoint vif bridge fabric port port fabric bridge vif endpoint",
	"vxlan":   "endpoint vif bridge tunnel fabric port port fabric tunnel bridge vif endpoint",
	"macvlan": "endpoint fabric port port fabric endpoint",
	// The rules of published ports send packets from the bridge to the fabric.
	"docker-bridge":  "endpoint vif bridge fabric port port fabric bridge vif endpoint",
	"bridge-nat":     "endpoint vif bridge fabric port port fabric bridge vif endpoint",
	"vrouter-nat":    "endpoint vif fabric port port fabric bridge vif endpoint",
	"vrouter-routed": "endpoint vif fabric port port fabric bridge vif endpoint",
	"vrouter-evpn":   "endpoint vif fabric port port fabric tunnel bridge vif endpoint",
}

func outsideClusters() []system.System {
	return slices.DeleteFunc(system.Registry(), func(s system.System) bool { return s.About().InCluster })
}

// Every system of the registry outside of clusters comes up, carries IPv4 and, where it can, IPv6,
// is measured with every hop counting, leaves its nodes like nodes that never
// had a system, and is gone without trace.
func TestEverySystemComesUpAndIsDetached(t *testing.T) {
	must.Long(t)
	var never []map[string]string
	for _, sys := range outsideClusters() {
		t.Run(sys.Name(), func(t *testing.T) {
			n := &notebook{}
			e := onThisMachine(t, n, sys)
			if never == nil {
				never = nodesWithout(t, e)
			}
			e.Executor = inspector{e.Executor, func(tb testbed.Testbed) { assertUntouched(t, tb, e.ID, never) }}
			traces := lookForTraces(t, e.ID)
			n.up = func(b *Bench) {
				traces.watch(b)
				if sys.About().IPv4Only || sys.About().Publishes {
					return
				}
				if err := b.Prove(context.Background(), 6); err != nil {
					t.Error(b.withOutput(context.Background(), err))
				}
			}
			must.Succeed(t, e.Run(context.Background()))
			traces.assertNone()
			s := &n.samples[0]
			if !s.OK() {
				t.Fatal(s.Failure)
			}
			assertMeasured(t, s)
			if e.Plan.Scenarios[0].Placement != suite.Colocated {
				assertCPU(t, s, sample.ReceiverCPU)
				assertFabricAgrees(t, s)
			}
			if want := twoNodeHops[sys.Name()]; want != "" {
				assertHops(t, s, want)
			}
		})
	}
}

// assertMeasured: the figures are those of a paced stream, and every hop
// counted it.
func assertMeasured(t *testing.T, s *sample.Sample) {
	t.Helper()
	// The sender may make up in the window for what it fell behind before.
	if bps := s.Metrics[sample.Throughput]; bps < pace/10 || bps > 1.3*pace {
		t.Errorf("%.0f bit/s of a stream paced to %.0f", bps, float64(pace))
	}
	assertCPU(t, s, sample.SenderCPU)
	if len(s.Series) < 3 || len(s.Outputs) != 2 || len(s.Commands) != 2 || len(s.Hops) == 0 {
		t.Errorf("%d points, %d outputs, %d commands, %d hops", len(s.Series), len(s.Outputs), len(s.Commands), len(s.Hops))
	}
	for _, h := range s.Hops {
		if h.RxBytes+h.TxBytes == 0 && h.Role != "bridge" {
			t.Errorf("hop %s (%s) of %s counted nothing", h.Device, h.Role, h.Node)
		}
	}
}

// assertCPU asserts that a node was busy.
func assertCPU(t *testing.T, s *sample.Sample, m sample.Metric) {
	t.Helper()
	if percent := s.Metrics[m]; percent <= 0 || percent > 105 { // idle time and window are read one after the other
		t.Errorf("%s is %v %%", m, percent)
	}
}

func assertHops(t *testing.T, s *sample.Sample, want string) {
	t.Helper()
	var roles []string
	for _, h := range s.Hops {
		roles = append(roles, h.Role)
	}
	must.Equal(t, want, strings.Join(roles, " "))
}

// inspector is an executor whose testbeds are looked at before they are
// taken down.
type inspector struct {
	testbed.Executor
	look func(testbed.Testbed)
}

func (i inspector) Up(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := i.Executor.Up(ctx, spec)
	if err != nil {
		return nil, err
	}
	return inspected{tb, i.look}, nil
}

type inspected struct {
	testbed.Testbed
	look func(testbed.Testbed)
}

func (i inspected) Down(ctx context.Context) error {
	i.look(i.Testbed)
	return i.Testbed.Down(ctx)
}

// assertUntouched: the nodes are as without a system, their homes are deleted,
// and no namespace is left but theirs and the wire's.
func assertUntouched(t *testing.T, tb testbed.Testbed, id string, never []map[string]string) {
	t.Helper()
	for i, n := range tb.Nodes() {
		must.Eventually(t, "node "+n.Name()+" equals a node that never had the system", func() error {
			return leftBehind(changes(never[i], nodeNetwork(t, n)))
		})
		if _, err := os.Stat(space.Home(n.Attachment().SpaceBase)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("node %s: its home is still there: %v", n.Name(), err)
		}
	}
	if left, err := space.Named(space.TestbedPrefix(id)); err != nil || len(left) != len(tb.Nodes())+1 {
		t.Errorf("the namespaces %v are left (%v), want the nodes' and the wire's", left, err)
	}
}

// nodesWithout is what the nodes of an experiment are like without a system.
func nodesWithout(t *testing.T, e *Experiment) (states []map[string]string) {
	t.Helper()
	ctx := context.Background()
	tb, err := e.Executor.Up(ctx, testbed.Spec{ID: e.ID, Nodes: e.Plan.Nodes, Fabric: e.Plan.Scenarios[0].Fabric})
	must.Succeed(t, err)
	for _, n := range tb.Nodes() {
		states = append(states, nodeNetwork(t, n))
	}
	must.Succeed(t, tb.Down(ctx))
	return states
}

func nodeNetwork(t *testing.T, n testbed.Node) map[string]string {
	t.Helper()
	s := must.Get(space.Open(n.Attachment().SpaceBase))(t)
	defer s.Close()
	state := map[string]string{}
	network(t, s.Links, state)
	return state
}

// Agents that are killed leave their system's programs, files and devices
// behind; cleaning finds all of it.
func TestCleanRemovesTheLeftoversOfKilledAgents(t *testing.T) {
	must.Long(t)
	for _, sys := range outsideClusters() {
		t.Run(sys.Name(), func(t *testing.T) {
			ctx := context.Background()
			e := onThisMachine(t, &notebook{}, sys)
			traces := lookForTraces(t, e.ID)
			sc := &e.Plan.Scenarios[0]
			if _, err := system.ChangeOf(sys, suite.ChangePorts); err == nil {
				sc.Workload.Change = suite.ChangePorts
			}
			b, err := NewBench(ctx, e.Executor, e.ID, sc, e.Plan.Nodes)
			must.Succeed(t, err)
			for _, n := range b.Testbed.Nodes() {
				if sc.Workload.Change != "" {
					_, err := n.Agent().Change(ctx, false)
					must.Succeed(t, err)
				}
			}
			traces.watch(b)
			for _, n := range b.Testbed.Nodes() {
				h := must.Get(n.Agent().Hello(ctx))(t)
				must.Succeed(t, syscall.Kill(h.PID, syscall.SIGKILL))
			}
			if err := b.Testbed.Release(ctx); err == nil {
				t.Error("the agents were killed, and nobody noticed")
			}
			c, err := space.Clean(space.TestbedPrefix(e.ID))
			if err != nil {
				t.Error(err)
			}
			if len(c.Namespaces) < 3 {
				t.Errorf("%v were removed; two nodes and the wire were to be expected", c.Namespaces)
			}
			traces.assertNone()
		})
	}
}

// A check that sees nothing would pass for ever.
func TestTheCheckForLeftoversFindsThem(t *testing.T) {
	id := "x" + strconv.Itoa(os.Getpid())
	l := lookForTraces(t, id)
	home := space.Home(space.TestbedPrefix(id) + "left")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Skipf("making a home: %v", err)
	}
	t.Cleanup(func() {
		if err := space.DeleteHome(filepath.Base(home)); err != nil {
			t.Error(err)
		}
	})
	child := exec.Command("sh", "-c", "echo; read line")
	_, inErr := child.StdinPipe()
	says, err := child.StdoutPipe()
	must.Succeed(t, errors.Join(inErr, err, child.Start()))
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	if _, err := says.Read(make([]byte, 1)); err != nil { // from then on it has its arguments and environment
		t.Fatal(err)
	}
	left := strings.Join(l.own(), "\n")
	for _, want := range []string{home, fmt.Sprintf("process %d: sh -c echo; read line", child.Process.Pid)} {
		if !strings.Contains(left, want) {
			t.Errorf("%q is not among what is left: %s", want, left)
		}
	}
	before := map[string]string{"sysctl a": "1", "route b": "", "device c": ""}
	after := map[string]string{"sysctl a": "0", "device c": "", "file d": ""}
	want := []string{"file d is new", `sysctl a was "1" and is "0"`, "route b is gone"}
	must.Equal(t, want, changes(before, after))
	state := l.machine()
	for _, want := range []string{"device lo", "sysctl /proc/sys/net/core/netdev_max_backlog", "sysctl /proc/sys/net/ipv4/ip_forward", "mount on /proc"} {
		if _, looked := state[want]; !looked {
			t.Errorf("%s is not looked at", want)
		}
	}
}

// A machine without flannel is told how to get it.
func TestAMissingFlannelIsSkippedWithTheRemedy(t *testing.T) {
	nowhere := t.TempDir()
	for _, variable := range []string{"PATH", "GOBIN", "GOPATH", "HOME"} {
		t.Setenv(variable, nowhere)
	}
	why := skipsOn(planOf(scenario("flannel-udp", nil)), probe.Probe())["flannel-udp"]
	for _, want := range []string{"etcd is not installed; get it with: apt-get install etcd-server", "flanneld is not installed", "go install", "github.com/flannel-io/flannel@v", "needs a C compiler"} {
		if !strings.Contains(why, want) {
			t.Errorf("the reason lacks %q: %s", want, why)
		}
	}
}

func TestIPv6OverASystemOfIPv4IsSkipped(t *testing.T) {
	sc := scenario("flannel-vxlan", func(sc *suite.Scenario) { sc.Workload.IPVersion = 6 })
	if why := skipsOn(planOf(sc), probe.Probe())[sc.ID]; !strings.Contains(why, "carries IPv4 only") {
		t.Errorf("the reason: %q", why)
	}
}

// flannel is the flannel system with what the machine has of it.
func flannel(t *testing.T, backend string) (sys system.Flannel, flanneld string) {
	t.Helper()
	sys = system.Flannel{Backend: backend}
	_, programs := sys.Needs()
	for _, p := range programs {
		if p.Name == "flanneld" {
			flanneld = p.Path()
		}
	}
	return sys, flanneld
}

// A flanneld that ends at start is a failure with what it said, and etcd and
// all else are gone.
func TestAFlanneldThatEndsAtStartFailsTheTrialWithItsLastLines(t *testing.T) {
	sys, flanneld := flannel(t, "vxlan")
	n := &notebook{}
	e := onThisMachine(t, n, sys)
	dir := t.TempDir()
	script := "#!/bin/sh\nexec " + flanneld + " \"$@\" -subnet-lease-renew-margin=0\n"
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "flanneld"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	l := lookForTraces(t, e.ID)
	must.Succeed(t, e.Run(context.Background()))
	if left := l.own(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	f := n.samples[0].Failure
	if f == nil || f.Kind != sample.SetupFailed {
		t.Fatalf("failure: %v", f)
	}
	for _, want := range []string{"flanneld ended at once (exit status 1)", "Invalid subnet-lease-renew-margin option"} {
		if !strings.Contains(f.Message, want) {
			t.Errorf("the failure lacks %q: %s", want, f.Message)
		}
	}
}

// A flannel that is up and passes nothing fails the proof, with what its
// programs printed last on each node.
func TestTheErrorOfAFlannelThatPassesNoTrafficHasItsLastLines(t *testing.T) {
	sys, _ := flannel(t, "vxlan")
	e := onThisMachine(t, &notebook{}, sys)
	l := lookForTraces(t, e.ID)
	ctx := context.Background()
	b, err := NewBench(ctx, e.Executor, e.ID, &e.Plan.Scenarios[0], e.Plan.Nodes)
	must.Succeed(t, err)
	l.watch(b)
	far := must.Get(space.Open(b.Testbed.Nodes()[1].Attachment().SpaceBase))(t)
	must.Succeed(t, far.Remove("flannel.1"))
	far.Close()
	p := b.Pairs[0]
	err = p.Sender.Node.Agent().Reach(ctx, agent.ReachArgs{Endpoint: p.Sender.Name, Address: p.Receiver.V4, Port: agent.ProofPort, MTU: b.MTU, Bytes: 1, Wait: time.Second})
	if err == nil {
		t.Fatal("the other container is reached over a tunnel that was removed")
	}
	said := b.withOutput(ctx, err).Error()
	for _, want := range []string{"on node a ", "on node b ", "etcd runs", "flanneld runs; last output of flanneld", "ping 10.31.16.2"} {
		if !strings.Contains(said, want) {
			t.Errorf("the failure lacks %q: %s", want, said)
		}
	}
	must.Succeed(t, b.Down(ctx))
	l.assertNone()
}

// onThisMachine is an experiment of one short stream over a system; the test is
// skipped where the machine cannot run it.
func onThisMachine(t *testing.T, n *notebook, sys system.System) *Experiment {
	t.Helper()
	sc := scenario(sys.Name(), func(sc *suite.Scenario) {
		for _, p := range []suite.Placement{suite.Colocated, suite.Gateway} {
			if system.Supports(sys, sc.Placement, sc.Fabric) != nil && system.Supports(sys, p, sc.Fabric) == nil {
				sc.Placement = p
			}
		}
	})
	e := lab(t, n, sc)
	if why := skipsOn(e.Plan, probe.Probe())[sc.ID]; why != "" {
		t.Skip(why)
	}
	return e
}

// traces is what a system could leave on the machine.
type traces struct {
	t      *testing.T
	id     string
	mark   string // in the environment of all that the test starts
	before map[string]string
	// spaces are open handles of the bench's namespaces, by inode: the inode of a
	// namespace that nobody holds could be another's by the time it is looked for.
	spaces map[uint64]vnetns.NsHandle
}

const markVariable = "WT_TEST_MARK"

// lookForTraces remembers what the machine is like now.
func lookForTraces(t *testing.T, id string) *traces {
	t.Helper()
	l := &traces{t: t, id: id, mark: id + "/" + t.Name(), spaces: map[uint64]vnetns.NsHandle{}}
	t.Setenv(markVariable, l.mark)
	l.before = l.machine()
	t.Cleanup(func() {
		for _, h := range l.spaces {
			h.Close()
		}
	})
	return l
}

// watch notes the namespaces of a bench, for their processes are looked for
// later.
func (l *traces) watch(b *Bench) {
	l.t.Helper()
	names, err := space.Named(space.TestbedPrefix(l.id))
	if err != nil || len(names) < len(b.Testbed.Nodes()) {
		l.t.Errorf("the bench has the namespaces %v (%v)", names, err)
	}
	for _, name := range names {
		h, err := vnetns.GetFromName(name)
		if err != nil {
			l.t.Error(err)
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(h), &st); err != nil {
			l.t.Error(err)
		}
		if _, known := l.spaces[st.Ino]; known {
			h.Close()
			continue
		}
		l.spaces[st.Ino] = h
	}
}

// assertNone: nothing of the bench is there any more, and the host is as it
// was.
func (l *traces) assertNone() {
	l.t.Helper()
	if len(l.spaces) == 0 {
		l.t.Error("no bench came up, so nothing is known of its traces")
	}
	must.Eventually(l.t, "the machine is as before", func() error {
		return leftBehind(append(l.own(), changes(l.before, l.machine())...))
	})
}

// leftBehind returns an error that lists what is left; nil: nothing.
func leftBehind(left []string) error {
	if len(left) == 0 {
		return nil
	}
	return errors.New("left behind: " + strings.Join(left, "; "))
}

// own lists what carries the bench's name.
func (l *traces) own() (left []string) {
	prefix := space.TestbedPrefix(l.id)
	for _, folder := range []string{space.Dir, filepath.Dir(space.Home("x"))} {
		found, err := filepath.Glob(filepath.Join(folder, prefix+"*"))
		if err != nil {
			l.t.Error(err)
		}
		left = append(left, found...)
	}
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		l.t.Error(err)
	}
	for line := range strings.Lines(string(table)) {
		if strings.Contains(line, "/"+prefix) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	return append(left, l.processes(prefix)...)
}

// processes lists those that the test started or that live in its namespaces,
// by namespace, by environment and by the paths that they were given.
func (l *traces) processes(prefix string) (left []string) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		l.t.Error(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		argv, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // what has ended meanwhile has none
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		var st unix.Stat_t
		unix.Stat(filepath.Join(dir, "ns/net"), &st)
		_, inside := l.spaces[st.Ino]
		marked := slices.Contains(strings.Split(string(env), "\x00"), markVariable+"="+l.mark)
		if inside || marked || bytes.Contains(argv, []byte("/"+prefix)) {
			left = append(left, fmt.Sprintf("process %d: %s", pid, bytes.ReplaceAll(argv, []byte{0}, []byte{' '})))
		}
	}
	return left
}

// machine is the state of the host's own namespace and files, as far as a
// system could change it.
func (l *traces) machine() map[string]string {
	state := map[string]string{}
	host, err := netlink.NewHandle()
	must.Succeed(l.t, err)
	defer host.Close()
	network(l.t, host, state)
	for _, program := range []string{"iptables-save", "ip6tables-save"} {
		firewall(program, state)
	}
	sysctls("/proc/sys/net", state)
	files("/run", state)
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		l.t.Error(err)
	}
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && !othersPlace(f[4]) {
			state["mount on "+f[4]] = ""
		}
	}
	return state
}

// othersPlace reports whether a path belongs to some testbed: other ones may
// come and go meanwhile, and this test's own is looked at by its name.
func othersPlace(path string) bool {
	return strings.HasPrefix(path, space.Dir) || strings.HasPrefix(path, filepath.Dir(space.Home("x")))
}

// network is devices, addresses, routes and rules of a namespace. Link-local
// ones come by themselves, when the kernel gets round to it, and anycast ones
// with forwarding.
func network(t *testing.T, h *netlink.Handle, state map[string]string) {
	t.Helper()
	links, err := h.LinkList()
	if err != nil {
		t.Error(err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	// The tests of hosts, which run at the same time, make such devices in the host's namespace.
	others := func(index int) bool { return strings.HasPrefix(names[index], sshtest.LinkPrefix) }
	for _, l := range links {
		at := l.Attrs()
		if others(at.Index) {
			continue
		}
		state["device "+at.Name] = fmt.Sprint(l.Type(), " mtu ", at.MTU, " of ", names[at.MasterIndex], " ", at.HardwareAddr)
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		addresses, err := h.AddrList(nil, family)
		if err != nil {
			t.Error(err)
		}
		for _, a := range addresses {
			if !a.IP.IsLinkLocalUnicast() && !others(a.LinkIndex) {
				state[fmt.Sprintf("address %s of %s", a.IPNet, names[a.LinkIndex])] = ""
			}
		}
		routes, err := h.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			t.Error(err)
		}
		for _, r := range routes {
			byItself := r.Type == unix.RTN_ANYCAST || r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast())
			if !byItself && !others(r.LinkIndex) {
				state[fmt.Sprintf("route to %s via %s dev %s table %d", r.Dst, r.Gw, names[r.LinkIndex], r.Table)] = r.Congctl
			}
		}
		rules, err := h.RuleList(family)
		if err != nil {
			t.Logf("routing rules are not looked at: %v", err)
		}
		for _, r := range rules {
			state["rule "+r.String()] = ""
		}
	}
}

// counters are what a firewall's rules have seen: that may change.
var counters = regexp.MustCompile(`\[\d+:\d+\]`)

// firewall lists the host's rules; a machine without the program has none.
func firewall(program string, state map[string]string) {
	rules, err := exec.Command(program).Output()
	if err != nil {
		return
	}
	table := ""
	for line := range strings.Lines(string(rules)) {
		line = strings.TrimSpace(counters.ReplaceAllString(line, ""))
		if strings.HasPrefix(line, "*") {
			table = line
		}
		if !strings.HasPrefix(line, "#") {
			state[program+" "+table+" "+line] = ""
		}
	}
}

// sysctls reads all that can be read. Gauges are no settings.
func sysctls(dir string, state map[string]string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, "_count") || strings.Contains(path, "/"+sshtest.LinkPrefix) {
			return nil
		}
		if value, err := os.ReadFile(path); err == nil {
			state["sysctl "+path] = strings.TrimSpace(string(value))
		}
		return nil
	})
}

// files lists the programs' sockets, locks and process ids, two levels deep.
func files(dir string, state map[string]string) {
	for _, pattern := range []string{"*", "*/*"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern)) // the pattern is well-formed
		for _, path := range found {
			if st, err := os.Lstat(path); err == nil && !st.IsDir() && !othersPlace(path) {
				state["file "+path] = ""
			}
		}
	}
}

// changes are in words, sorted.
func changes(before, after map[string]string) (list []string) {
	for _, what := range slices.Sorted(maps.Keys(after)) {
		if was, known := before[what]; !known {
			list = append(list, what+" is new")
		} else if was != after[what] {
			list = append(list, fmt.Sprintf("%s was %q and is %q", what, was, after[what]))
		}
	}
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if _, still := after[what]; !still {
			list = append(list, what+" is gone")
		}
	}
	return list
}
