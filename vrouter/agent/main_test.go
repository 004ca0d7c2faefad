package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// asAgent is the environment variable that makes the test binary run an agent, for
// tests that kill the agent.
const asAgent = "VROUTER_TEST_AGENT_CONFIG"

func TestMain(m *testing.M) {
	if path := os.Getenv(asAgent); path != "" {
		c, err := LoadConfig(path)
		if err == nil {
			err = Run(context.Background(), c, Options{Version: "test", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces and eBPF need root")
	}
}

var spacesMade atomic.Int32 // tests run beside each other

// newSpace makes a network namespace that is deleted after the test.
func newSpace(t *testing.T, part string) *space {
	t.Helper()
	return namedSpace(t, fmt.Sprintf("vr-%d-%d-%s", os.Getpid(), spacesMade.Add(1), part))
}

func namedSpace(t *testing.T, name string) *space {
	t.Helper()
	needRoot(t)
	done := make(chan error, 1)
	go func() {
		// Use a new thread that ends: NewNamed moves the thread into the new namespace.
		lockThread()
		h, err := netns.NewNamed(name)
		if err == nil {
			h.Close()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("make network namespace %s: %v", name, err)
	}
	t.Cleanup(func() { deleteSpace(name) })
	s, err := openSpace(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	up(t, s, "lo")
	return s
}

func deleteSpace(name string) {
	if err := netns.DeleteNamed(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "delete network namespace", name, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func linkIn(t *testing.T, s *space, name string) netlink.Link {
	t.Helper()
	l, err := s.link(name)
	must(t, err)
	if l == nil {
		t.Fatalf("%s has no device %s", s.name, name)
	}
	return l
}

func up(t *testing.T, s *space, name string) {
	t.Helper()
	must(t, s.links.LinkSetUp(linkIn(t, s, name)))
}

// addressed adds an address to a device, without duplicate address detection.
func addressed(t *testing.T, s *space, name, prefix string) {
	t.Helper()
	a := &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix(prefix))}
	if netip.MustParsePrefix(prefix).Addr().Is6() {
		a.Flags = 0x02 // IFA_F_NODAD
	}
	must(t, s.links.AddrAdd(linkIn(t, s, name), a))
}

// joined makes a veth pair, one end in each namespace, both up.
func joined(t *testing.T, a, b *space, nameA, nameB string, mtu int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameA, mtu
	must(t, a.links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerMTU: uint32(mtu), PeerNamespace: netlink.NsFd(b.ns)}))
	up(t, a, nameA)
	up(t, b, nameB)
}

// twoNodes is two nodes with an underlay between them.
type twoNodes struct {
	a, b *space
	dir  string
}

// underlayMTU leaves workloads 1500 bytes with every encapsulation.
const underlayMTU = 1600

func newFleet(t *testing.T) *twoNodes {
	t.Helper()
	f := &twoNodes{a: newSpace(t, "a"), b: newSpace(t, "b"), dir: t.TempDir()}
	joined(t, f.a, f.b, "fab0", "fab0", underlayMTU)
	addressed(t, f.a, "fab0", "172.31.0.1/24")
	addressed(t, f.b, "fab0", "172.31.0.2/24")
	return f
}

// testLimits are small, since the tests create the tables of many agents.
var testLimits = Limits{Routes: 4096, Prefixes: 1024, Bridge: 4096, Nexthops: 512, Vifs: 64, Labels: 512, Remotes: 512, Flows: 4096}

// config makes the configuration of a node's agent in the test's directory.
func (f *twoNodes) config(node string) Config {
	s := map[string]*space{"a": f.a, "b": f.b}[node]
	return Config{
		Node: node, Netns: s.name, RunDir: filepath.Join(f.dir, "run"), StateDir: filepath.Join(f.dir, "state-"+node),
		RepairInterval: 100 * time.Millisecond, Limits: testLimits,
	}.withDefaults()
}

// state of the fleet: network red with a port on each node and one more on a.
func (f *twoNodes) state(workloads map[string]*space) model.State {
	s := model.State{
		Nodes: []model.Node{
			{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.1")}},
			{Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.2")}},
		},
		Networks: []model.Network{{Name: "red", ID: 7, Subnets: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/24"), netip.MustParsePrefix("fd07::/64")}}},
	}
	for i, p := range []struct{ name, node string }{{"a1", "a"}, {"b1", "b"}, {"a2", "a"}} {
		w, ok := workloads[p.name]
		if !ok {
			continue
		}
		s.Ports = append(s.Ports, model.Port{
			Name: p.name, Network: "red", Node: p.node, MAC: model.MAC{2, 0, 0, 0, 7, byte(i + 10)},
			IPs:    []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.7.0.%d", i+10)), netip.MustParseAddr(fmt.Sprintf("fd07::%d", i+10))},
			Attach: model.Attachment{Netns: w.name},
		})
	}
	return s
}

// running is an agent that runs in this process.
type running struct {
	config Config
	client *api.Client
	end    context.CancelFunc
	ended  chan error
}

// start runs an agent and removes its node at the end of the test.
func start(t *testing.T, c Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{config: c, client: api.Dial(c.Socket), end: cancel, ended: make(chan error, 1)}
	go func() {
		r.ended <- Run(ctx, c, Options{Version: "test", Logger: slog.New(slog.NewTextHandler(testLog{t}, nil))})
	}()
	t.Cleanup(func() { removed(t, c) })
	t.Cleanup(func() { r.stop(t) })
	r.wait(t)
	return r
}

// removed removes the node of a test's agent.
func removed(t *testing.T, c Config) {
	t.Helper()
	if err := Remove(c, false); err != nil {
		t.Errorf("remove node %s: %v", c.Node, err)
	}
}

// wait waits until the agent answers.
func (r *running) wait(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := r.client.Status(context.Background()); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("the agent does not answer: %v", err)
		}
		select {
		case err := <-r.ended:
			r.ended <- err
			t.Fatalf("the agent ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop stops the agent; packets keep flowing.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.end()
	select {
	case err := <-r.ended:
		r.ended <- nil
		if err != nil {
			t.Errorf("the agent of node %s ended with: %v", r.config.Node, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the agent does not end")
	}
}

// testLog writes an agent's log to the test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// exchange sends a line over TCP from one namespace to an address in another. The
// other side sends the line back.
func exchange(from, to *space, address string) error {
	var l net.Listener
	err := to.do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buffer := make([]byte, 64)
		n, _ := c.Read(buffer)
		c.Write(buffer[:n])
	}()
	return from.do(func() error { return ask(l.Addr().String()) })
}

func ask(address string) error {
	c, err := net.DialTimeout("tcp", address, 3*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err := c.Write([]byte("over the overlay")); err != nil {
		return err
	}
	buffer := make([]byte, 64)
	n, err := c.Read(buffer)
	if err == nil && string(buffer[:n]) != "over the overlay" {
		err = fmt.Errorf("got %q back", buffer[:n])
	}
	return err
}

// process starts an agent in another process.
func process(t *testing.T, config string) *exec.Cmd {
	t.Helper()
	return launched(t, config, exec.Command("/proc/self/exe"))
}

// launched starts a command that runs an agent. PR_SET_PDEATHSIG (prctl(2)) kills the
// agent when the thread that started it ends. That thread waits until the test ends.
func launched(t *testing.T, config string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Env = append(os.Environ(), asAgent+"="+config)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error), make(chan struct{})
	go func() {
		lockThread()
		started <- cmd.Start()
		<-over
	}()
	must(t, <-started)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		close(over)
	})
	return cmd
}

// dialSocket connects to a unix socket and ignores the address.
func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}
