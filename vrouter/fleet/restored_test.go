package fleet

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"windtunnel/vrouter/store/storetest"
)

// A store that is restored from a backup has an older revision. A watch from a newer revision
// would wait for it without an error, and the revisions of a copy would fit to no key.
func TestARestoredStoreIsReadAgain(t *testing.T) {
	c := storetest.Start(t, 1, nil)
	f := follow(t, openEtcd(t, c))
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
	if err := f.await(ctx(t), has(1)); err != nil {
		t.Fatalf("the copy is not read again: %v", err)
	}
	if h := f.Health(); !strings.Contains(h.WentBack, "the store went back from revision") {
		t.Errorf("the health is %+v, want a note that the store went back", h)
	}
	add(t, f, port("later", "10.1.0.11"))
	if err := f.await(ctx(t), func() bool { return f.view.alive["a"].Instance == "one" }); err != nil {
		t.Errorf("the alive key, which the backup does not have, is not written again: %v", err)
	}

	// An empty store does not take the state from a running fleet.
	c.Kill(0)
	c.Restore(0, "")
	if err := f.await(ctx(t), func() bool { return f.problem != nil && strings.Contains(f.problem.Error(), "lost its content") }); err != nil {
		t.Fatalf("the problem of an empty store is %v", f.Health().Problem)
	}
	f.Peek(func(v *View) {
		if len(v.ports) != 2 {
			t.Errorf("the copy has %d ports, want 2", len(v.ports))
		}
	})
	c.Kill(0)
	c.Restore(0, backup)
	if err := f.await(ctx(t), has(1)); err != nil {
		t.Errorf("after the backup was restored: %v", err)
	}
}
