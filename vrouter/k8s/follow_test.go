package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

// following is a real API server, and what the agents of nodes follow of it. They have the permissions of the
// manifest's agents.
type following struct {
	*controlled
	config    *rest.Config
	namespace string       // of the step
	refused   atomic.Int64 // attempts to connect that have failed
}

// followed is what the agent of a node has of a cluster.
type followed struct {
	*policies
	mu       sync.Mutex
	services []service.Service
}

func startFollowing(t *testing.T) *following {
	k := &controlled{Cluster: testcluster.Start(t, testcluster.Options{ServerOnly: true})}
	ctx, end := context.WithTimeout(context.Background(), 4*time.Minute)
	t.Cleanup(end)
	k.ctx = ctx
	for _, o := range objects(t, small) {
		if m := o["metadata"].(map[string]any); o["kind"] == "ClusterRole" && m["name"] == NodeName {
			text := must.Get(json.Marshal(o))(t)
			k.kubectl(string(text), "create", "-f", "-")
		}
	}
	k.kubectl("", "create", "clusterrolebinding", "limited", "--clusterrole="+NodeName, "--user=limited")
	f := &following{controlled: k}
	f.config = &rest.Config{
		Host: "https://" + k.API(), BearerToken: testcluster.LimitedToken, TLSClientConfig: rest.TLSClientConfig{CAFile: k.Path("ca.crt")},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := k.Dial(ctx, network, address)
			if err != nil {
				f.refused.Add(1)
			}
			return c, err
		},
	}
	return f
}

// step runs a part of the test in a namespace of its own.
func (k *following) step(name, namespace string, f func(t *testing.T)) {
	k.namespace = namespace
	k.kubectl("", "create", "namespace", namespace)
	k.kubectl("", "-n", namespace, "create", "serviceaccount", "default")
	k.Step(name, f)
}

// node follows the cluster as the agent of a node does, with room for limit map entries. refusal: the error of
// writing services.
func (k *following) node(name string, limit int, refusal error) *followed {
	k.T.Helper()
	e, err := newEvents(k.config, name, slog.New(slog.NewTextHandler(k.T.Output(), nil)))
	must.Succeed(k.T, err)
	ctx, end := context.WithCancel(k.ctx)
	var wait sync.WaitGroup
	k.T.Cleanup(func() { end(); wait.Wait() })
	wait.Go(func() { e.run(ctx) })
	f := &followed{}
	if f.policies, err = followPolicies(ctx, k.config, e, limit); err != nil {
		k.T.Fatal(err)
	}
	services := must.Get(followServices(k.config, e, false))(k.T)
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
	return model.Slice{State: model.State{Networks: []model.Network{{Name: "pods", ID: 7}}}, All: []*model.Port{{
		Name: "port", Node: node, Network: "pods", IPs: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, OfPod: &model.Pod{Namespace: k.namespace, Name: pod, UID: uid},
	}}}
}

// group returns the group of onePort.
func (f *followed) group(s model.Slice) fib.Group {
	if g := f.grouping(s); g != nil {
		return g.Groups["port"]
	}
	return fib.Group{}
}

func (k *following) policy(name, spec string) {
	k.T.Helper()
	k.kubectl(fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s, namespace: %s}\nspec: %s\n", name, k.namespace, spec), "apply", "-f", "-")
}

// said returns the messages of the events of an object.
func (k *following) said(kind, name string) []string {
	k.T.Helper()
	out := k.kubectl("", "get", "events", "-A", "--field-selector", "involvedObject.kind="+kind+",involvedObject.name="+name, "-o", `jsonpath={range .items[*]}{.type} {.reason}: {.message}{"\n"}{end}`)
	all := strings.Split(out, "\n")
	slices.Sort(all)
	return slices.DeleteFunc(all, func(line string) bool { return line == "" })
}

// TestAnAgentFollowsACluster runs the parts of agents that follow a real API server.
func TestAnAgentFollowsACluster(t *testing.T) {
	k := startFollowing(t)
	k.step("each problem is one event of its object", "shop", k.testProblems)
	k.step("a pod is closed until it is known", "late", k.testUnknownPod)
	k.step("policies and services stay without the API server", "away", k.testWithoutServer)
}

// testProblems has two agents that find the same problems several times.
func (k *following) testProblems(t *testing.T) {
	k.kubectl(`{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "x", "ports": [{"name": "http", "containerPort": 80}]}]}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "host", "namespace": "shop", "labels": {"app": "host"}}, "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "x"}]}},
		{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sctp", "namespace": "shop"}, "spec": {"clusterIP": "10.96.0.20", "ports": [{"protocol": "SCTP", "port": 80}]}},
		{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "sctp-x", "namespace": "shop", "labels": {"kubernetes.io/service-name": "sctp"}}, "addressType": "IPv4", "ports": [{"port": 81, "protocol": "SCTP"}], "endpoints": [{"addresses": ["10.1.0.1"]}]}
	]}`, "create", "-f", "-")
	uid := k.kubectl("", "-n", "shop", "get", "pod", "web", "-o", "jsonpath={.metadata.uid}")
	k.policy("wrong", "{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: htpp}]}]}")
	k.policy("hosts", "{podSelector: {matchLabels: {app: host}}}")
	k.policy("two", "{podSelector: {matchLabels: {app: web}}, ingress: [{ports: [{port: 80}, {port: 81}]}]}")
	a, b := k.node("a", 2, nil), k.node("b", 1, errors.New("table services: 2 entries are wanted, its limit is 1"))
	for i := range 3 {
		a.grouping(k.onePort("a", "web", uid))
		b.grouping(k.onePort("b", "web", uid))
		k.policy(fmt.Sprint("more-", i), "{podSelector: {matchLabels: {app: more}}}")
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
		{"Service", "sctp", []string{"Warning NotTranslated: vrouter does not change ports of SCTP: set targetPort of the port 80 to the same number, or use kube-proxy for it"}},
	} {
		var got []string
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%s %s: the last events are %q, want %q", c.kind, c.name, got, c.want)
			}
		})
		k.Await(c.kind+" "+c.name+" has its events", func() bool {
			got = k.said(c.kind, c.name)
			return slices.Equal(got, c.want)
		})
	}
	if said := k.kubectl("", "-n", "shop", "describe", "networkpolicy", "wrong"); !strings.Contains(said, "htpp") {
		t.Errorf("kubectl describe does not print the event:\n%s", said)
	}
	// The API server refuses what would be such a problem.
	if said, err := k.Kubectl(`{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "range", "namespace": "shop"}, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 90, "endPort": 80}]}]}}`, "create", "-f", "-"); err == nil || !strings.Contains(said, "endPort") {
		t.Errorf("a range of ports out of order: %v: %s", err, said)
	}
}

// testUnknownPod has a port whose pod the API server does not have yet. After 5 s an event says so.
func (k *following) testUnknownPod(t *testing.T) {
	k.policy("others", "{podSelector: {matchLabels: {app: other}}}")
	a := k.node("a", 1000, nil)
	begun, s := time.Now(), k.onePort("a", "late", "")
	if g := a.group(s); !g.In || !g.Out {
		t.Errorf("the pod is not known, and its port has the group %+v", g)
	}
	k.Await("an event of the pod", func() bool { return len(k.said("Pod", "late")) > 0 })
	if took := time.Since(begun); took < closedWait {
		t.Errorf("the event came after %v, want at least %v", took, closedWait)
	}
	if said := k.said("Pod", "late"); len(said) != 1 || !strings.Contains(said[0], "node a") || !strings.Contains(said[0], "closed") {
		t.Errorf("the events are %q", said)
	}
	if g := a.group(s); !g.In || !g.Out {
		t.Errorf("after the event the port has the group %+v", g)
	}
	k.kubectl(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late", "namespace": "late"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`, "create", "-f", "-")
	k.Await("the pod is known, and no policy selects it", func() bool { return a.group(s) == fib.Group{} })
}

// testWithoutServer ends the API server, and starts it again.
func (k *following) testWithoutServer(t *testing.T) {
	service := func(name, ip string) {
		k.kubectl(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": %q, "namespace": "away"}, "spec": {"clusterIP": %q, "ports": [{"port": 80}]}}`, name, ip), "create", "-f", "-")
	}
	k.kubectl(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "away"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}`, "create", "-f", "-")
	k.policy("closed", "{podSelector: {}}")
	service("one", "10.96.0.30")
	a := k.node("a", 1000, nil)
	s := k.onePort("a", "web", "")
	k.Await("the service is known", func() bool { return slices.Equal(k.has(a), []string{"one"}) })
	want := a.group(s)
	if !want.In || want.Out {
		t.Fatalf("the group is %+v, want one that is closed for ingress", want)
	}
	_ = k.Server.Process.Kill()
	k.Await("the API server has ended", func() bool { return !k.Answers() })
	was := k.refused.Load()
	k.Await("the agent has tried to connect again", func() bool { return k.refused.Load() >= was+10 })
	if g := a.group(s); g != want || !slices.Equal(k.has(a), []string{"one"}) {
		t.Errorf("without the API server: group %+v, want %+v; services %v", g, want, k.has(a))
	}
	must.Equal(t, (fib.Group{}), a.group(model.Slice{}))
	if g := a.group(s); g != want {
		t.Errorf("the port is there again, and has the group %+v, want %+v", g, want)
	}
	k.StartServer()
	k.Await("the API server answers", k.Answers)
	service("two", "10.96.0.31")
	k.kubectl("", "-n", "away", "delete", "networkpolicy", "closed")
	k.Await("changes are followed again", func() bool { return slices.Equal(k.has(a), []string{"one", "two"}) && a.group(s) == fib.Group{} })
}
