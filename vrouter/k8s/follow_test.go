package k8s

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

// following is an API server, and what the agents of nodes follow of it.
type following struct {
	t           *testing.T // of the step
	base        string     // URL of the API server
	client      *http.Client
	config      *rest.Config // of the agents
	stop, start func()       // of the API server
	namespace   string       // of the step
	refused     atomic.Int64 // attempts to connect that have failed
}

// followed is what the agent of a node has of a cluster.
type followed struct {
	*policies
	mu       sync.Mutex
	services []service.Service
}

// startFollowing starts a real API server. The agents have the permissions of those of the manifest.
func startFollowing(t *testing.T) (*following, *testcluster.Cluster) {
	k := testcluster.Start(t, testcluster.Options{ServerOnly: true})
	for _, o := range objects(t, small) {
		if m := o["metadata"].(map[string]any); o["kind"] == "ClusterRole" && m["name"] == NodeName {
			said, err := k.Kubectl(string(must.Get(json.Marshal(o))(t)), "create", "-f", "-")
			if err != nil {
				t.Fatalf("create the role of the agents: %v: %s", err, said)
			}
		}
	}
	if said, err := k.Kubectl("", "create", "clusterrolebinding", "limited", "--clusterrole="+NodeName, "--user=limited"); err != nil {
		t.Fatalf("bind the role of the agents: %v: %s", err, said)
	}
	f := &following{base: "https://" + k.API(), client: k.Client()}
	f.config = &rest.Config{BearerToken: testcluster.LimitedToken, TLSClientConfig: rest.TLSClientConfig{CAFile: k.Path("ca.crt")}}
	f.connectBy(k.Dial)
	f.stop = func() {
		_ = k.Server.Process.Kill()
		k.Await("the API server has ended", func() bool { return !k.Answers() })
	}
	f.start = func() {
		k.StartServer()
		k.Await("the API server answers", k.Answers)
	}
	return f, k
}

// followSmall starts a small API server.
func followSmall(t *testing.T) *following {
	s := startSmallServer(t)
	f := &following{base: s.server.URL, client: s.server.Client(), stop: s.stop, start: s.start}
	f.config = &rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})}}
	f.connectBy(new(net.Dialer).DialContext)
	return f
}

// connectBy lets the agents connect to the API server by dial.
func (k *following) connectBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	k.config.Host = k.base
	k.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			k.refused.Add(1)
		}
		return c, err
	}
}

// run runs the parts of the test.
func (k *following) run(t *testing.T) {
	k.step(t, "each problem is one event of its object", "shop", k.testProblems)
	k.step(t, "a pod is closed until it is known", "late", k.testUnknownPod)
	k.step(t, "policies and services stay without the API server", "away", k.testWithoutServer)
}

// step runs a part of the test in a namespace of its own.
func (k *following) step(t *testing.T, name, namespace string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		k.t, k.namespace = t, namespace
		k.send(http.MethodPost, "/api/v1/namespaces", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, namespace))
		k.create("serviceaccounts", `{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}`)
		f(t)
	})
}

// send sends a request to the API server, and returns the UID of the object.
func (k *following) send(method, path, body string) types.UID {
	k.t.Helper()
	r := must.Get(http.NewRequest(method, k.base+path, strings.NewReader(body)))(k.t)
	r.Header.Set("Content-Type", "application/json")
	answer := must.Get(k.client.Do(r))(k.t)
	defer answer.Body.Close()
	said := must.Get(io.ReadAll(answer.Body))(k.t)
	var o struct{ Metadata struct{ UID types.UID } }
	if err := json.Unmarshal(said, &o); err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		k.t.Fatalf("%s %s: %s, %v: %s", method, path, answer.Status, err, said)
	}
	return o.Metadata.UID
}

// path returns the path of a resource in the namespace of the step.
func (k *following) path(resource string) string {
	group := "/api/v1"
	switch resource {
	case "networkpolicies":
		group = "/apis/networking.k8s.io/v1"
	case "endpointslices":
		group = "/apis/discovery.k8s.io/v1"
	}
	return group + "/namespaces/" + k.namespace + "/" + resource
}

// create creates an object in the namespace of the step, and returns its UID.
func (k *following) create(resource, object string) types.UID {
	k.t.Helper()
	return k.send(http.MethodPost, k.path(resource), object)
}

// node follows the cluster as the agent of a node does, with room for limit map entries. refusal: the error of
// writing services.
func (k *following) node(name string, limit int, refusal error) *followed {
	k.t.Helper()
	e, err := newEvents(k.config, name, slog.New(slog.NewTextHandler(k.t.Output(), nil)))
	must.Succeed(k.t, err)
	ctx, end := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	k.t.Cleanup(func() { end(); wait.Wait() })
	wait.Go(func() { e.run(ctx) })
	f := &followed{}
	if f.policies, err = followPolicies(ctx, k.config, e, limit); err != nil {
		k.t.Fatal(err)
	}
	services := must.Get(followServices(k.config, e, false))(k.t)
	wait.Go(func() {
		services(ctx, func(all []service.Service) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.services = all
			return refusal
		})
	})
	return f
}

// has returns the names of the services of the namespace that a node has.
func (k *following) has(f *followed) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.services {
		if name, is := strings.CutPrefix(s.Name, k.namespace+"/"); is {
			names = append(names, name)
		}
	}
	return names
}

// onePort is a slice with the port of a pod.
func (k *following) onePort(node, pod, uid string) model.Slice {
	return model.State{Networks: []model.Network{{Name: "pods", ID: 7}}, Ports: []model.Port{{
		Name: "port", Node: node, Network: "pods", IPs: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, OfPod: &model.Pod{Namespace: k.namespace, Name: pod, UID: uid},
	}}}.Slice(node)
}

// group returns the group of onePort.
func (f *followed) group(s model.Slice) fib.Group {
	if g := f.grouping(s); g != nil {
		return g.Groups["port"]
	}
	return fib.Group{}
}

func (k *following) policy(name, spec string) {
	k.t.Helper()
	k.create("networkpolicies", fmt.Sprintf(`{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": %q}, "spec": %s}`, name, spec))
}

// said returns the messages of the events of an object.
func (k *following) said(kind, name string) (all []string) {
	k.t.Helper()
	answer := must.Get(k.client.Get(k.base + "/api/v1/events"))(k.t)
	defer answer.Body.Close()
	var list corev1.EventList
	must.Succeed(k.t, json.NewDecoder(answer.Body).Decode(&list))
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
			all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
		}
	}
	slices.Sort(all)
	return all
}

// TestAnAgentFollowsACluster runs the parts of agents that follow a real API server.
func TestAnAgentFollowsACluster(t *testing.T) {
	f, k := startFollowing(t)
	f.run(t)
	if said, err := k.Kubectl("", "-n", "shop", "describe", "networkpolicy", "wrong"); err != nil || !strings.Contains(said, "htpp") {
		t.Errorf("kubectl describe does not print the event: %v\n%s", err, said)
	}
	// The API server refuses what would be such a problem.
	if said, err := k.Kubectl(`{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "range", "namespace": "shop"}, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 90, "endPort": 80}]}]}}`, "create", "-f", "-"); err == nil || !strings.Contains(said, "endPort") {
		t.Errorf("a range of ports out of order: %v: %s", err, said)
	}
}

// TestAnAgentFollowsASmallServer runs the same parts with a server of the test.
func TestAnAgentFollowsASmallServer(t *testing.T) {
	followSmall(t).run(t)
}

// testProblems has two agents that find the same problems several times.
func (k *following) testProblems(t *testing.T) {
	uid := k.create("pods", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x", "ports": [{"name": "http", "containerPort": 80}]}]}}`)
	k.create("pods", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "host", "labels": {"app": "host"}}, "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "x"}]}}`)
	k.create("services", `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sctp"}, "spec": {"clusterIP": "10.96.0.20", "clusterIPs": ["10.96.0.20"], "ports": [{"protocol": "SCTP", "port": 80}]}}`)
	k.create("endpointslices", `{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "sctp-x", "labels": {"kubernetes.io/service-name": "sctp"}}, "addressType": "IPv4",
		"ports": [{"name": "", "port": 81, "protocol": "SCTP"}], "endpoints": [{"addresses": ["10.1.0.1"]}]}`)
	k.policy("wrong", `{"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"port": "htpp", "protocol": "TCP"}]}]}`)
	k.policy("hosts", `{"podSelector": {"matchLabels": {"app": "host"}}}`)
	k.policy("two", `{"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]}]}`)
	a, b := k.node("a", 2, nil), k.node("b", 1, errors.New("table services: 2 entries are wanted, its limit is 1"))
	for i := range 3 {
		a.grouping(k.onePort("a", "web", string(uid)))
		b.grouping(k.onePort("b", "web", string(uid)))
		k.policy(fmt.Sprint("more-", i), `{"podSelector": {"matchLabels": {"app": "more"}}}`)
		<-a.changed
		<-b.changed
	}
	const full = "Warning NetworkPolicyTablesFull: the NetworkPolicies need more map entries than node b has room for, so all pods of the node that a policy selects are closed; raise limits.routes in the ConfigMap vrouter/vrouter-node"
	for _, c := range []struct {
		kind, name string
		want       []string
	}{
		{"NetworkPolicy", "wrong", []string{full, "Warning PartWithoutEffect: no selected pod has a port with the name \"htpp\" and the protocol of the rule, so the rule allows nothing"}},
		{"NetworkPolicy", "hosts", []string{"Warning PartWithoutEffect: it selects pods of the host network, to which policies do not apply"}},
		{"NetworkPolicy", "two", []string{full}},
		{"NetworkPolicy", "more-1", nil},
		{"Node", "a", nil},
		{"Node", "b", []string{full, "Warning ServicesNotWritten: cannot write the cluster's services to the data path, so this node does not see changes of services; see the log of the agent's pod"}},
		{"Service", "sctp", []string{"Warning NotTranslated: vrouter does not change ports of SCTP: set targetPort of the port 80 to the same number, or use kube-proxy or --kube-proxy-replacement for it"}},
	} {
		var got []string
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s %s: the last events are %q, want %q", c.kind, c.name, got, c.want)
			}
		})
		must.EventuallyTrue(t, c.kind+" "+c.name+" has its events", func() bool {
			got = k.said(c.kind, c.name)
			return slices.Equal(got, c.want)
		})
	}
}

// testUnknownPod has a port whose pod the API server does not have yet. After 5 s an event says so.
func (k *following) testUnknownPod(t *testing.T) {
	k.policy("others", `{"podSelector": {"matchLabels": {"app": "other"}}}`)
	a := k.node("a", 1000, nil)
	begun, s := time.Now(), k.onePort("a", "late", "")
	if g := a.group(s); !g.In || !g.Out {
		t.Errorf("the pod is not known, and its port has the group %+v", g)
	}
	must.EventuallyTrue(t, "an event of the pod", func() bool { return len(k.said("Pod", "late")) > 0 })
	if took := time.Since(begun); took < closedWait {
		t.Errorf("the event came after %v, want at least %v", took, closedWait)
	}
	if said := k.said("Pod", "late"); len(said) != 1 || !strings.Contains(said[0], "node a") || !strings.Contains(said[0], "closed") {
		t.Errorf("the events are %q", said)
	}
	if g := a.group(s); !g.In || !g.Out {
		t.Errorf("after the event the port has the group %+v", g)
	}
	k.create("pods", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`)
	must.EventuallyTrue(t, "the pod is known, and no policy selects it", func() bool { return a.group(s) == fib.Group{} })
}

// testWithoutServer ends the API server, and starts it again.
func (k *following) testWithoutServer(t *testing.T) {
	service := func(name, ip string) {
		k.create("services", fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": %q}, "spec": {"clusterIP": %[2]q, "clusterIPs": [%[2]q], "ports": [{"port": 80, "protocol": "TCP"}]}}`, name, ip))
	}
	k.create("pods", `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`)
	k.policy("closed", `{"podSelector": {}}`)
	service("one", "10.96.0.30")
	a := k.node("a", 1000, nil)
	s := k.onePort("a", "web", "")
	must.EventuallyTrue(t, "the service is known", func() bool { return slices.Equal(k.has(a), []string{"one"}) })
	want := a.group(s)
	if !want.In || want.Out {
		t.Fatalf("the group is %+v, want one that is closed for ingress", want)
	}
	k.stop()
	was := k.refused.Load()
	must.EventuallyTrue(t, "the agent has tried to connect again", func() bool { return k.refused.Load() >= was+10 })
	if g := a.group(s); g != want || !slices.Equal(k.has(a), []string{"one"}) {
		t.Errorf("without the API server: group %+v, want %+v; services %v", g, want, k.has(a))
	}
	must.Equal(t, (fib.Group{}), a.group(model.Slice{}))
	if g := a.group(s); g != want {
		t.Errorf("the port is there again, and has the group %+v, want %+v", g, want)
	}
	k.start()
	service("two", "10.96.0.31")
	k.send(http.MethodDelete, k.path("networkpolicies")+"/closed", "")
	must.EventuallyTrue(t, "changes are followed again", func() bool { return slices.Equal(k.has(a), []string{"one", "two"}) && a.group(s) == fib.Group{} })
}
