package fleet

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// countedReads counts the reads of a store.
type countedReads struct {
	breaking
	reads atomic.Int64
}

func (c *countedReads) Read(ctx context.Context, at int64, spans ...store.Span) (store.Image, error) {
	c.reads.Add(1)
	return c.breaking.Read(ctx, at, spans...)
}

// A copy without changes follows the revision of the store. So after a compaction it can
// reconnect without reading the store again.
func TestAReconnectAfterACompactionReadsNothing(t *testing.T) {
	t.Parallel()
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	at := free.Addr().String()
	free.Close()
	s := must.Get(store.OpenEmbedded(store.EmbeddedOptions{Dir: t.TempDir(), Listen: at, Insecure: true}))(t)
	t.Cleanup(func() { s.Close() })
	all := follow(t, s)
	apply(t, all, threeNodes())
	for _, node := range []string{"a", "b"} {
		add(t, all, model.Port{Name: "n0" + node, Network: "n0", Node: node})
	}
	address := must.Get(store.ParseAddress("etcd+insecure://" + at))(t)
	remote := must.Get(store.OpenEtcd(address, store.TLS{}, nil))(t)
	t.Cleanup(func() { remote.Close() })
	b := &countedReads{breaking: breaking{Store: remote, watches: map[*context.CancelCauseFunc]store.Span{}}}
	f := followWith(t, b, Options{Lease: 3 * time.Second, Node: "a"})
	knows := func(port string) {
		t.Helper()
		must.Succeed(t, f.await(ctx(t), func() bool { return f.view != nil && f.view.ports[port] != nil && len(f.joined) == 2 }))
	}
	knows("n0b")
	add(t, all, model.Port{Name: "other", Network: "n3", Node: "c"})
	var revision int64
	all.Peek(func(v *View) { revision = v.revision })
	if err := f.await(ctx(t), func() bool {
		for _, j := range f.joined {
			if j.revision < revision {
				return false
			}
		}
		return f.view.revision >= revision
	}); err != nil {
		t.Fatalf("the copy does not reach revision %d of the store: %v", revision, err)
	}
	client := must.Get(clientv3.New(clientv3.Config{Endpoints: []string{at}}))(t)
	defer client.Close()
	must.Get(client.Compact(ctx(t), revision))(t)
	reads := b.reads.Load()
	b.end(store.ErrUnavailable)
	must.Succeed(t, f.await(ctx(t), func() bool { return f.problem != nil }))
	add(t, all, model.Port{Name: "later", Network: "n0", Node: "b"})
	knows("later")
	if now := b.reads.Load(); now != reads {
		t.Errorf("the copy has read the store %d times after it reconnected, want 0", now-reads)
	}
}
