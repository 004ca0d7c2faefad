package fleet

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// A store that is restored from a backup has an older revision. A watch from a newer revision
// would wait for it without an error, and the revisions of a copy would fit to no key.
func TestARestoredStoreIsReadAgain(t *testing.T) {
	c := storetest.Start(t, 1, nil)
	f := followWith(t, openEtcd(t, c), Options{Node: "a", Lease: 3 * time.Second})
	apply(t, f, small())
	add(t, f, port("old", "10.1.0.10"))
	backup := c.Backup(0)
	done := make(chan error, 1)
	attending, end := context.WithCancel(ctx(t))
	go func() { done <- f.Attend(attending, "a", Alive{Instance: "one"}, func() {}) }()
	defer func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for i := range 20 {
		add(t, f, port(fmt.Sprint("new", i), fmt.Sprintf("10.1.0.%d", 20+i)))
	}
	c.Kill(0)
	c.Restore(0, backup)
	has := func(ports int) func() bool {
		return func() bool { return f.view != nil && f.problem == nil && len(f.view.ports) == ports }
	}
	must.Succeed(t, f.await(ctx(t), has(1)))
	if h := f.Health(); !strings.Contains(h.WentBack, "the store went back from revision") {
		t.Errorf("the health is %+v, want a note that the store went back", h)
	}
	add(t, f, port("later", "10.1.0.11"))
	must.Succeed(t, f.await(ctx(t), func() bool { return f.view.alive["a"].Instance == "one" }))

	// An empty store must not remove the state of a running fleet.
	c.Kill(0)
	c.Restore(0, "")
	if err := f.await(ctx(t), func() bool { return f.problem != nil && strings.Contains(f.problem.Error(), "lost its content") }); err != nil {
		t.Fatalf("the problem of an empty store is %v", f.Health().Problem)
	}
	keeps := func() {
		t.Helper()
		f.Peek(func(v *View) {
			must.Equal(t, 2, len(v.ports))
		})
	}
	keeps()
	soon, cancel := context.WithTimeout(ctx(t), 5*time.Second)
	defer cancel()
	_, err := f.hold(soon, "a", Alive{Instance: "one"})
	must.Fail(t, err, "lost its content")
	// A node without ports may write to the empty store first. That must not remove the state either.
	apply(t, follow(t, openEtcd(t, c)), model.State{Nodes: []model.Node{{Name: "new", Underlay: []netip.Addr{netip.MustParseAddr("172.31.0.99")}}}})
	if err := f.await(ctx(t), func() bool {
		return f.problem != nil && strings.Contains(f.problem.Error(), "another store has the address")
	}); err != nil {
		t.Errorf("the problem of a new store is %v", f.Health().Problem)
	}
	must.Fail(t, f.DeleteNetwork(ctx(t), "red"), "another store has the address")
	keeps()
	c.Kill(0)
	c.Restore(0, backup)
	must.Succeed(t, f.await(ctx(t), has(1)))
}

// A client that connects again only after the others have changed the restored store sees no older
// revision.
func TestARestoredStoreThatOthersChangedIsReadAgain(t *testing.T) {
	for _, last := range []string{"added", "deleted"} {
		t.Run(last, func(t *testing.T) {
			c := storetest.Start(t, 1, nil)
			var gate sync.RWMutex // f connects only while it is open
			address := must.Get(store.ParseAddress("etcd+insecure://" + c.Endpoints()))(t)
			s := must.Get(store.OpenEtcd(address, store.TLS{}, func(ctx context.Context, to string) (net.Conn, error) {
				gate.RLock()
				defer gate.RUnlock()
				return c.Dial(ctx, to)
			}))(t)
			defer s.Close()
			f := follow(t, s)
			apply(t, f, small())
			backup := c.Backup(0)
			add(t, f, port("lost", "10.1.0.10"))
			if last == "deleted" {
				add(t, f, port("lost2", "10.1.0.11"))
				must.Get(f.DeletePort(ctx(t), "lost2", nil))(t)
			}
			revision := f.Health().Revision
			gate.Lock()
			c.Kill(0)
			c.Restore(0, backup)
			other := follow(t, openEtcd(t, c))
			for i := 0; i < 3 || other.Health().Revision <= revision; i++ {
				add(t, other, port(fmt.Sprint("new", i), fmt.Sprintf("10.1.0.%d", 20+i)))
			}
			gate.Unlock()
			add(t, other, port("later", "10.1.0.99"))
			if err := f.await(ctx(t), func() bool {
				return f.view.ports["later"] != nil && f.view.ports["new0"] != nil && f.view.ports["lost"] == nil
			}); err != nil {
				t.Errorf("the copy has the ports %v (%v), want those of the store", slices.Collect(maps.Keys(f.view.ports)), f.Health())
			}
		})
	}
}
