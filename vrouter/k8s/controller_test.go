package k8s

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

func TestMain(m *testing.M) {
	testcluster.RunNode()
	serveEcho()
	os.Exit(m.Run())
}

// controlled is a fleet in the etcd of an API server.
type controlled struct {
	*testcluster.Cluster
	fleet *fleet.Fleet
	ctx   context.Context
}

func (k *controlled) kubectl(stdin string, args ...string) string {
	k.T.Helper()
	out, err := k.Kubectl(stdin, args...)
	if err != nil {
		k.T.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

// follow keeps a copy of the store until the end of the test.
func (k *controlled) follow() {
	a := must.Get(store.ParseAddress("etcd+insecure://127.0.0.1:2379"))(k.T)
	s := must.Get(store.OpenEtcd(a, store.TLS{}, func(ctx context.Context, address string) (net.Conn, error) { return k.Dial(ctx, "tcp", address) }))(k.T)
	k.fleet = fleet.New(s, fleet.Options{})
	ctx, end := context.WithCancel(k.ctx)
	ended := make(chan error, 1)
	go func() { ended <- k.fleet.Run(ctx) }()
	k.T.Cleanup(func() { end(); <-ended; s.Close() })
}

// control starts a controller. It returns a function that stops it.
func (k *controlled) control() (stop func()) {
	cmd := k.Command(filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "vrouter"), "k8s", "controller", "--store", "etcd+insecure://127.0.0.1:2379", "--kubeconfig", k.Path("kubeconfig"))
	cmd.Stderr = k.T.Output()
	must.Succeed(k.T, cmd.Start())
	stop = sync.OnceFunc(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			k.T.Errorf("the controller ends with %v after SIGTERM", err)
		}
	})
	k.T.Cleanup(stop)
	return stop
}

// pod creates a pod of a node and its port, and returns the port's name.
func (k *controlled) pod(node, name string) string {
	k.kubectl(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"nodeName": %q, "containers": [{"name": "x", "image": "x"}]}}`, name, node), "create", "-f", "-")
	return k.port(node, name, k.kubectl("", "get", "pod", name, "-o", "jsonpath={.metadata.uid}"))
}

func (k *controlled) port(node, pod, uid string) string {
	p, _, err := k.fleet.AddPort(k.ctx, model.PortRequest{Port: model.Port{
		Network: "pods", Node: node, Origin: model.CNI, Owner: pod, OfPod: &model.Pod{Namespace: "default", Name: pod, UID: uid},
	}})
	must.Succeed(k.T, err)
	return p.Name
}

// await waits until the fleet has exactly these nodes and ports.
func (k *controlled) await(what string, nodes, ports []string) {
	k.T.Helper()
	var have, has []string
	defer func() {
		if k.T.Failed() {
			k.T.Logf("the fleet has the nodes %v and the ports %v, want %v and %v", have, has, nodes, ports)
		}
	}()
	slices.Sort(ports)
	k.Await(what, func() bool {
		have, has = nil, nil
		k.fleet.Peek(func(v *fleet.View) {
			for _, n := range v.Nodes() {
				have = append(have, n.Name)
			}
			for _, p := range v.Ports("") {
				has = append(has, p.Name)
			}
		})
		return slices.Equal(have, nodes) && slices.Equal(has, ports)
	})
}

// TestAClusterDeletesNodesAndPods runs controllers on a real API server.
func TestAClusterDeletesNodesAndPods(t *testing.T) {
	ctx, end := context.WithTimeout(context.Background(), 5*time.Minute)
	defer end()
	k := &controlled{Cluster: testcluster.Start(t, testcluster.Options{ServerOnly: true}), ctx: ctx}
	k.follow()
	s := model.State{Networks: []model.Network{{Name: "pods", ID: 1, Subnets: []netip.Prefix{netip.MustParsePrefix("10.88.0.0/24")}}}}
	for i, name := range []string{"bare", "n1", "n2", "n3", "n4"} {
		s.Nodes = append(s.Nodes, model.Node{Name: name, Underlay: []netip.Addr{netip.AddrFrom4([4]byte{172, 30, 0, byte(11 + i)})}})
		if name != "bare" {
			k.kubectl(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}}`, name), "create", "-f", "-")
		}
	}
	must.Succeed(t, k.fleet.Apply(ctx, s))
	k.Await("the default service account", func() bool { _, err := k.Kubectl("", "create", "serviceaccount", "default"); return err == nil })
	// A workload that is not of Kubernetes, on a node that is not of Kubernetes.
	other, _, err := k.fleet.AddPort(ctx, model.PortRequest{Port: model.Port{Network: "pods", Node: "bare", Origin: model.Added}})
	must.Succeed(t, err)
	x, y, z := k.pod("n1", "x"), k.pod("n2", "y"), k.pod("n3", "z")
	k.port("n1", "x", "an earlier pod x")
	k.port("n1", "gone", "a pod that no longer exists")
	static := k.pod("n2", "static")
	if _, err := k.fleet.UpdatePort(ctx, static, func(p *model.Port) error {
		p.OfPod = &model.Pod{Namespace: p.Pod().Namespace, Name: p.Pod().Name, UID: "hash of its file"}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	k.kubectl("", "annotate", "pod", "static", configHash+"=hash of its file")
	must.Succeed(t, k.fleet.PutRoute(ctx, model.Route{Network: "pods", Prefix: netip.MustParsePrefix("10.99.0.0/16"), Via: []model.Via{{Port: x}, {Port: z}}}))
	nodes := []string{"bare", "n1", "n2", "n3", "n4"}

	first := k.control()
	k.await("ports without a pod are deleted at the start", nodes, []string{other.Name, x, y, z, static})

	k.control()
	alive, leave := context.WithCancel(ctx)
	held, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		k.fleet.Attend(alive, "n2", fleet.Alive{Instance: "one"}, func() { close(held) })
	}()
	<-held
	k.kubectl("", "delete", "node", "n1", "n2", "n4")
	k.await("nodes n1 and n4 are deleted at once, n4 without pods; the agent of n2 runs", []string{"bare", "n2", "n3"}, []string{other.Name, y, z, static})
	k.fleet.Peek(func(v *fleet.View) {
		if r := v.Routes(); len(r) != 1 || !slices.Equal(r[0].Via, []model.Via{{Port: z}}) {
			t.Errorf("the routes are %+v, want the next hop %s alone", r, z)
		}
	})
	leave()
	<-left
	must.Succeed(t, k.fleet.Leave(ctx, "n2"))
	stopped := time.Now()
	first()
	k.await("node n2 is deleted after its agent has ended, by the next leader", []string{"bare", "n3"}, []string{other.Name, z})

	if took := time.Since(stopped); took > 10*time.Second {
		t.Errorf("the next controller leads after %v: the key of a stopped leader must not stay until it expires", took)
	}
	k.kubectl("", "delete", "node", "n3")
	k.await("node n3 is deleted with the port of its pod", []string{"bare"}, []string{other.Name})
}
