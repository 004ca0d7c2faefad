package k8s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// Store is the store of a cluster: etcd in a pod on a node of the control plane, with TLS. The pod
// tells the nodes its address in the Secret SecretName, and signs their certificates (signer).
type Store struct {
	Namespace string
	Host      string // IP address
	Node      string // name of the pod's node
	Dir       string // of the data
	Base      string // file with the agents' configuration that all nodes have
	Network   model.Network
	Log       *slog.Logger
	// Administer calls a function that may change the roles of the store at an address, as an
	// administrator.
	Administer func(address string, admin store.TLS, body func(context.Context, Roles) error) error
}

// Roles grants and revokes rights of the store's users. The user of a node has the name of the node.
type Roles interface {
	Init(ctx context.Context, shared bool) error
	GrantOperators(ctx context.Context, users ...string) error
	GrantNode(ctx context.Context, node string) error
	RevokeNodes(ctx context.Context, gone func(node string) bool) error
}

// Names of the store's objects.
const (
	SecretName = "vrouter-store"
	StoreName  = "vrouter-store"
	storeDir   = ".store"
	storePort  = "2479"
	// StoreDir is the directory of the data.
	StoreDir = "/var/lib/vrouter/" + storeDir
	// storeNode is the annotation of the Secret with the name of the node that has the data.
	storeNode = "vrouter/store-node"
	adminUser = "vrouter-admin"
	// OperatorName is the name of the Secret with the controller's access to the store, and of
	// its user there.
	OperatorName = "vrouter-operator"
)

// secret is a Secret with access to the store.
type secret struct {
	object
	Data map[string][]byte `json:"data,omitempty"`
}

func secretPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/secrets/" + name
}

// Run serves the store until ctx ends. If the installation is being deleted, it deletes the data.
func (s *Store) Run(ctx context.Context) error {
	c, err := inCluster()
	if err != nil {
		return err
	}
	watching, end := context.WithCancel(context.Background())
	defer end()
	removed := watchRemoval(watching, c, s.Namespace, "deployments", StoreName)
	err = s.serve(ctx, c)
	if ctx.Err() != nil && removed.isRemoved() {
		s.Log.Info("the installation is being deleted; deleting the store's data", "dir", s.Dir)
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// listen is the address of the store.
func (s *Store) listen() string { return net.JoinHostPort(s.Host, storePort) }

func (s *Store) serve(ctx context.Context, c *client) error {
	if err := s.checkPlace(ctx, c); err != nil {
		return err
	}
	lock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	a, err := openAuthority(s.Dir)
	if err != nil {
		return err
	}
	own, err := sign(a, adminUser, s.Host)
	if err != nil {
		return fmt.Errorf("make the certificate of the store: %w", err)
	}
	files := store.TLS{CA: filepath.Join(s.Dir, "ca.pem")}
	if files.Cert, files.Key, err = own.write(s.Dir, "store"); err != nil {
		return fmt.Errorf("write the certificate of the store: %w", err)
	}
	e, err := store.OpenEmbedded(store.EmbeddedOptions{Dir: s.Dir, Listen: s.listen(), TLS: files})
	if err != nil {
		return err
	}
	defer s.close(e)
	address := "etcd://" + s.listen()
	administer := func(body func(context.Context, Roles) error) error { return s.Administer(address, files, body) }
	err = administer(func(ctx context.Context, r Roles) error {
		if err := r.Init(ctx, false); err != nil {
			return err
		}
		return r.GrantOperators(ctx, OperatorName, s.Node) // root of this node has the authority's key too
	})
	if err != nil {
		return fmt.Errorf("enable the roles of the store: %w", err)
	}
	following, end := context.WithCancel(ctx)
	defer end()
	f := fleet.New(e, fleet.Options{Logger: s.Log})
	go func() { _ = f.Run(following) }() // it logs what is wrong with the store
	if err := s.addNetwork(ctx, f); err != nil {
		return err
	}
	operator, err := sign(a, OperatorName)
	if err != nil {
		return fmt.Errorf("make the certificate of the controller: %w", err)
	}
	both := map[string][]byte{"address": []byte(address), "ca.pem": a.pem}
	if err := s.publish(ctx, c, SecretName, both, pair{}); err != nil {
		return err
	}
	if err := s.publish(ctx, c, OperatorName, both, operator); err != nil {
		return err
	}
	s.Log.Info("the store is ready", "address", address, "dir", s.Dir)
	return (&signer{client: c, authority: a, fleet: f, base: s.Base, administer: administer, log: s.Log}).run(ctx)
}

// lock waits until no other pod uses the data. During an upgrade, the former pod ends only when the container of the next
// one runs: an image that cannot be pulled must not stop the store.
func (s *Store) lock(ctx context.Context) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(s.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for said := false; ; said = true {
		err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return lock, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock the store's data in %s: %w", s.Dir, err), lock.Close())
		}
		if !said {
			s.Log.Info("the former pod of the store still uses the data; waiting until it ends", "dir", s.Dir)
		}
		if !pause(ctx) {
			return nil, errors.Join(context.Cause(ctx), lock.Close())
		}
	}
}

// addNetwork adds the network of all pods, if it is missing.
func (s *Store) addNetwork(ctx context.Context, f *fleet.Fleet) error {
	has := false
	if err := f.Look(ctx, func(v *fleet.View) { _, has = v.Network(s.Network.Name) }); err != nil || has {
		return err
	}
	_, err := f.AddNetwork(ctx, podNetwork(s.Network.Name, s.Network.Subnets))
	return err
}

// closeWait is the maximum time to close the store. Its data is complete then: etcd can wait
// without end for its listener for other members, which it has closed.
const closeWait = 7 * time.Second

func (s *Store) close(e *store.Etcd) {
	closed := make(chan error, 1)
	go func() { closed <- e.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			s.Log.Warn("cannot close the store", "error", err)
		}
	case <-time.After(closeWait):
		s.Log.Info("the store's connections did not end", "after", closeWait)
	}
}

// checkPlace returns an error if the data of the store is on another node.
func (s *Store) checkPlace(ctx context.Context, c *client) error {
	var was secret
	if err := c.get(ctx, secretPath(s.Namespace, SecretName), &was); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(s.Dir, "ca-key.pem"))
	if node := was.Metadata.Annotations[storeNode]; errors.Is(err, fs.ErrNotExist) && node != "" {
		return fmt.Errorf("node %s has no data of the store in %s: the data is on node %s; move the pod there with `vrouter k8s manifest --store-node %s`, or copy the directory; to begin with an empty store, delete the Secret %s", s.Node, s.Dir, node, node, SecretName)
	}
	return os.MkdirAll(s.Dir, 0o700)
}

// publish writes a Secret. Without a pair, it deletes the keys of one.
func (s *Store) publish(ctx context.Context, c *client, name string, data map[string][]byte, p pair) error {
	now := secret{Data: map[string][]byte{"node.pem": p.cert, "node-key.pem": p.key}}
	maps.Copy(now.Data, data)
	now.Metadata.Name, now.Metadata.Annotations = name, map[string]string{storeNode: s.Node}
	return c.ask(ctx, http.MethodPatch, secretPath(s.Namespace, name), "application/merge-patch+json", now, nil)
}
