package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// rolesBed is a fleet of nodes with certificates. The first node embeds the store.
func rolesBed(t *testing.T, nodes int, lease string) (b *bed, files func(name string) store.TLS) {
	t.Helper()
	b = newBed(t, options{nodes: nodes, config: map[string]any{"lease": lease}})
	first := b.nodes[0]
	c := storetest.NewCertificates(t, first.v4.String())
	files = func(name string) store.TLS {
		cert, key := c.Client(t, name)
		return store.TLS{CA: c.CA, Cert: cert, Key: key}
	}
	first.config["store"], first.config["store_listen"] = "embedded", first.v4.String()+":2379"
	first.config["store_tls"] = map[string]string{"ca": c.CA, "cert": c.ServerCert, "key": c.ServerKey}
	for _, n := range b.nodes[1:] {
		tls := files(n.name)
		n.config["store"] = "etcd://" + first.v4.String()
		n.config["store_tls"] = map[string]string{"ca": tls.CA, "cert": tls.Cert, "key": tls.Key}
	}
	for _, n := range b.nodes {
		n.config["underlay"] = []string{n.v4.String()}
	}
	t.Cleanup(b.down)
	for _, n := range b.nodes {
		n.start()
	}
	return b, files
}

// admin runs `vrouter store` on a node with a certificate.
func (n *node) admin(files store.TLS, args ...string) (string, error) {
	command := append([]string{"netns", "exec", n.space, program, "store"}, args...)
	command = append(command, "--store", "etcd://"+n.bed.nodes[0].v4.String(), "--tls-ca", files.CA, "--tls-cert", files.Cert, "--tls-key", files.Key)
	out, err := exec.Command("ip", command...).CombinedOutput()
	return string(out), err
}

// client connects to the first node's store from the namespace of a node. Without files
// the connection has no TLS.
func (n *node) client(t *testing.T, files store.TLS) *store.Etcd {
	t.Helper()
	scheme := "etcd://"
	if files == (store.TLS{}) {
		scheme = "etcd+insecure://"
	}
	a, err := store.ParseAddress(scheme + n.bed.nodes[0].v4.String())
	n.bed.must(err)
	s, err := store.OpenEtcd(a, files, func(ctx context.Context, address string) (c net.Conn, err error) {
		err = in(n.ns, func() (err error) {
			c, err = (&net.Dialer{}).DialContext(ctx, "tcp", address)
			return err
		})
		return c, err
	})
	n.bed.must(err)
	t.Cleanup(func() { s.Close() })
	return s
}

// alive waits until `vrouter node list` on a node shows that the agents of nodes run.
func (b *bed) alive(on *node, nodes ...string) {
	b.t.Helper()
	soon(b.t, fmt.Sprintf("nodes %v are alive", nodes), func() error {
		alive := map[string]bool{}
		for _, n := range answer(on, (*api.Client).Nodes) {
			alive[n.Name] = n.Agent != nil
		}
		for _, name := range nodes {
			if !alive[name] {
				return errTimeout
			}
		}
		return nil
	})
}

// With roles, a node's certificate can write only the ports of this node. The node that
// embeds the store can write everything.
func TestANodesCertificateDoesNotWriteAnothersPorts(t *testing.T) {
	must.Long(t)
	b, files := rolesBed(t, 3, "3s")
	a, c, d := b.nodes[0], b.nodes[1], b.nodes[2]
	b.alive(a, "a", "b", "c")
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	before := b.connected("before", "red", 1)

	admin := files("admin")
	out, err := c.admin(admin, "init")
	if err != nil || !strings.Contains(out, "user admin is an administrator") || strings.Count(out, "can write the ports of node") != 3 {
		t.Fatalf("init: %v\n%s", err, out)
	}
	if out, err := c.admin(admin, "init"); err != nil || out != "the store already checks roles\n" {
		t.Errorf("init again: %v\n%s", err, out)
	}

	x, y, z := b.connected("x", "red", 0), b.connected("y", "red", 1), b.connected("z", "red", 2)
	for _, w := range []*workload{before, y, z} {
		soon(t, "ports reach each other", func() error { return datagram(x, w, 4, 64) })
	}
	for _, args := range [][]string{
		{"port", "delete", "z"}, {"network", "create", "blue", "--subnet", "10.2.0.0/24"}, {"network", "delete", "red"},
		{"policy", "create", "p", "--rule", "ingress allow tcp"}, {"node", "add", "b", "--underlay", "172.30.0.99"},
		{"route", "add", "red", "0.0.0.0/0", "--discard"},
	} {
		_, err := c.try(args...)
		want := "operator's certificate"
		if args[0] == "network" && args[1] == "delete" {
			want = "" // refused earlier, because the network has ports
		}
		must.Fail(t, err, want)
	}
	s := c.client(t, files("b"))
	image, err := s.Read(context.Background(), 0)
	b.must(err)
	tried := 0
	for _, e := range image.Entries {
		if strings.HasPrefix(e.Key, "switch-ports/b/") || strings.HasPrefix(e.Key, "hosts/b/") || e.Key == "alive/b" || e.Key == "installs/b" {
			continue
		}
		tried++
		for _, attack := range []store.Commit{{Put: map[string][]byte{e.Key: e.Value}}, {Delete: []string{e.Key}}} {
			if _, err := s.Commit(context.Background(), attack); !errors.Is(err, store.ErrDenied) {
				t.Errorf("node b writes %s: error %v, want ErrDenied", e.Key, err)
			}
		}
	}
	if tried < 10 { // schema, objects, 3 nodes, network, 2 ports, 2 alive keys
		t.Errorf("node b tried to write %d keys of other nodes and the fleet, want at least 10", tried)
	}
	runtime := newRuntime(t, c, "")
	pod := &workload{bed: b, ns: b.namespace("pod")}
	result, err := runtime.AddNetworkList(context.Background(), runtime.list, runtime.container("pod"))
	b.must(err)
	got, err := types100.NewResultFromResult(result)
	b.must(err)
	pod.port = y.port
	pod.port.IPs = addresses(got.IPs[0].Address.IP.String())
	soon(t, "a container reaches another node", func() error { return datagram(pod, x, 4, 64) })
	b.must(runtime.DelNetworkList(context.Background(), runtime.list, runtime.container("pod")))
	c.run("port", "delete", "before")

	// The agent of a node with the operator's role accepts all changes.
	if _, err := c.admin(admin, "grant", "operator", "b"); err != nil {
		t.Fatal(err)
	}
	c.run("network", "create", "blue", "--subnet", "10.2.0.0/24")
	c.run("port", "delete", "z")

	// A role can limit a node to some networks.
	if out, err := c.admin(admin, "grant", "node", "c", "--network", "red"); err != nil {
		t.Fatal(err, out)
	}
	_, err = d.try("port", "add", "--network", "blue", "--netns", b.name+"-z", "--interface", "eth1")
	must.Fail(t, err, "nothing was changed")

	if out, err := c.admin(admin, "revoke", "c"); err != nil {
		t.Fatal(err, out)
	}
	_, err = d.try("port", "add", "--network", "red", "--netns", b.name+"-z", "--interface", "eth1")
	must.Fail(t, err, "permission denied")
	if _, err := d.client(t, files("c")).Read(context.Background(), 0); !errors.Is(err, store.ErrDenied) {
		t.Errorf("a revoked node reads: %v", err)
	}
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("after node c is revoked: x does not reach y: %v", err)
	}
}
