package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/store/storetest"
)

// connect opens a store in a cluster, from its hub.
func connect(t *testing.T, c *storetest.Cluster, scheme string, files TLS) *Etcd {
	t.Helper()
	a := must.Get(ParseAddress(scheme + "://" + c.Endpoints()))(t)
	s := must.Get(OpenEtcd(a, files, c.Dial))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// If one member of three dies or loses its link, commits are only delayed. If
// two members are lost, commits fail and watches end with an error.
func TestAClusterThatLosesMembers(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 3, nil)
	s := connect(t, c, "etcd+insecure", TLS{})
	ctx := context.Background()
	// An election may take some time after each change of the members.
	available := func(ask func() error) error {
		for deadline := time.Now().Add(20 * time.Second); ; {
			if err := ask(); !errors.Is(err, ErrUnavailable) || time.Now().After(deadline) {
				return err
			}
		}
	}
	write := func(key string) error {
		return available(func() error {
			_, err := s.Commit(ctx, Commit{Put: put(key, "v")})
			return err
		})
	}
	must.Succeed(t, write("k/whole"))
	watching, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	defer func() { end(); <-ended }()
	go func() { // a member that is behind the others must not count as restored
		defer close(ended)
		var back *WentBackError
		for after := int64(0); watching.Err() == nil; {
			if err := s.Watch(watching, All, after, func(ch Changes) { after = ch.Revision }, func() {}); errors.As(err, &back) {
				t.Error(err)
			}
		}
	}()
	c.Kill(0)
	must.Succeed(t, write("k/without m0"))
	c.StartMember(0)
	c.CutOff(1)
	must.Succeed(t, write("k/without m1"))
	c.Rejoin(1)
	must.Succeed(t, write("k/whole again"))
	var got Image
	err := available(func() (err error) {
		got, err = s.Read(ctx, 0)
		return err
	})
	if want := []string{"k/whole=v", "k/whole again=v", "k/without m0=v", "k/without m1=v"}; err != nil || !slices.Equal(texts(got), want) {
		t.Errorf("the store has %q, %v; want %q", texts(got), err, want)
	}
	must.Equal(t, 0, s.asking().times)
}

func TestAWatchFailsWhenTheStoreIsCutOff(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	s := connect(t, c, "etcd+insecure", TLS{})
	ctx := context.Background()
	before := commit(t, s, Commit{Put: put("a", "1")})
	ended := make(chan error, 1)
	seen := make(chan Changes, 10)
	go func() { ended <- s.Watch(ctx, All, before, func(c Changes) { seen <- c }, func() {}) }()
	commit(t, s, Commit{Put: put("a", "2")})
	<-seen
	c.CutOff(-1)
	cut := time.Now()
	select {
	case err := <-ended:
		t.Logf("noticed after %v", time.Since(cut))
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("error %v, want %v", err, ErrUnavailable)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it still believes in the store")
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := s.Commit(short, Commit{Put: put("a", "3")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a write without a store: %v", err)
	}
	c.Rejoin(-1)
	go func() { ended <- s.Watch(ctx, All, before+1, func(c Changes) { seen <- c }, func() {}) }()
	must.Eventually(t, "a commit succeeds", func() error {
		_, err := s.Commit(ctx, Commit{Put: put("a", "4")})
		return err
	})
	select {
	case <-seen:
	case <-time.After(20 * time.Second):
		t.Error("the watch does not see what came after")
	}
}

// A key expires with its lease when its holder cannot renew it.
func TestALeaseIsLostWhereTheStoreIsOutOfReach(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	s := connect(t, c, "etcd+insecure", TLS{})
	lost := must.Get(s.Hold(context.Background(), "alive/a", []byte("x"), 0, 2*time.Second))(t)
	c.CutOff(-1)
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the holder does not notice")
	}
	c.Rejoin(-1)
	must.Eventually(t, "the store is in reach", func() error {
		i, err := s.Read(context.Background(), 0)
		if err == nil && len(i.Entries) > 0 {
			err = fmt.Errorf("the key is still there: %v", i.Entries)
		}
		return err
	})
	if _, err := s.Hold(context.Background(), "alive/a", []byte("x"), 0, 2*time.Second); err != nil {
		t.Errorf("held again: %v", err)
	}
}

func TestOnlyClientsWithACertificateConnect(t *testing.T) {
	t.Parallel()
	ours, others := storetest.NewClusterCertificates(t), storetest.NewClusterCertificates(t)
	c := storetest.Start(t, 1, ours)
	right := TLS{CA: ours.CA, Cert: ours.ClientCert, Key: ours.ClientKey}
	write := func(s *Etcd) error {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := s.Commit(ctx, Commit{Put: put("a", "b")})
		return err
	}
	must.Succeed(t, write(connect(t, c, "etcd", right)))
	refused := func(s *Etcd, what string, want ...string) {
		t.Helper()
		err := write(s)
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("a client %s: error %v, want ErrUnavailable", what, err)
			return
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("a client %s: error %q does not say %q", what, err, text)
			}
		}
	}
	ours.Until = time.Now().Add(-time.Minute)
	expiredCert, expiredKey := ours.Client(t, "expired")
	const refusal = "the member refuses this client's certificate"
	for _, client := range []struct {
		what  string
		files TLS
		want  []string
	}{
		{"without a certificate", TLS{CA: ours.CA}, []string{refusal, "store_tls.cert"}},
		{"with another authority's certificate", TLS{CA: ours.CA, Cert: others.ClientCert, Key: others.ClientKey}, []string{refusal, "store_tls.cert"}},
		{"with an expired certificate", TLS{CA: ours.CA, Cert: expiredCert, Key: expiredKey}, []string{refusal, "clock"}},
		{"with another CA", TLS{CA: others.CA, Cert: ours.ClientCert, Key: ours.ClientKey}, []string{"unknown authority", "store_tls.ca"}},
		{"with the CAs of the system", TLS{Cert: ours.ClientCert, Key: ours.ClientKey}, []string{"unknown authority", "store_tls.ca"}},
	} {
		refused(connect(t, c, "etcd", client.files), client.what, client.want...)
	}
	address := c.Members[0].Address
	ours.Server(t, address) // valid until a minute ago
	refused(connect(t, c, "etcd", right), "of a member whose certificate is expired", "expired", "clock")
	ours.Until = time.Time{}
	ours.Server(t, "192.0.2.1")
	refused(connect(t, c, "etcd", right), "of a member whose certificate has another address", address, "192.0.2.1", "certificate of the member")
	ours.Server(t, address)
	must.Succeed(t, write(connect(t, c, "etcd", right)))
	plain := storetest.Start(t, 1, nil)
	refused(connect(t, plain, "etcd", TLS{}), "with TLS of a member without TLS", "etcd+insecure://")
	// A member without TLS ends the connection with plain text, an end of file, or a reset.
	for _, ended := range []error{tls.RecordHeaderError{Msg: "no TLS"}, io.EOF, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}} {
		if err := handshakeError(&net.TCPAddr{}, ended); !strings.Contains(err.Error(), "etcd+insecure://") {
			t.Errorf("the error %q does not have the address of a store without TLS, etcd+insecure://", err)
		}
	}
	a, _ := ParseAddress("etcd://192.0.2.1")
	for want, files := range map[string]TLS{
		"only one of": {Cert: ours.ClientCert},
		"TLS files":   {CA: "/no/such/file"},
	} {
		_, err := OpenEtcd(a, files, nil)
		must.Fail(t, err, want)
	}
}

func TestAWatchFromACompactedRevisionOfEtcdIsAnError(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	s := connect(t, c, "etcd+insecure", TLS{})
	var last int64
	for range 10 {
		last = commit(t, s, Commit{Put: put("a", "b")})
	}
	must.Get(s.client.Compact(context.Background(), last))(t)
	if err := s.Watch(context.Background(), All, last-8, func(Changes) {}, func() {}); !errors.Is(err, ErrCompacted) {
		t.Errorf("error %v, want %v", err, ErrCompacted)
	}
}

// The watch of a held key ends unnoticed by the lease when the store has compacted its revision
// before the client connects again.
func TestADeletedKeyIsLostAfterACompactionAndAReconnect(t *testing.T) {
	t.Parallel()
	c := storetest.Start(t, 1, nil)
	s := connect(t, c, "etcd+insecure", TLS{})
	ctx := context.Background()
	lost := must.Get(s.Hold(ctx, "alive/a", []byte("x"), 0, time.Minute))(t)
	var last int64
	for range 10 {
		last = commit(t, s, Commit{Put: put("a", "b")})
	}
	must.Get(s.client.Compact(ctx, last))(t)
	c.Kill(0)
	c.StartMember(0)
	must.Eventually(t, "a commit succeeds", func() error {
		_, err := s.Commit(ctx, Commit{Delete: []string{"alive/a"}})
		return err
	})
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Fatal("the holder does not notice that its key was deleted")
	}
}
