package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// EmbeddedOptions of OpenEmbedded.
type EmbeddedOptions struct {
	Dir string // of its data
	// Listen is the HOST:PORT for other nodes' agents; empty: only this process
	// uses the store.
	Listen string
	// TLS holds the server's files. A client needs a certificate that the CA
	// has signed.
	TLS TLS
	// Insecure allows connections without TLS. Otherwise Listen needs all three
	// TLS files.
	Insecure bool
}

// startTimeout is the time limit for the single member to elect itself.
const startTimeout = 30 * time.Second

// OpenEmbedded runs an etcd cluster of one member inside this process.
func OpenEmbedded(o EmbeddedOptions) (*Etcd, error) {
	c, err := embeddedConfig(o)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, embeddedFile)
	if err := checkPages(path); err != nil {
		return nil, unreadable(path, err)
	}
	if !IsNewEmbedded(o.Dir) {
		if err := checkLog(c.Dir); err != nil {
			return nil, unreadable(c.Dir, err)
		}
	}
	server, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("start the embedded store in %s: %w", o.Dir, err)
	}
	select {
	case <-server.Server.ReadyNotify():
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start the embedded store in %s: %w", o.Dir, err)
	case <-time.After(startTimeout):
		go server.Close() // it may wait without end for a damaged store
		return nil, unreadable(c.Dir, fmt.Errorf("it was not ready within %v", startTimeout))
	}
	client := v3client.New(server.Server)
	e := newEtcd(client, defaultPrefix, string(KindEmbedded), func() error {
		client.Close() // it returns only the error of its cancelled context
		server.Close()
		return nil
	})
	e.identify = asRoot
	return e, nil
}

// embeddedFile is etcd's database in its directory.
const embeddedFile = "member/snap/db"

// checkLog returns an error if etcd's database has no log: etcd then panics or waits without end.
func checkLog(dir string) error {
	logs, err := filepath.Glob(filepath.Join(dir, "member/wal/*.wal"))
	for _, log := range logs {
		if info, err := os.Stat(log); err != nil || info.Size() > 0 {
			return err
		}
	}
	return cmp.Or(err, errors.New("the log is missing or empty"))
}

// IsNewEmbedded reports whether an embedded store has no data yet. Opening it creates data.
func IsNewEmbedded(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "etcd", embeddedFile))
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// asRoot adds the certificate of the user root to the context of a call. etcd then
// gives the call root's rights. If roles are disabled, etcd ignores the certificate.
// This process owns the database, so root's rights add nothing.
func asRoot(ctx context.Context) context.Context {
	root := &x509.Certificate{Subject: pkix.Name{CommonName: RootUser}}
	ctx = metadata.NewIncomingContext(ctx, metadata.MD{})
	return peer.NewContext(ctx, &peer.Peer{
		AuthInfo: credentials.TLSInfo{State: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{root}}}},
	})
}

func embeddedConfig(o EmbeddedOptions) (*embed.Config, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the directory of the embedded store: %w", err)
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.LogLevel = "vrouter", filepath.Join(o.Dir, "etcd"), "fatal"
	// The member waits up to this time before it elects itself. There are no others whose
	// heartbeats it could miss.
	c.ElectionMs, c.TickMs = 100, 10
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModePeriodic, "10m"
	own := url.URL{Scheme: "unix", Path: filepath.Join(o.Dir, "peer.sock")}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{own}, []url.URL{own}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	if o.Listen == "" {
		own.Path = filepath.Join(o.Dir, "client.sock")
		c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{own}, []url.URL{own}
		return c, nil
	}
	address, err := hostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("store_listen: %w", err)
	}
	listen := url.URL{Scheme: "https", Host: address}
	switch {
	case o.Insecure:
		listen.Scheme = "http"
	case o.TLS.Cert == "" || o.TLS.Key == "":
		return nil, errors.New("store_listen: other nodes reach the embedded store over TLS; set cert and key under store_tls, or set store_insecure: true")
	case o.TLS.CA == "":
		return nil, errors.New("store_listen: without ca under store_tls any host could write the fleet's state; set ca to the CA of the nodes' certificates, or set store_insecure: true")
	default:
		i := &c.ClientTLSInfo
		i.CertFile, i.KeyFile, i.TrustedCAFile, i.ClientCertAuth = o.TLS.Cert, o.TLS.Key, o.TLS.CA, true
	}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{listen}, []url.URL{listen}
	return c, nil
}
