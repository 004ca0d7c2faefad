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
	own, err := sign(a, adminUser, "127.0.0.1")
	must.Succeed(t, err)
	files := store.TLS{CA: filepath.Join(dir, "ca.pem")}
	if files.Cert, files.Key, err = own.write(dir, "store"); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	listen := free.Addr().String()
	free.Close()
	e, err := store.OpenEmbedded(store.EmbeddedOptions{Dir: dir, Listen: listen, TLS: files})
	must.Succeed(t, err)
	again, err := openAuthority(dir) // as after a restart
	must.Succeed(t, err)
	nodes, err := sign(again, "a")
	must.Succeed(t, err)
	access := store.TLS{CA: files.CA}
	if access.Cert, access.Key, err = nodes.write(dir, "node"); err != nil {
		t.Fatal(err)
	}
	address, err := store.ParseAddress("etcd://" + listen)
	must.Succeed(t, err)
	client, err := store.OpenEtcd(address, access, nil)
	must.Succeed(t, err)
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
	first, err := s.lock(t.Context())
	must.Succeed(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if second, err := s.lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second pod has the lock %v, error %v, while the first one runs", second, err)
	}
	must.Succeed(t, first.Close())
	second, err := s.lock(t.Context())
	must.Succeed(t, err)
	must.Succeed(t, second.Close())
}
