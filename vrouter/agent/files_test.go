package agent

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// Other users must not be able to open the agent's files, and so cannot lock them, whatever the
// umask of the agent is.
func TestOtherUsersCannotOpenTheAgentsFiles(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	b := newBedOf(t, func(c *config.Config) {
		must.Succeed(t, os.MkdirAll(filepath.Dir(c.LockPath()), 0o755))
		must.Succeed(t, os.Mkdir(c.StateDir, 0o755))
		must.Succeed(t, os.WriteFile(c.LockPath(), nil, 0o644)) // of an older version
	}, "a")
	second := b.Config("b")
	second.Store = "embedded"
	must.Succeed(t, os.Mkdir(second.StateDir, 0o755))
	start(t, second)
	found := map[string]bool{}
	for _, root := range []string{second.RunDir, b.nodes["a"].config.StateDir, second.StateDir} {
		must.Succeed(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			found[d.Name()] = true
			switch {
			case path == root:
			case info.Mode()&0o077 != 0:
				t.Errorf("%s has mode %v", path, info.Mode())
			case d.IsDir():
				return fs.SkipDir // others reach nothing in it
			}
			return nil
		}))
	}
	for _, name := range []string{"a.lock", "a.sock", "node.json", "store.db", "embedded"} {
		if !found[name] {
			t.Errorf("there is no file %s", name)
		}
	}
}

// A store that is lost or damaged is not a new one: the node keeps its ports.
func TestANodeWhoseStoreIsLostKeepsItsPorts(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, nil, "a")
	a := b.nodes["a"]
	a.stop(t)
	path := filepath.Join(a.config.StateDir, "store.db")
	whole, err := os.ReadFile(path)
	must.Succeed(t, err)
	refused := func(what string, c config.Config, why string) {
		t.Helper()
		ctx, end := context.WithTimeout(context.Background(), 20*time.Second)
		defer end()
		must.Fail(t, Run(ctx, c, Options{}), why, "--new-store")
		must.Succeed(t, b.traffic())
	}
	with := func(change func(text []byte) []byte) {
		t.Helper()
		must.Succeed(t, os.WriteFile(path, change(append([]byte(nil), whole...)), 0o600))
	}
	page := os.Getpagesize()
	damaged := func(n int) func([]byte) []byte {
		return func(text []byte) []byte {
			clear(text[n*page : (n+1)*page])
			return text
		}
	}
	must.Succeed(t, os.Remove(path))
	refused("the file is missing", a.config, "missing or empty")
	refused("the start before was refused", a.config, "missing or empty")
	with(func([]byte) []byte { return nil })
	refused("the file is empty", a.config, "missing or empty")
	with(damaged(0))
	refused("page 0 is damaged", a.config, "page 0 of the file is damaged")
	with(damaged(1))
	refused("page 1 is damaged", a.config, "page 1 of the file is damaged")
	with(func(text []byte) []byte { return text[:3*page] })
	refused("the file is cut off", a.config, "cut off")
	embedded := a.config
	embedded.Store = "embedded"
	refused("a new embedded store", embedded, "missing or empty")

	must.Succeed(t, os.Remove(path))
	a.config.NewStore = true
	s, err := start(t, a.config).client.State(t.Context())
	if err != nil || len(s.Ports) != 0 {
		t.Errorf("with --new-store the state has the ports %+v (%v), want none", s.Ports, err)
	}
}

// An agent starts with another etcd than before: an empty one, or one that other nodes have written.
// The node keeps its ports, and writes nothing to that etcd.
func TestAnotherEtcdDoesNotRemoveTheNodesPorts(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBedOf(t, nil, "a")
	b.nodes["a"].stop(t)
	etcd := storetest.Start(t, 1, nil)
	etcd.Connect(b.A.Ns)
	c := b.nodes["a"].config
	c.Store, c.NewStore = "etcd+insecure://"+etcd.Endpoints(), true
	a := start(t, c)
	b.apply(t, "a", b.state)
	must.Eventually(t, "traffic", b.traffic)
	a.stop(t)
	etcd.Kill(0)
	etcd.Restore(0, "") // a new one
	c.NewStore = false
	refused := func(why string) {
		t.Helper()
		a := start(t, c)
		must.Eventually(t, "the problem", func() error {
			s, err := a.client.Status(t.Context())
			if err == nil && (!strings.Contains(s.Store.Problem, why) || !strings.Contains(s.Store.Problem, "--new-store")) {
				err = fmt.Errorf("the problem of the store is %q, want %q", s.Store.Problem, why)
			}
			if err == nil && s.Ports != 2 {
				err = fmt.Errorf("the node has %d ports, want 2", s.Ports)
			}
			return err
		})
		must.Succeed(t, b.traffic())
		a.stop(t)
	}
	refused("the store lost its content: it is empty")
	address := must.Get(store.ParseAddress(c.Store))(t)
	s := must.Get(store.OpenEtcd(address, store.TLS{}, etcd.Dial))(t)
	defer s.Close()
	others := fleet.New(s, fleet.Options{})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { others.Run(ctx) })
	defer running.Wait()
	defer end()
	must.Succeed(t, others.Apply(ctx, model.State{Nodes: b.state.Nodes}))
	refused("another store has the address of the store")
	others.Peek(func(v *fleet.View) {
		if alive, is := v.Alive("a"); is {
			t.Errorf("the agent of node a has written its alive key to the other store: %+v", alive)
		}
	})
	c.NewStore = true
	a = start(t, c)
	must.Eventually(t, "a node without ports", func() error {
		if s, err := a.client.Status(t.Context()); err != nil || s.Ports != 0 || s.Store.Problem != "" {
			return fmt.Errorf("with --new-store the status is %+v, %v", s, err)
		}
		return nil
	})
}
