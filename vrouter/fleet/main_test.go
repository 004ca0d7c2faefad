package fleet

import (
	"context"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// open makes a store and a fleet that follows it.
func open(t testing.TB) *Fleet {
	t.Helper()
	return follow(t, &recorded{Store: fileStore(t), unique: map[string]bool{}})
}

// openFile is open without a record of the unique keys.
func openFile(t testing.TB) *Fleet {
	t.Helper()
	return follow(t, fileStore(t))
}

func fileStore(t testing.TB) holder {
	t.Helper()
	s := must.Get(store.OpenFile(filepath.Join(t.TempDir(), "store.db")))(t)
	t.Cleanup(func() { s.Close() })
	return holder{s}
}

// holder is a file store that several fleets share. Unlike File, it can hold keys.
type holder struct{ *store.File }

func (h holder) Hold(ctx context.Context, key string, value []byte, revision int64, _ time.Duration) (<-chan struct{}, error) {
	written, err := h.Commit(ctx, store.Commit{Exact: map[string]int64{key: revision}, Put: map[string][]byte{key: value}})
	if err != nil {
		return nil, err
	}
	lost := make(chan struct{})
	ctx, end := context.WithCancel(ctx)
	go func() {
		defer close(lost)
		defer end()
		h.Watch(ctx, store.Span{From: key, To: key + "\x00"}, written, func(store.Changes) { end() }, nil) // its only error is that the store was closed
	}()
	return lost, nil
}

// recorded is a store that records its keys under store.Unique.
type recorded struct {
	store.Store
	mu     sync.Mutex
	unique map[string]bool
}

func (r *recorded) Commit(ctx context.Context, c store.Commit) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	revision, err := r.Store.Commit(ctx, c)
	if err != nil {
		return revision, err
	}
	for key := range c.Put {
		if strings.HasPrefix(key, store.Unique) {
			r.unique[key] = true
		}
	}
	for _, key := range c.Delete {
		delete(r.unique, key)
	}
	return revision, nil
}

// openEtcd opens the store of an etcd cluster without TLS.
func openEtcd(t testing.TB, c *storetest.Cluster) store.Store {
	t.Helper()
	a := must.Get(store.ParseAddress("etcd+insecure://" + c.Endpoints()))(t)
	s := must.Get(store.OpenEtcd(a, store.TLS{}, c.Dial))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// follow makes one more copy of a store, and waits until it has been read.
func follow(t testing.TB, s store.Store) *Fleet {
	t.Helper()
	f := followWith(t, s, Options{Lease: 3 * time.Second})
	must.Succeed(t, f.Reach(ctx(t)))
	return f
}

func followWith(t testing.TB, s store.Store, o Options) *Fleet {
	t.Helper()
	f := New(s, o)
	ctx, end := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { end(); <-done })
	return f
}

// notify returns a function that sends a value to held, which has room for one, and never waits: two
// agents of one node can take the key from each other many times.
func notify(held chan bool) func() {
	return func() {
		select {
		case held <- true:
		default:
		}
	}
}

func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return c
}

// small is a fleet of two nodes with one network.
func small() model.State {
	return model.State{
		Nodes: []model.Node{
			{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
			{Name: "b", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
		},
		Networks: []model.Network{{Name: "red", ID: 1, Subnets: prefixes("10.1.0.0/24", "fd00:1::/64")}},
		Policies: []model.Policy{{Name: "web", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow, Protocol: "tcp", Ports: "80"}}}},
	}
}

func prefixes(all ...string) []netip.Prefix {
	return lists.Map(all, netip.MustParsePrefix)
}

func apply(t testing.TB, f *Fleet, s model.State) {
	t.Helper()
	must.Succeed(t, f.Apply(ctx(t), s))
}

func state(t testing.TB, f *Fleet) (s model.State) {
	t.Helper()
	must.Succeed(t, f.Look(ctx(t), func(v *View) { s = v.State() }))
	consistent(t, f)
	return s
}

// consistent checks that the copy equals a new one made from the store, and that
// the store has no unique keys without a port.
func consistent(t testing.TB, f *Fleet) {
	t.Helper()
	c := ctx(t)
	var image store.Image
	f.mu.Lock()
	for f.view.revision != image.Revision { // also while a node that attends writes
		f.mu.Unlock()
		var err error
		if image, err = f.store.Read(c, 0); err != nil {
			t.Fatal(err)
		}
		must.Succeed(t, f.await(c, func() bool { return f.view.revision >= image.Revision }))
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	v := f.view
	fresh := must.Get(newView(image))(t)
	for _, x := range []*View{fresh, v} {
		compact(x.hosts)
		compact(x.blocks)
		compact(x.routes)
	}
	for _, x := range []*View{fresh, v} {
		is := x.index
		defer func() { x.index = is }()
		keys := 0
		for _, p := range x.ports {
			for k := range p.keys() {
				if keys++; is.get(k) != p {
					t.Errorf("the index has the port %q for %+v of port %q", is.get(k).name(), k, p.Name)
				}
			}
		}
		must.Equal(t, keys, is.keys)
		x.index = index{} // the order of its slots is random
	}
	if !reflect.DeepEqual(fresh, v) {
		t.Errorf("the store's keys make another copy than the one that followed them:\n%+v\n%+v", fresh, v)
	}
	want := map[string]bool{}
	for _, p := range v.ports {
		for _, key := range uniqueKeys(p.Port()) {
			want[key] = true
		}
	}
	if r, is := f.store.(*recorded); is && !maps.Equal(r.unique, want) {
		t.Errorf("the store has the unique keys %v, want %v", slices.Sorted(maps.Keys(r.unique)), slices.Sorted(maps.Keys(want)))
	}
}

// awaitRevision waits until the copy of all ports has a revision, but at most 2 s: commits of
// keys that are not watched do not reach the copy.
func (f *Fleet) awaitRevision(ctx context.Context, revision int64) {
	ctx, end := context.WithTimeout(ctx, 2*time.Second)
	defer end()
	f.await(ctx, func() bool { return f.view != nil && f.view.revision >= revision })
}

func add(t testing.TB, f *Fleet, p model.Port) model.Port {
	t.Helper()
	made, isNew, err := f.AddPort(ctx(t), model.PortRequest{Port: p})
	if err != nil || !isNew {
		t.Fatalf("port %s: new %v, %v", p.Name, isNew, err)
	}
	return made
}

func port(name string, ips ...string) model.Port {
	p := model.Port{Name: name, Network: "red", Node: "a", Origin: model.Added, Attach: model.Attachment{Netns: "ns-" + name}}
	for _, ip := range ips {
		p.IPs = append(p.IPs, netip.MustParseAddr(ip))
	}
	return p
}

// compact deletes empty maps, which remain when a network loses its last port.
func compact[K comparable, V any](all map[string]map[K]V) {
	for name, m := range all {
		if len(m) == 0 {
			delete(all, name)
		}
	}
}
