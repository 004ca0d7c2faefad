package k8s

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	action "k8s.io/client-go/testing"

	"windtunnel/lab/system"
)

// simulated returns a cluster whose API server only stores objects. A service gets an address.
func simulated(objects ...runtime.Object) (*cluster, *fake.Clientset) {
	f := fake.NewClientset(objects...)
	f.PrependReactor("create", "services", func(a action.Action) (bool, runtime.Object, error) {
		a.(action.CreateAction).GetObject().(*core.Service).Spec.ClusterIP = "10.96.0.9"
		return false, nil, nil
	})
	return &cluster{
		namespaces: f.CoreV1().Namespaces(), nodes: f.CoreV1().Nodes(), reviews: f.AuthorizationV1().SelfSubjectAccessReviews(),
		pods:     func(in string) kind[*core.Pod, *core.PodList] { return f.CoreV1().Pods(in) },
		services: func(in string) kind[*core.Service, *core.ServiceList] { return f.CoreV1().Services(in) },
		events:   func(in string) kind[*core.Event, *core.EventList] { return f.CoreV1().Events(in) },
		leases: func(in string) kind[*coordination.Lease, *coordination.LeaseList] {
			return f.CoordinationV1().Leases(in)
		},
	}, f
}

// allowing makes the API server allow all but the given permissions.
func allowing(f *fake.Clientset, except ...string) {
	f.PrependReactor("create", "selfsubjectaccessreviews", func(a action.Action) (bool, runtime.Object, error) {
		r := a.(action.CreateAction).GetObject().(*authorization.SelfSubjectAccessReview)
		at := r.Spec.ResourceAttributes
		r.Status.Allowed = !slices.Contains(except, permission{at.Group, at.Resource, at.Subresource, at.Verb}.String())
		return true, r, nil
	})
}

func TestMissingPermissionsAreNamedWithTheCommandThatGrantsThem(t *testing.T) {
	c, f := simulated()
	allowing(f)
	if err := c.checkAccess(context.Background()); err != nil {
		t.Errorf("a user with all permissions is refused: %v", err)
	}
	for _, lack := range []string{"create pods", "create pods/exec", "get pods/exec", "update leases.coordination.k8s.io", "list nodes"} {
		c, f := simulated()
		allowing(f, lack)
		err := c.checkAccess(context.Background())
		if err == nil || !strings.Contains(err.Error(), "may not "+lack+" in the cluster") || !strings.Contains(err.Error(), ManifestCommand) {
			t.Errorf("without %q: error %v; want the verb, the resource and %q", lack, err, ManifestCommand)
		}
		for _, a := range f.Actions() {
			if a.GetResource().Resource != "selfsubjectaccessreviews" {
				t.Errorf("without %q: the check also did %s %s", lack, a.GetVerb(), a.GetResource().Resource)
			}
		}
	}
}

// The manifest grants exactly what checkAccess asks for.
func TestTheManifestGrantsEveryPermission(t *testing.T) {
	decode := scheme.Codecs.UniversalDeserializer().Decode
	for user, subject := range map[string]string{"": "ServiceAccount windtunnel", "jane": "User jane"} {
		var granted []string
		bound := ""
		for _, document := range strings.Split(Manifest(user), "---\n") {
			object, _, err := decode([]byte(document), nil, nil)
			if err != nil {
				t.Fatalf("user %q: %v in\n%s", user, err, document)
			}
			granted = append(granted, grantedBy(object)...)
			bound += boundBy(object)
		}
		var want []string
		for _, p := range permissions() {
			want = append(want, p.String())
		}
		if d := cmp.Diff(want, granted); d != "" {
			t.Errorf("user %q: permissions (-want +granted):\n%s", user, d)
		}
		if bound != subject {
			t.Errorf("user %q: the role is bound to %q, want %q", user, bound, subject)
		}
	}
}

// ready returns a node that can be used, and changes it.
func ready(name string, changes ...func(*core.Node)) core.Node {
	n := core.Node{ObjectMeta: meta.ObjectMeta{Name: name}}
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.Architecture = "linux", "amd64"
	n.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}
	for _, c := range changes {
		c(&n)
	}
	return n
}

func at(addresses ...string) func(*core.Node) {
	return func(n *core.Node) {
		for _, a := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, core.NodeAddress{Type: core.NodeInternalIP, Address: a})
		}
	}
}

// aNode is ready as an object of a simulated cluster.
func aNode(name string, changes ...func(*core.Node)) *core.Node {
	n := ready(name, changes...)
	return &n
}

func arm(n *core.Node)      { n.Status.NodeInfo.Architecture = "arm64" }
func windows(n *core.Node)  { n.Status.NodeInfo.OperatingSystem = "windows" }
func cordoned(n *core.Node) { n.Spec.Unschedulable = true }
func down(n *core.Node) {
	n.Status.Conditions[0] = core.NodeCondition{Type: core.NodeReady, Status: core.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "Kubelet stopped"}
}
func silentlyDown(n *core.Node) {
	n.Status.Conditions[0] = core.NodeCondition{Type: core.NodeReady, Status: core.ConditionUnknown}
}
func taint(n *core.Node) {
	n.Spec.Taints = []core.Taint{{Key: "x", Effect: core.TaintEffectNoSchedule}}
}

func TestNodesAreChosenOrTheirStateIsSaid(t *testing.T) {
	all := []core.Node{ready("d"), ready("c"), ready("b", cordoned), ready("a", down), ready("t", taint), ready("s", silentlyDown)}
	for _, x := range []struct {
		names []string
		least int
		want  string // names, or a part of the error
	}{
		{nil, 2, "c d"},
		{nil, 1, "c"},
		{[]string{"d", "c"}, 2, "d c"},
		{[]string{"t", "c"}, 2, "t c"},      // a named node may have taints
		{[]string{"d", "c", "b"}, 2, "d c"}, // a run does not use the third
		{[]string{"c"}, 2, "the plan needs 2 nodes, and --nodes has 1"},
		{[]string{"c", "c"}, 2, "--nodes names c twice"},
		{[]string{"c", "x"}, 2, `no node "x"; its nodes: a, b, c, d, s, t`},
		{[]string{"c", "b"}, 2, "kubectl uncordon b"},
		{[]string{"a", "c"}, 2, "node a is not ready (NodeStatusUnknown: Kubelet stopped)"},
		{[]string{"s", "c"}, 2, "node s is not ready (the cluster gives no reason)"},
		{nil, 3, "the plan needs 3 nodes, and 2 of the cluster's 6 can be used: node a is not ready"},
	} {
		got, err := choice(all, x.names, x.least, false)
		if strings.TrimSpace(got) != x.want && (err == nil || !strings.Contains(got, x.want)) {
			t.Errorf("--nodes %v of %d: %q, want %q", x.names, x.least, got, x.want)
		}
	}
}

// choice returns the names of the chosen nodes, or the error.
func choice(all []core.Node, names []string, least int, every bool) (string, error) {
	chosen, _, err := chooseNodes(all, names, least, every)
	if err != nil {
		return err.Error(), err
	}
	var words []string
	for _, n := range chosen {
		words = append(words, n.Name)
	}
	return strings.Join(words, " "), nil
}

func TestChosenNodesRunLinuxOnOneArchitecture(t *testing.T) {
	mixed := []core.Node{ready("a", windows), ready("b", arm), ready("c"), ready("d"), ready("e", arm), ready("f")}
	for _, x := range []struct {
		all   []core.Node
		names []string
		least int
		every bool
		want  string
	}{
		{mixed, nil, 2, false, "b e"},
		{mixed, nil, 2, true, "c d f"},  // the most
		{mixed, nil, 3, false, "c d f"}, // arm64 has two
		{mixed[2:], nil, 2, true, "c d f"},
		{mixed, []string{"f", "d", "c"}, 2, true, "f d c"},
		{mixed, []string{"b", "c"}, 2, false, "b c"}, // an image can be for several architectures
		{mixed, []string{"a", "b"}, 2, false, `node a runs the operating system "windows"`},
		{mixed[:4], nil, 3, false, "the plan needs 3 nodes, and 2 of the cluster's 4 can be used: node a runs the operating system \"windows\", and the lab needs linux; node b has another CPU architecture (arm64)"},
	} {
		if got, err := choice(x.all, x.names, x.least, x.every); got != x.want && (err == nil || !strings.Contains(got, x.want)) {
			t.Errorf("--nodes %v of %d, all %t: %q, want %q", x.names, x.least, x.every, got, x.want)
		}
	}
}

func TestPodsThatCannotRunSayWhy(t *testing.T) {
	waiting := func(reason string) core.PodStatus {
		return core.PodStatus{Phase: core.PodPending, ContainerStatuses: []core.ContainerStatus{{Image: "reg/w:1", State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: "manifest unknown"}}}}}
	}
	for want, status := range map[string]core.PodStatus{
		"cannot be pulled (ImagePullBackOff: manifest unknown); --image": waiting("ImagePullBackOff"),
		"is not a name of an image":                                      waiting("InvalidImageName"),
		"the pull policy forbids":                                        waiting("ErrImageNeverPull"),
		"no windtunnel program in its PATH":                              waiting("RunContainerError"),
		"the kubelet evicted it: low on memory":                          {Phase: core.PodFailed, Reason: "Evicted", Message: "low on memory"},
		"it ended (the cluster gives no reason)":                         {Phase: core.PodFailed},
		"maximum lifetime":                                               {Phase: core.PodFailed, Reason: "DeadlineExceeded"},
		"exit status 128 (StartError: no such file)": {Phase: core.PodFailed, ContainerStatuses: []core.ContainerStatus{{
			State: core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: "no such file"}}}}},
	} {
		_, err := stateOf(&core.Pod{ObjectMeta: meta.ObjectMeta{Name: "agent-a"}, Spec: core.PodSpec{NodeName: "n1"}, Status: status})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "agent-a on node n1") {
			t.Errorf("error %v, want pod, node and %q", err, want)
		}
	}
	for phase, want := range map[core.PodPhase]bool{core.PodPending: false, core.PodRunning: true} {
		running, err := stateOf(&core.Pod{Status: core.PodStatus{Phase: phase}})
		if running != want || err != nil {
			t.Errorf("%s: running %t, %v; want %t", phase, running, err, want)
		}
	}
	deleted := core.Pod{Status: core.PodStatus{Phase: core.PodRunning}}
	deleted.DeletionTimestamp = &meta.Time{Time: time.Now()}
	if _, err := stateOf(&deleted); err == nil || !strings.Contains(err.Error(), "drain") {
		t.Errorf("a deleted pod: %v", err)
	}
}

func TestPodsHaveAnOwnerAnEndAndOnlyOneHasPrivileges(t *testing.T) {
	r := &runObjects{namespace: "wt-run1", image: "reg/w:1", lifetime: time.Hour}
	r.own(&coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: leaseName, UID: "u1"}})
	for _, privileged := range []bool{true, false} {
		p := r.podObject("p", "n1", privileged)
		s, security := p.Spec, p.Spec.Containers[0].SecurityContext
		if s.HostNetwork != privileged || s.HostPID != privileged || (security.Privileged != nil) != privileged {
			t.Errorf("privileged %t: host network %t, host PIDs %t, %+v", privileged, s.HostNetwork, s.HostPID, security)
		}
		if *s.ActiveDeadlineSeconds != 3600 || *s.TerminationGracePeriodSeconds < 1 || s.RestartPolicy != core.RestartPolicyNever || *s.AutomountServiceAccountToken {
			t.Errorf("the pod's end: %+v", s)
		}
		if len(p.OwnerReferences) != 1 || p.OwnerReferences[0].UID != "u1" || p.Labels[runLabel] != "wt-run1" || s.NodeName != "n1" {
			t.Errorf("the pod's owner and place: %+v on %s", p.ObjectMeta, s.NodeName)
		}
	}
	ports := map[core.Protocol]int{}
	for _, p := range r.serviceObject("p").Spec.Ports {
		ports[p.Protocol]++
	}
	tools := system.PublishedLast - system.PublishedFirst + 1
	if ports[core.ProtocolTCP] != tools+1 || ports[core.ProtocolUDP] != tools {
		t.Errorf("the service has %v ports, want %d for TCP and %d for UDP", ports, tools+1, tools)
	}
}

func TestOnlyANamedImageIsPulled(t *testing.T) {
	for never, want := range map[bool]core.PullPolicy{true: core.PullNever, false: ""} {
		r := &runObjects{namespace: "wt-run1", image: "windtunnel:1", neverPull: never}
		if got := r.podObject("p", "n1", false).Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("never pull %t: the policy is %q, want %q", never, got, want)
		}
	}
}

func TestPodsOfManyNodesHaveValidNames(t *testing.T) {
	seen := map[string]bool{}
	for i := range 100 {
		node := ready(fmt.Sprint("n", i), at("192.0.2.1"))
		m, err := newMachine(nil, &runObjects{}, node, i, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.pods {
			if wrong := validation.IsDNS1123Label(p.name); len(wrong) > 0 || seen[p.name] {
				t.Errorf("node %d: pod %q: used before %t, %v", i, p.name, seen[p.name], wrong)
			}
			seen[p.name] = true
		}
	}
	if len(seen) != 300 {
		t.Errorf("%d pods, want 300", len(seen))
	}
}

// The messages are those of the admission plugin ResourceQuota.
func TestAQuotaIsNamed(t *testing.T) {
	for said, want := range map[string]string{
		"exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4":         "a quota of the cluster forbids it",
		"failed quota: small: must specify limits.cpu for: windtunnel":                    "remove these resources from the quota",
		"insufficient quota to consume: pods":                                             "only in namespaces with a quota for it",
		"exceeded quota: s, requested: services=1, used: services=0, limited: services=0": "raise the quota of new namespaces",
	} {
		c, f := simulated(aNode("n1", at("192.0.2.1")), aNode("n2", at("192.0.2.2")))
		kind, object := "pods", "pod "
		if strings.Contains(said, "services") {
			kind, object = "services", "service pod-2-1"
		}
		f.PrependReactor("create", kind, func(action.Action) (bool, runtime.Object, error) {
			return true, nil, api.NewForbidden(core.Resource(kind), "x", errors.New(said))
		})
		allowing(f)
		_, _, err := c.testbeds(context.Background(), Options{Least: 2, Service: true}, nil)
		if err == nil || !strings.Contains(err.Error(), "make "+object) || !strings.Contains(err.Error(), ": a quota of the cluster forbids it") || !strings.Contains(err.Error(), said) || !strings.Contains(err.Error(), want) {
			t.Errorf("quota %q: error %v, want %q", said, err, want)
		}
	}
}

// The controllers compute the state of a new quota.
func TestAQuotaWithoutAStateIsAwaited(t *testing.T) {
	c, f := simulated()
	refusals := 3
	f.PrependReactor("create", "pods", func(action.Action) (bool, runtime.Object, error) {
		if refusals == 0 {
			return false, nil, nil
		}
		refusals--
		return true, nil, api.NewForbidden(core.Resource("pods"), "agent-1", errors.New("status unknown for quota: small, resources: pods"))
	})
	r := &runObjects{namespace: "wt-run1"}
	if err := c.createPod(context.Background(), r.podObject("agent-1", "n1", true)); err != nil || refusals > 0 {
		t.Errorf("error %v, %d refusals are left", err, refusals)
	}
}
