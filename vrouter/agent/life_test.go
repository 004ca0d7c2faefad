package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
)

// written writes a configuration to a file, for an agent in another process.
func written(t *testing.T, c config.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.yaml")
	l := c.Limits
	text := fmt.Sprintf("node: %s\nnetns: %s\nrun_dir: %s\nsocket: %s\nstate_dir: %s\nrepair_interval: %s\n"+
		"limits: {routes: %d, prefixes: %d, bridge: %d, nexthops: %d, vifs: %d, labels: %d, remotes: %d, flows: %d}\n",
		c.Node, c.Netns, c.RunDir, c.Socket, c.StateDir, c.RepairInterval,
		l.Routes, l.Prefixes, l.Bridge, l.Nexthops, l.Vifs, l.Labels, l.Remotes, l.Flows)
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// killed ends an agent by SIGKILL, so that it cannot clean up.
func killed(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must.Succeed(t, cmd.Process.Kill())
	cmd.Wait() // says that it was killed
}

// answers waits until the agent answers.
func answers(t *testing.T, r *running) {
	t.Helper()
	must.Eventually(t, "the agent's answer", func() error {
		_, err := r.client.Status(context.Background())
		return err
	})
}

// mapIDs returns the kernel's ids of the pinned maps.
func mapIDs(t *testing.T, c config.Config) map[string]ebpf.MapID {
	t.Helper()
	all := map[string]ebpf.MapID{}
	for _, path := range pinned(t, c, "g*/*") {
		m := must.Get(ebpf.LoadPinnedMap(path, nil))(t)
		info := must.Get(m.Info())(t)
		id, _ := info.ID()
		all[filepath.Base(path)] = id
		m.Close()
	}
	return all
}

// conversation is a TCP connection over the overlay that stays open.
type conversation struct{ near, far net.Conn }

func converse(t *testing.T, from, to *netdev.Space, address string) *conversation {
	t.Helper()
	return converseAt(t, from, to, "", net.JoinHostPort(address, "0"))
}

// converseAt connects to the address at, such as that of a service, which leads to the listener. at "": it
// connects to the listener's own address.
func converseAt(t *testing.T, from, to *netdev.Space, address, listen string) *conversation {
	t.Helper()
	var l net.Listener
	must.Succeed(t, to.Do(func() (err error) {
		l, err = net.Listen("tcp", listen)
		return err
	}))
	defer l.Close()
	if address == "" {
		address = l.Addr().String()
	}
	c := &conversation{}
	must.Succeed(t, from.Do(func() (err error) {
		c.near, err = net.DialTimeout("tcp", address, 5*time.Second)
		return err
	}))
	far := must.Get(l.Accept())(t)
	c.far = far
	t.Cleanup(func() { c.near.Close(); c.far.Close() })
	return c
}

// say sends 1 MB over a connection and reads it at the other end.
func (c *conversation) say() error {
	text := make([]byte, 1<<20)
	for _, end := range []net.Conn{c.near, c.far} {
		end.SetDeadline(time.Now().Add(10 * time.Second))
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.near.Write(text)
		sent <- err
	}()
	_, err := io.ReadFull(c.far, make([]byte, len(text)))
	return errors.Join(err, <-sent)
}

// TestAKilledAgentReturnsToTheSameMapsAndLinks checks that the next agent reuses maps
// and links. TCP connections continue, also while no agent runs.
func TestAKilledAgentReturnsToTheSameMapsAndLinks(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	a.stop(t) // from here on the agent runs in another process
	config := written(t, a.config)
	first := process(t, config)
	answers(t, a)
	must.Eventually(t, "health", func() error { return errors.Join(a.healthy(), b.traffic()) })
	talk := converse(t, b.workloads["a1"], b.workloads["b1"], "10.7.0.11")
	must.Succeed(t, talk.say())
	ids, was, before := mapIDs(t, a.config), links(t, a.config), contents(t, a.config)

	killed(t, first)
	if !exists(a.config.Socket) {
		t.Error("the killed agent removed its socket: it was not killed")
	}
	must.Succeed(t, errors.Join(talk.say(), b.traffic()))
	same := func(when string) {
		t.Helper()
		if d := cmp.Diff(ids, mapIDs(t, a.config)); d != "" {
			t.Errorf("%s the maps are others:\n%s", when, d)
		}
		if d := cmp.Diff(was, links(t, a.config)); d != "" {
			t.Errorf("%s the links are others:\n%s", when, d)
		}
		unchanged(t, before, contents(t, a.config))
	}
	same("without an agent")

	second := process(t, config)
	answers(t, a)
	must.Succeed(t, errors.Join(a.healthy(), talk.say(), b.traffic()))
	same("with the next agent")
	must.Equal(t, 0, a.repairs(t))
	state := must.Get(a.client.State(context.Background()))(t)
	if len(state.Ports) != 3 || len(state.Nodes) != 2 {
		t.Errorf("the state is %+v", state)
	}

	killed(t, second)
	t.Run("with other limits the maps are new and the links the same", func(t *testing.T) {
		other := a.config
		other.Limits.Routes = 1000
		other.RepairInterval = time.Hour // the older maps must not wait for a check for drift
		process(t, written(t, other))
		answers(t, a)
		must.Succeed(t, errors.Join(a.healthy(), talk.say(), b.traffic()))
		must.Equal(t, was, links(t, a.config))
		must.Eventually(t, "the older maps' retirement", func() error {
			if dirs := pinned(t, a.config, "g*"); len(dirs) != 1 {
				return fmt.Errorf("there are %q", dirs)
			}
			return nil
		})
		now := mapIDs(t, a.config)
		for name, id := range now {
			if ids[name] == id {
				t.Errorf("map %s is the old one", name)
			}
		}
		must.Equal(t, len(ids), len(now))
		must.Equal(t, 1000, pinnedMap(t, a.config, "hosts4").MaxEntries())
	})
}

// TestDriftWhileNoAgentRunsIsRepairedByTheNext deletes objects while no agent runs. The
// next agent must restore them.
func TestDriftWhileNoAgentRunsIsRepairedByTheNext(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	before, ids := contents(t, a.config), mapIDs(t, a.config)
	device := a.device(t, "a1")
	a.stop(t)
	emptied(t, a.config, "hosts4")
	detached(t, a.config, "links/xdp-*")
	must.Succeed(t, b.A.Links.LinkSetDown(agenttest.LinkIn(t, b.A, device)))
	a = start(t, a.config)
	must.Eventually(t, "health", func() error { return errors.Join(a.healthy(), b.traffic()) })
	unchanged(t, before, contents(t, a.config))
	must.Equal(t, ids, mapIDs(t, a.config))
}

// With another run_dir the agent finds no pins. The programs of the earlier agent are still on the
// devices, and would drop packets that the new programs send.
func TestAnAgentWithAnotherRunDirReplacesThePrograms(t *testing.T) {
	for _, tcx := range []config.Switch{config.Auto, config.Off} {
		t.Run("tcx="+string(tcx), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, func(c *config.Config) { c.TCX = tcx })
			was := b.nodes["a"]
			was.stop(t)
			must.Succeed(t, b.traffic())
			c := was.config
			c.RunDir, c.Socket, c.TCX = filepath.Join(b.Dir, "elsewhere"), "", config.Auto
			b.nodes["a"] = start(t, c.WithDefaults())
			must.Eventually(t, "traffic", b.traffic)
			must.Succeed(t, b.nodes["a"].healthy())
			must.Fail(t, Remove(t.Context(), was.config, false, RemoveTimeout), "has an agent already")
			must.Succeed(t, b.traffic())
			for name, id := range links(t, was.config) {
				l := must.Get(link.NewFromID(id))(t)
				info := must.Get(l.Info())(t)
				l.Close()
				if tcx := info.TCX(); tcx != nil && tcx.Ifindex != 0 {
					t.Errorf("link %s of the earlier agent is still on device %d", name, tcx.Ifindex)
				}
			}
		})
	}
}

// A namespace has one agent. No other user can let a second one start, or keep the first from starting.
func TestANetworkNamespaceHasOneAgent(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, nil, "a")
	c := b.nodes["a"].config
	c.Node, c.RunDir, c.Socket, c.StateDir = "other", filepath.Join(b.Dir, "elsewhere"), "", filepath.Join(b.Dir, "state-other")
	refused := func() {
		t.Helper()
		ctx, end := context.WithTimeout(t.Context(), 10*time.Second)
		defer end()
		err := Run(ctx, c, Options{})
		must.Fail(t, err, fmt.Sprintf("has an agent already, process %d", os.Getpid()), b.A.Name)
		must.Succeed(t, b.traffic())
	}
	refused()
	b.nodes["a"].stop(t)
	space := must.Get(os.Open(filepath.Join(netspace.Dir, b.A.Name)))(t)
	t.Cleanup(func() { space.Close() })
	// Opened by its path in /proc, the file is reachable whatever the modes of its parent directories are.
	must.Succeed(t, asNobody(func() error {
		file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", space.Fd()))
		if err != nil {
			return err
		}
		t.Cleanup(func() { file.Close() })
		return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}))
	b.nodes["a"] = start(t, b.nodes["a"].config)
	refused()
}

// Between fork and exec, a child process has copies of all file descriptors of the agent.
func TestTheNextAgentStartsAlthoughAChildHasTheFilesOfTheFirst(t *testing.T) {
	f := agenttest.NewFleet(t)
	c := f.Config("a")
	for range 2 {
		l := must.Get(takeLock(c))(t)
		mine := must.Get(claimSpace(f.A))(t)
		for _, file := range []*os.File{l.file, mine.File} {
			child := must.Get(unix.Dup(int(file.Fd())))(t)
			defer unix.Close(child)
		}
		must.Succeed(t, errors.Join(mine.Close(), l.release()))
	}
}
