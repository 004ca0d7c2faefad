package ssh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/skeema/knownhosts"
	"github.com/vishvananda/netlink"
	"golang.org/x/crypto/ssh"

	"windtunnel/lab/agent"
	"windtunnel/lab/experiment"
	"windtunnel/lab/host"
	"windtunnel/lab/report/model"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/traffic"
)

const engineVariable = "WT_TEST_ENGINE"

// The test binary is also the program on the hosts, and an engine that a test kills.
func TestMain(m *testing.M) {
	var err error
	switch last := os.Args[len(os.Args)-1]; {
	case len(os.Args) > 1 && os.Args[1] == host.Command:
		err = host.Serve("test", last, os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == host.AgentCommand:
		err = host.Agent("test", os.Args[2:], os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == "traffic":
		os.Exit(traffic.Worker(os.Args[2:], os.Stdout, os.Stderr))
	case os.Getenv(engineVariable) != "":
		err = engine(os.Getenv(engineVariable))
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// site is hosts with sshd: namespaces joined by a data link, or by a switch if they are
// more than two. The test reaches each over a separate link.
type site struct {
	t      *testing.T
	dir    string
	hosts  *Hosts
	spaces []*space.Space
	fabric *space.Space // the switch; nil for two hosts
	key    ed25519.PrivateKey
}

const sshd = "/usr/sbin/sshd"

// newSite starts the hosts a and b. options are lines for sshd's configuration.
func newSite(t *testing.T, options ...string) *site {
	t.Helper()
	return newSiteOf(t, []string{"a", "b"}, options...)
}

// newSiteOf starts the named hosts.
func newSiteOf(t *testing.T, names []string, options ...string) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("sshd is not installed; get it with: apt-get install openssh-server")
	}
	s := &site{t: t, dir: t.TempDir()}
	s.key = s.writeKey("key")
	signer, err := ssh.NewSignerFromKey(s.key)
	s.must(err)
	s.write("authorized", string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	s.hosts = &Hosts{KnownHosts: s.path("known")}
	for i, name := range names {
		s.addHost(i, name)
	}
	if len(names) == 2 {
		s.must(s.spaces[0].Pair(space.Veth{Name: "data", PeerName: "data", MTU: 1500}, s.spaces[1]))
	} else {
		s.addSwitch()
	}
	for i, sp := range s.spaces {
		s.must(sp.Address("data", netip.MustParsePrefix(fmt.Sprintf("10.77.0.%d/24", i+1))))
		s.must(sp.Up("data"))
	}
	s.must(os.MkdirAll("/run/sshd", 0o755)) // sshd's empty directory, which its service makes
	for i := range s.spaces {
		s.startServer(i, options)
	}
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string) { s.must(os.WriteFile(s.path(name), []byte(text), 0o600)) }

func (s *site) writeKey(name string) ed25519.PrivateKey {
	s.t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	s.must(err)
	block, err := ssh.MarshalPrivateKey(key, "test")
	s.must(err)
	s.write(name, string(pem.EncodeToMemory(block)))
	return key
}

// linkTo names the test's end of the link to a host.
func linkTo(host string) string { return fmt.Sprintf("wts%d%s", os.Getpid(), host) }

// addHost makes a host's namespace and its link to the test.
func (s *site) addHost(i int, name string) {
	s.t.Helper()
	sp, err := space.Create(fmt.Sprintf("wt-ssh%d-%s", os.Getpid(), name))
	s.must(err)
	s.spaces = append(s.spaces, sp)
	s.t.Cleanup(func() {
		sp.Close()
		if err := space.Delete(sp.Name); err != nil {
			s.t.Error(err)
		}
	})
	here, err := space.Open("")
	s.must(err)
	s.t.Cleanup(func() {
		if err := errors.Join(here.Remove(linkTo(name)), here.Close()); err != nil {
			s.t.Error(err)
		}
	})
	link := linkTo(name)
	s.must(here.Pair(space.Veth{Name: link, PeerName: "mgmt", MTU: 1500}, sp))
	s.must(here.Address(link, netip.MustParsePrefix(fmt.Sprintf("198.18.78.%d/30", 4*i+1))))
	s.must(here.Up(link))
	s.must(sp.Address("mgmt", netip.MustParsePrefix(fmt.Sprintf("198.18.78.%d/30", 4*i+2))))
	s.must(sp.Up("mgmt"))
	s.hosts.Hosts = append(s.hosts.Hosts, Host{
		Name: name, Address: fmt.Sprintf("198.18.78.%d", 4*i+2), User: "root", Port: 22, Key: s.path("key"), Directory: s.path("program"),
		CPUs: fmt.Sprint(i % runtime.NumCPU()), Data: fmt.Sprintf("10.77.0.%d", i+1), knownHosts: s.path("known"),
	})
	s.must(s.hosts.Hosts[i].check())
}

// addSwitch joins the data devices of the hosts by a bridge. The bridge's port to host c is
// named c.
func (s *site) addSwitch() {
	s.t.Helper()
	sp, err := space.Create(fmt.Sprintf("wt-ssh%d-switch", os.Getpid()))
	s.must(err)
	s.fabric = sp
	s.t.Cleanup(func() {
		sp.Close()
		if err := space.Delete(sp.Name); err != nil {
			s.t.Error(err)
		}
	})
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "switch"
	s.must(sp.Add(&netlink.Bridge{LinkAttrs: attrs}))
	s.must(sp.Up("switch"))
	for i, h := range s.hosts.Hosts {
		s.must(s.spaces[i].Pair(space.Veth{Name: "data", PeerName: h.Name, MTU: 1500}, sp))
		s.must(sp.Enslave(h.Name, "switch"))
		s.must(sp.Up(h.Name))
	}
}

// limit limits what a device sends to a rate in bit/s, by a token bucket (TBF).
func (s *site) limit(sp *space.Space, device string, rate uint64) {
	s.t.Helper()
	l, err := sp.Link(device)
	s.must(err)
	const burst = 128 << 10 // two superframes
	s.must(sp.Links.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
		Rate:       rate / 8, Buffer: uint32(burst * 8e6 / float64(rate) * netlink.TickInUsec()), Limit: 1 << 20,
	}))
}

// startServer starts sshd on a host, and adds its key to the known keys.
func (s *site) startServer(i int, options []string) {
	s.t.Helper()
	h := s.hosts.Hosts[i]
	key := s.writeKey("host_" + h.Name)
	signer, err := ssh.NewSignerFromKey(key)
	s.must(err)
	known, err := os.OpenFile(s.path("known"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.must(err)
	fmt.Fprintln(known, knownhosts.Line([]string{h.Address, h.Data}, signer.PublicKey()))
	s.must(known.Close())
	config := append([]string{
		"HostKey " + s.path("host_"+h.Name), "PidFile none", "AuthorizedKeysFile " + s.path("authorized"),
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "PermitRootLogin prohibit-password",
	}, options...)
	s.write("sshd_"+h.Name, strings.Join(config, "\n")+"\n")
	cmd := exec.Command(sshd, "-D", "-e", "-f", s.path("sshd_"+h.Name))
	log, err := os.Create(s.path("log_" + h.Name))
	s.must(err)
	defer log.Close()
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true}
	s.must(s.spaces[i].Do(cmd.Start))
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		s.awaitNoSessions(i)
		if said, err := os.ReadFile(log.Name()); s.t.Failed() && err == nil {
			s.t.Logf("sshd of host %s:\n%s", h.Name, said)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", h.Address+":22", time.Second)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("sshd of host %s does not answer: %v", h.Name, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.processes(i)) != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) { // a process of the connection above is left
			s.t.Fatalf("host %s has the processes %v, want sshd alone", h.Name, s.processes(i))
		}
	}
}

// processes lists the processes in a host's namespace.
func (s *site) processes(i int) (pids []int) {
	s.t.Helper()
	own, err := s.spaces[i].Inode()
	s.must(err)
	all, err := procfs.AllProcs()
	s.must(err)
	for _, p := range all {
		var st syscall.Stat_t
		// A thread of the test can stay in the namespace.
		if p.PID != os.Getpid() && syscall.Stat(fmt.Sprintf("/proc/%d/ns/net", p.PID), &st) == nil && uint32(st.Ino) == own {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// awaitNoSessions waits until no process is left on a host whose sshd has ended.
func (s *site) awaitNoSessions(i int) {
	for deadline := time.Now().Add(20 * time.Second); len(s.processes(i)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("processes %v are left on host %s", s.processes(i), s.hosts.Hosts[i].Name)
			return
		}
	}
}

// connect connects to the hosts for the rest of the test.
func (s *site) connect() *Executor {
	s.t.Helper()
	x, err := Connect(context.Background(), s.hosts, nil)
	s.must(err)
	s.t.Cleanup(func() {
		if err := x.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return x
}

func (s *site) hold(x *Executor) {
	s.t.Helper()
	_, err := x.Hold(context.Background())
	s.must(err)
}

// scenario is a short paced TCP stream, slow enough for a busy machine.
func scenario(system string, duration time.Duration) suite.Scenario {
	return suite.Scenario{
		ID: system, System: system, Placement: suite.TwoNodes, Pairs: 1, Tool: "builtin",
		Workload: suite.Workload{Name: "stream", Kind: suite.TCPStream, Direction: suite.Forward, Streams: 1, Buffer: 64 << 10, Rate: 200e6, IPVersion: 4},
		Fabric:   suite.Fabric{Name: "wire", Kind: suite.Wire, MTU: 1500, Offload: suite.OffloadTCP, Queues: 1, Links: 1},
		Timing:   suite.Timing{Warmup: 100 * time.Millisecond, Duration: duration, Cooldown: 50 * time.Millisecond},
	}
}

// notebook keeps the samples of an experiment.
type notebook struct {
	mu      sync.Mutex
	samples []sample.Sample
	moved   func() // called with the traffic of each trial; may be nil
	up      func(*experiment.Bench)
}

func (n *notebook) Record(s sample.Sample) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.samples = append(n.samples, s)
	return nil
}

func (n *notebook) Moved(experiment.Trial, sample.Point) {
	if n.moved != nil {
		n.moved()
	}
}

func (n *notebook) Up(_ *suite.Scenario, b *experiment.Bench) {
	if n.up != nil {
		n.up(b)
	}
}

func (*notebook) Began(experiment.Trial, experiment.Progress) {}
func (*notebook) Ended(sample.Sample, experiment.Progress)    {}
func runID() string                                           { return netns.RunID(os.Getpid()) }

// runTrials runs each scenario in a number of blocks.
func runTrials(x *Executor, n *notebook, blocks int, scenarios ...suite.Scenario) error {
	e := &experiment.Experiment{
		Plan: &suite.Plan{Suite: "test", Nodes: 2, Trials: blocks, Scenarios: scenarios},
		Seed: 1, Executor: x, ID: runID(), Self: agent.Self, Attempts: 1, Lenient: true, Recorder: n, Observer: n, Grace: time.Second,
	}
	return e.Run(context.Background())
}

// runPairs runs a scenario in a number of blocks between pairs of hosts (as of --pairs), and
// returns the report.
func runPairs(x *Executor, n *notebook, pairs string, blocks, parallel int, sc suite.Scenario) (*model.Report, error) {
	var names []string
	for _, m := range x.machines {
		names = append(names, m.Name)
	}
	matrix, err := suite.NewMatrix(names, pairs, parallel)
	if err != nil {
		return nil, err
	}
	plan := suite.Plan{Suite: "test", Nodes: 2, Trials: blocks, Scenarios: []suite.Scenario{sc}, Matrix: matrix}
	e := &experiment.Experiment{
		Plan: &plan, Seed: 1, Executor: x, ID: runID(), Self: agent.Self, Attempts: 3, Lenient: true, Recorder: n, Observer: n, Grace: 300 * time.Millisecond,
	}
	if err := e.Run(context.Background()); err != nil {
		return nil, err
	}
	return model.Build(sample.Run{ID: "test", Suite: "test", Status: sample.Complete}, plan, n.samples), nil
}

// leftovers lists the lab's namespaces that nodes of this process's runs left.
func leftovers(t *testing.T, id string) []string {
	t.Helper()
	list, err := space.Named(netns.SpacePrefix(id))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}
