package system

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// The test binary is the first process of containers.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == KeepCommand {
		Keep()
		return
	}
	os.Exit(m.Run())
}

func TestADockerBridgeWorksOnOneNodeAndBetweenNodes(t *testing.T) {
	f := suite.Fabric{Links: 1}
	for _, p := range []suite.Placement{suite.Colocated, suite.TwoNodes} {
		if err := Supports(DockerBridge{}, p, f); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	for s, want := range map[System]int{DockerBridge{}: 9000, DockerOverlay{}: 8950} {
		if got := MTU(s, 9000); got != want {
			t.Errorf("%s on a fabric of 9000: MTU %d, want %d", s.Name(), got, want)
		}
	}
	if !(DockerOverlay{}).About().IPv4Only || (DockerBridge{}).About().IPv4Only {
		t.Error("the overlay is made for IPv4 only, the bridge for both")
	}
}

// tokensBetween runs an exchange of tokens in a namespace where a few addresses
// stand for nodes.
func tokensBetween(t *testing.T, do func(nodes []netip.Addr) error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	s := freshSpace(t, "token")
	nodes := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}
	must.Succeed(t, s.Do(func() error { return do(nodes) }))
}

func TestEachNodeGetsTheTokenOnce(t *testing.T) {
	tokensBetween(t, func(nodes []netip.Addr) error {
		g, err := giveToken(nodes[0], nodes[1:], "SWMTKN-1")
		if err != nil {
			return err
		}
		served := make(chan error, 1)
		go func() { served <- g.serve(5 * time.Second) }()
		if token, err := askToken(netip.MustParseAddr("127.0.0.9"), nodes[0], 150*time.Millisecond); err == nil {
			t.Errorf("a stranger got the token %q", token)
		}
		for _, n := range nodes[1:] {
			if token, err := askToken(n, nodes[0], 2*time.Second); err != nil || token != "SWMTKN-1" {
				t.Errorf("%s got %q (%v)", n, token, err)
			}
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if token, err := askToken(nodes[1], nodes[0], 100*time.Millisecond); err == nil {
			t.Errorf("the token %q was given once more", token)
		}
		return nil
	})
}

func TestANodeThatNeverRequestsTheTokenIsNamed(t *testing.T) {
	tokensBetween(t, func(nodes []netip.Addr) error {
		g, err := giveToken(nodes[0], nodes[1:], "SWMTKN-1")
		if err != nil {
			return err
		}
		served := make(chan error, 1)
		go func() { served <- g.serve(500 * time.Millisecond) }()
		if _, err := askToken(nodes[1], nodes[0], time.Second); err != nil {
			t.Error(err)
		}
		err = <-served
		if err == nil || !strings.Contains(err.Error(), nodes[2].String()) || strings.Contains(err.Error(), nodes[1].String()) {
			t.Errorf("%v; want an error that names %s only", err, nodes[2])
		}
		return nil
	})
}

func TestTheErrorOfASwarmWithoutItsFirstNodeNamesIt(t *testing.T) {
	tokensBetween(t, func(nodes []netip.Addr) error {
		_, err := askToken(nodes[1], nodes[0], 100*time.Millisecond)
		must.Fail(t, err, "first node")
		return nil
	})
}

// dockersOwnPlaces is what could change for the machine and for its user: what a
// dockerd of theirs has, the kernel's settings and modules, the rules.
func dockersOwnPlaces(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, path := range []string{"/var/lib/docker", "/var/lib/containerd", "/etc/docker", "/run/docker", "/run/docker.sock", "/run/docker.pid", "/run/containerd", "/opt/containerd", os.Getenv("HOME") + "/.docker"} {
		st, err := os.Lstat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			state[path] = "absent"
		case err != nil:
			t.Error(err)
		default:
			state[path] = st.ModTime().String()
		}
	}
	settings, err := filepath.Glob("/proc/sys/kernel/keys/*")
	if err != nil {
		t.Error(err)
	}
	neighbours, err := filepath.Glob("/proc/sys/net/ipv4/neigh/default/gc_thresh*")
	if err != nil {
		t.Error(err)
	}
	settings = append(append(settings, neighbours...), "/proc/sys/net/bridge/bridge-nf-call-iptables", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/vm/overcommit_memory", "/sys/kernel/security/apparmor/profiles")
	for _, path := range settings {
		text, _ := os.ReadFile(path) // what this kernel does not have stays empty
		state[path] = string(text)
	}
	modules, _ := os.ReadFile("/proc/modules")
	for line := range strings.Lines(string(modules)) {
		state["module "+strings.Fields(line)[0]] = "loaded"
	}
	rules, err := exec.Command("iptables-save").Output()
	if err == nil {
		for line := range strings.Lines(string(rules)) {
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") { // dates and counters
				state["rule "+line] = "there"
			}
		}
	}
	return state
}

// assertUntouched compares the user's places with what they were.
func assertUntouched(t *testing.T, before map[string]string) {
	t.Helper()
	after := dockersOwnPlaces(t)
	for what, now := range after {
		if was, known := before[what]; !known || was != now {
			t.Errorf("%s was %q and is %q", what, was, now)
		}
	}
	for what := range before {
		if _, still := after[what]; !still {
			t.Errorf("%s is gone", what)
		}
	}
}

// assertNoDocker: nothing of a system of Docker's is left on a node.
func assertNoDocker(t *testing.T, n *Node) {
	t.Helper()
	for _, pattern := range []string{"/sys/fs/cgroup/" + n.Name, "/sys/fs/cgroup/*/" + n.Name, dockerOf(n).home} {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			t.Errorf("left behind: %v (%v)", found, err)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), dockerOf(n).home) {
		t.Errorf("mounts of %s are left (%v)", n.Name, err)
	}
	links := must.Get(n.Space.Links.LinkList())(t)
	for _, l := range links {
		if name := l.Attrs().Name; name != "lo" && !slices.Contains(n.Fabric, name) {
			t.Errorf("device %s is left in %s", name, n.Name)
		}
	}
	assertNoRules(t, n)
	for _, path := range argvOf(t) {
		if strings.Contains(path, dockerOf(n).home) {
			t.Errorf("a process is left: %q", path)
		}
	}
}

// argvOf lists the command lines of all processes but the caller.
func argvOf(t *testing.T) (lines []string) {
	t.Helper()
	files := must.Get(filepath.Glob("/proc/[0-9]*/cmdline"))(t)
	for _, f := range files {
		text, _ := os.ReadFile(f) // what has ended meanwhile has none
		lines = append(lines, strings.ReplaceAll(string(text), "\x00", " "))
	}
	return lines
}
