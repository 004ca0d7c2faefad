package k8s

import (
	"log/slog"
	"net/netip"
	"reflect"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// unsentEvents are the events of node a. They are not sent to a cluster.
func unsentEvents(t *testing.T) *events {
	t.Helper()
	return must.Get(newEvents(&rest.Config{}, "a", slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
}

func slimmed(t *testing.T, uid types.UID, hash, version string, phase corev1.PodPhase) *corev1.Pod {
	t.Helper()
	o := must.Get(slimPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: uid, ResourceVersion: version, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{configHash: hash, "version": version}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "http", Protocol: corev1.ProtocolTCP, ContainerPort: 80}}}}},
		Status:     corev1.PodStatus{Phase: phase},
	}))(t)
	return o.(*corev1.Pod)
}

func TestChangesOfAPodsStatusAreNone(t *testing.T) {
	was := withoutVersion(slimmed(t, "1", "", "1", corev1.PodPending))
	if is := withoutVersion(slimmed(t, "1", "", "2", corev1.PodRunning)); !reflect.DeepEqual(was, is) {
		t.Errorf("%+v differs from %+v", is, was)
	}
	if is := withoutVersion(slimmed(t, "2", "", "2", corev1.PodRunning)); reflect.DeepEqual(was, is) {
		t.Error("a change of a pod's UID is not seen as a change")
	}
}

// A port has the group of its pod, and is closed while the pod is not known. Without policies no
// port has a group.
func TestTheGroupsFollowTheClusterAndThePorts(t *testing.T) {
	p := newPolicies(unsentEvents(t), 1000)
	ports := func(vrf uint32, uid, node string) model.Slice {
		port := model.Port{Name: "port", Node: node, Network: "pods", IPs: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, OfPod: &model.Pod{Namespace: "shop", Name: "web", UID: uid}}
		return model.State{Networks: []model.Network{{Name: "pods", ID: vrf}}, Ports: []model.Port{port}}.Slice(node)
	}
	change := func(f func()) { f(); p.regroup() }
	group := func(s model.Slice) fib.Group {
		t.Helper()
		if g := p.grouping(s); g != nil {
			return g.Groups["port"]
		}
		return fib.Group{}
	}
	s := ports(7, "1", "a")
	if g := p.grouping(s); g != nil {
		t.Errorf("without policies: %+v", g)
	}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: networkingv1.NetworkPolicySpec{
		Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
	}}
	change(func() { p.setPolicy(policy) })
	if g := group(s); !g.In || !g.Out {
		t.Errorf("the pod is not known: %+v", g)
	}
	change(func() {
		p.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		p.setPod(slimmed(t, "1", "hash", "1", ""))
	})
	if g := group(s); !g.In || g.Out {
		t.Errorf("a policy of ingress: %+v", g)
	}
	before := p.grouping(s)
	change(func() {})
	if p.grouping(s) != before {
		t.Error("a second call without a change returns another pointer, want the same")
	}
	for uid, known := range map[string]bool{"hash": true, "": true, "of an earlier pod": false} {
		if g := group(ports(7, uid, "a")); g.Out == known {
			t.Errorf("a port with UID %q: %+v", uid, g)
		}
	}
	key := func(vrf uint32) fib.RouteKey {
		return fib.RouteKey{VRF: vrf, Prefix: netip.MustParsePrefix("10.1.0.1/32")}
	}
	if g := p.grouping(ports(8, "1", "a")); g.Identities[key(8)].Pods == 0 || len(g.Identities) != 1 {
		t.Errorf("the network has another id: %+v", g.Identities)
	}
	if g := p.grouping(ports(8, "1", "b")); len(g.Groups) > 0 {
		t.Errorf("the port is on another node: %+v", g.Groups)
	}
	if g := p.grouping(model.Slice{}); len(g.Groups)+len(g.Identities) > 0 {
		t.Errorf("there are no ports: %+v", g)
	}
	change(func() { p.deletePolicy(policy) })
	if g := p.grouping(s); g != nil {
		t.Errorf("without policies again: %+v", g)
	}
}

// The words about a denied flow name the policies that could allow it.
func TestADenialNamesTheNetworkPolicies(t *testing.T) {
	p := newPolicies(unsentEvents(t), 1)
	policy := func(name string, ports ...int32) {
		np := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: networkingv1.NetworkPolicySpec{Ingress: []networkingv1.NetworkPolicyIngressRule{{}}}}
		for _, n := range ports {
			port := intstr.FromInt32(n)
			np.Spec.Ingress[0].Ports = append(np.Spec.Ingress[0].Ports, networkingv1.NetworkPolicyPort{Port: &port})
		}
		p.setPolicy(np)
		p.regroup()
	}
	s := model.State{Networks: []model.Network{{Name: "pods", ID: 7}}, Ports: []model.Port{
		{Name: "port", Node: "a", Network: "pods", IPs: []netip.Addr{netip.MustParseAddr("10.1.0.1")}, OfPod: &model.Pod{Namespace: "shop", Name: "web"}},
		{Name: "remote", Node: "b", Network: "pods", IPs: []netip.Addr{netip.MustParseAddr("10.1.0.2")}, OfPod: &model.Pod{Namespace: "shop", Name: "web"}},
	}}.Slice("a")
	denial := func(port string, d model.Direction, destination uint16, want string) {
		t.Helper()
		p.grouping(s)
		if got := p.denial(port, d, netip.MustParseAddr("10.1.0.9"), unix.IPPROTO_TCP, destination); got != want {
			t.Errorf("a flow of %s to port %d: %q, want %q", port, destination, got, want)
		}
	}
	denial("port", model.Ingress, 81, "")
	policy("one", 80)
	denial("port", model.Egress, 81, "which is closed: its pod is not known yet")
	p.setNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	p.setPod(slimmed(t, "1", "", "1", ""))
	p.regroup()
	denial("port", model.Egress, 81, "")
	denial("port", model.Ingress, 80, "")
	denial("remote", model.Ingress, 81, "NetworkPolicy shop/one does not allow it")
	policy("two", 82)
	const full = "which is closed: the NetworkPolicies need more map entries than the node has room for"
	denial("port", model.Ingress, 80, full)
	denial("port", model.Egress, 80, "")
	denial("remote", model.Ingress, 81, "none of 2 NetworkPolicies allows it: shop/one, shop/two")
	// A report between a change of policies and the next result has the problems of the last result.
	was := len(p.events.said["policies"])
	policy("two")
	p.report()
	if is := len(p.events.said["policies"]); was != 3 || is != was {
		t.Errorf("%d and %d problems, want 3: of the node and of two policies", was, is)
	}
	denial("port", model.Ingress, 81, full)
	policy("one")
	denial("port", model.Ingress, 81, "")
	if is := p.events.said["policies"]; len(is) != 0 {
		t.Errorf("problems %v, want none", is)
	}
}
