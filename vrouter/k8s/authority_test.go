package k8s

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/store"
)

// The store with the certificates of the authority serves the nodes, keeps its authority, and
// closes while a node watches.
func TestTheStoreServesTheNodesWithItsCertificates(t *testing.T) {
	dir := t.TempDir()
	a, err := openAuthority(dir)
	must.Succeed(t, err)
	own := must.Get(sign(a, adminUser, "127.0.0.1"))(t)
	files := store.TLS{CA: filepath.Join(dir, "ca.pem")}
	if files.Cert, files.Key, err = own.write(dir, "store"); err != nil {
		t.Fatal(err)
	}
	free := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	listen := free.Addr().String()
	free.Close()
	e := must.Get(store.OpenEmbedded(store.EmbeddedOptions{Dir: dir, Listen: listen, TLS: files}))(t)
	again, err := openAuthority(dir) // as after a restart
	must.Succeed(t, err)
	nodes := must.Get(sign(again, "a"))(t)
	access := store.TLS{CA: files.CA}
	if access.Cert, access.Key, err = nodes.write(dir, "node"); err != nil {
		t.Fatal(err)
	}
	address := must.Get(store.ParseAddress("etcd://" + listen))(t)
	client := must.Get(store.OpenEtcd(address, access, nil))(t)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	alive := make(chan struct{}, 1)
	go client.Watch(ctx, store.Under("nodes/"), 0, func(store.Changes) {}, func() {
		select {
		case alive <- struct{}{}:
		default:
		}
	})
	select {
	case <-alive:
	case <-ctx.Done():
		t.Fatal("the node does not see the store")
	}
	begun := time.Now()
	must.Succeed(t, e.Close())
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the store closed after %v", took)
	}
}

// During an upgrade, two pods of the store have the same data for some seconds. The second one waits for the first one.
func TestTheNextPodOfTheStoreWaits(t *testing.T) {
	s := Store{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	first := must.Get(s.lock(t.Context()))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if second, err := s.lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second pod has the lock %v, error %v, while the first one runs", second, err)
	}
	must.Succeed(t, first.Close())
	second := must.Get(s.lock(t.Context()))(t)
	must.Succeed(t, second.Close())
}
