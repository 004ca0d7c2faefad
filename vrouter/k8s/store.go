package k8s

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"windtunnel/vrouter/store"
)

// Store is the store of a cluster: etcd in a pod on a node of the control plane, with TLS. The pod
// tells the nodes its address and their certificate in the Secret SecretName.
type Store struct {
	Namespace string
	Host      string // IP address
	Node      string // name of the pod's node
	Dir       string // of the data
	Log       *slog.Logger
	// Roles makes the store check roles, as an administrator, and gives a user the role of an operator.
	Roles func(ctx context.Context, address string, admin store.TLS, user string) error
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
	nodeUser  = "vrouter-node"
	adminUser = "vrouter-admin"
)

// secret is the Secret with the nodes' access to the store.
type secret struct {
	object
	Data map[string][]byte `json:"data,omitempty"`
}

func secretPath(namespace string) string {
	return "/api/v1/namespaces/" + namespace + "/secrets/" + SecretName
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
	if err := s.Roles(ctx, address, files, nodeUser); err != nil {
		return fmt.Errorf("enable the roles of the store: %w", err)
	}
	nodes, err := sign(a, nodeUser)
	if err != nil {
		return fmt.Errorf("make the certificate of the nodes: %w", err)
	}
	if err := s.publish(ctx, c, address, a.pem, nodes); err != nil {
		return err
	}
	s.Log.Info("the store is ready", "address", address, "dir", s.Dir)
	<-ctx.Done()
	return nil
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
	if err := c.get(ctx, secretPath(s.Namespace), &was); err != nil {
		return err
	}
	_, err := os.Stat(filepath.Join(s.Dir, "ca-key.pem"))
	if node := was.Metadata.Annotations[storeNode]; errors.Is(err, fs.ErrNotExist) && node != "" {
		return fmt.Errorf("node %s has no data of the store in %s: the data is on node %s; move the pod there with `vrouter k8s manifest --store-node %s`, or copy the directory; to begin with an empty store, delete the Secret %s", s.Node, s.Dir, node, node, SecretName)
	}
	return os.MkdirAll(s.Dir, 0o700)
}

// publish writes the Secret.
func (s *Store) publish(ctx context.Context, c *client, address string, ca []byte, p pair) error {
	now := secret{Data: map[string][]byte{"address": []byte(address), "ca.pem": ca, "node.pem": p.cert, "node-key.pem": p.key}}
	now.Metadata.Name, now.Metadata.Annotations = SecretName, map[string]string{storeNode: s.Node}
	return c.ask(ctx, http.MethodPatch, secretPath(s.Namespace), "application/merge-patch+json", now, nil)
}
