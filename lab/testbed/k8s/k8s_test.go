package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/system"
)

func TestMissingPermissionsAreNamedWithTheCommandThatGrantsThem(t *testing.T) {
	c, s := simulate(t)
	must.Succeed(t, c.checkAccess(context.Background()))
	for _, lack := range []string{"create pods", "create pods/exec", "get pods/exec", "update leases.coordination.k8s.io", "list nodes"} {
		s.except, s.done = []string{lack}, nil
		err := c.checkAccess(context.Background())
		must.Fail(t, err, "may not "+lack+" in the cluster", manifestCommand)
		for _, did := range s.done {
			if did != "POST "+reviewsPath {
				t.Errorf("without %q: the check also did %s", lack, did)
			}
		}
	}
}

// The manifest grants exactly what checkAccess asks for.
func TestTheManifestGrantsEveryPermission(t *testing.T) {
	for user, subject := range map[string]string{"": "ServiceAccount windtunnel", "jane": "User jane"} {
		var granted []string
		bound := ""
		for _, document := range strings.Split(Manifest(user), "---\n") {
			var o struct {
				Rules []struct {
					APIGroups        []string `yaml:"apiGroups"`
					Resources, Verbs []string
				}
				Subjects []struct{ Kind, Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatalf("user %q: %v in\n%s", user, err, document)
			}
			for _, r := range o.Rules {
				name, sub, _ := strings.Cut(r.Resources[0], "/")
				for _, verb := range r.Verbs {
					granted = append(granted, permission{r.APIGroups[0], name, sub, verb}.String())
				}
			}
			for _, s := range o.Subjects {
				bound += s.Kind + " " + s.Name
			}
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
func ready(name string, changes ...func(*nodeObject)) nodeObject {
	n := nodeObject{Metadata: metadata{Name: name}}
	n.Status.NodeInfo.OperatingSystem, n.Status.NodeInfo.Architecture = "linux", "amd64"
	n.Status.Conditions = []condition{{Type: "Ready", Status: "True"}}
	for _, c := range changes {
		c(&n)
	}
	return n
}

func at(addresses ...string) func(*nodeObject) {
	return func(n *nodeObject) {
		for _, a := range addresses {
			n.Status.Addresses = append(n.Status.Addresses, statusAddress{"InternalIP", a})
		}
	}
}

// aNode is ready as an object of a simulated cluster.
func aNode(name string, changes ...func(*nodeObject)) *nodeObject {
	n := ready(name, changes...)
	return &n
}

func arm(n *nodeObject)      { n.Status.NodeInfo.Architecture = "arm64" }
func windows(n *nodeObject)  { n.Status.NodeInfo.OperatingSystem = "windows" }
func cordoned(n *nodeObject) { n.Spec.Unschedulable = true }
func down(n *nodeObject) {
	n.Status.Conditions[0] = condition{Type: "Ready", Status: "Unknown", Reason: "NodeStatusUnknown", Message: "Kubelet stopped"}
}
func silentlyDown(n *nodeObject) {
	n.Status.Conditions[0] = condition{Type: "Ready", Status: "Unknown"}
}
func withTaint(n *nodeObject) {
	n.Spec.Taints = []taint{{"x", "NoSchedule"}}
}

func TestNodesAreChosenOrTheErrorHasTheirState(t *testing.T) {
	all := []nodeObject{ready("d"), ready("c"), ready("b", cordoned), ready("a", down), ready("t", withTaint), ready("s", silentlyDown)}
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
func choice(all []nodeObject, names []string, least int, every bool) (string, error) {
	chosen, _, err := chooseNodes(all, names, least, every)
	if err != nil {
		return err.Error(), err
	}
	var words []string
	for _, n := range chosen {
		words = append(words, n.Metadata.Name)
	}
	return strings.Join(words, " "), nil
}

func TestChosenNodesRunLinuxOnOneArchitecture(t *testing.T) {
	mixed := []nodeObject{ready("a", windows), ready("b", arm), ready("c"), ready("d"), ready("e", arm), ready("f")}
	for _, x := range []struct {
		all   []nodeObject
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

func TestPodsThatCannotRunHaveAReason(t *testing.T) {
	containers := func(state string) (list []containerStatus) {
		must.Succeed(t, json.Unmarshal([]byte(`[{"image": "reg/w:1", "state": {`+state+`}}]`), &list))
		return list
	}
	waiting := func(reason string) podStatus {
		return podStatus{Phase: "Pending", ContainerStatuses: containers(`"waiting": {"reason": "` + reason + `", "message": "manifest unknown"}`)}
	}
	for want, status := range map[string]podStatus{
		"cannot be pulled (ImagePullBackOff: manifest unknown); --image": waiting("ImagePullBackOff"),
		"is not a name of an image":                                      waiting("InvalidImageName"),
		"the pull policy forbids":                                        waiting("ErrImageNeverPull"),
		"no windtunnel program in its PATH":                              waiting("RunContainerError"),
		"the kubelet evicted it: low on memory":                          {Phase: "Failed", Reason: "Evicted", Message: "low on memory"},
		"it ended (the cluster gives no reason)":                         {Phase: "Failed"},
		"maximum lifetime":                                               {Phase: "Failed", Reason: "DeadlineExceeded"},
		"exit status 128 (StartError: no such file)":                     {Phase: "Failed", ContainerStatuses: containers(`"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}`)},
	} {
		_, err := stateOf(&podObject{Metadata: metadata{Name: "agent-a"}, Spec: podSpec{NodeName: "n1"}, Status: status})
		must.Fail(t, err, want, "agent-a on node n1")
	}
	for phase, want := range map[string]bool{"Pending": false, "Running": true} {
		running, err := stateOf(&podObject{Status: podStatus{Phase: phase}})
		if running != want || err != nil {
			t.Errorf("%s: running %t, %v; want %t", phase, running, err, want)
		}
	}
	deleted := podObject{Metadata: metadata{DeletionTimestamp: &time.Time{}}, Status: podStatus{Phase: "Running"}}
	_, err := stateOf(&deleted)
	must.Fail(t, err, "drain")
}

func TestPodsHaveAnOwnerAnEndAndOnlyOneHasPrivileges(t *testing.T) {
	r := &runObjects{namespace: "wt-run1", image: "reg/w:1", lifetime: time.Hour}
	r.own(&lease{Metadata: metadata{Name: leaseName, UID: "u1"}})
	for _, privileged := range []bool{true, false} {
		p := r.podObject("p", "n1", privileged)
		s, security := p.Spec, p.Spec.Containers[0].SecurityContext
		if s.HostNetwork != privileged || s.HostPID != privileged || security.Privileged != privileged {
			t.Errorf("privileged %t: host network %t, host PIDs %t, %+v", privileged, s.HostNetwork, s.HostPID, security)
		}
		if s.ActiveDeadlineSeconds != 3600 || s.TerminationGracePeriodSeconds < 1 || s.RestartPolicy != "Never" || s.AutomountServiceAccountToken {
			t.Errorf("the pod's end: %+v", s)
		}
		if len(p.Metadata.OwnerReferences) != 1 || p.Metadata.OwnerReferences[0].UID != "u1" || p.Metadata.Labels[runLabel] != "wt-run1" || s.NodeName != "n1" {
			t.Errorf("the pod's owner and place: %+v on %s", p.Metadata, s.NodeName)
		}
	}
	ports := map[string]int{}
	for _, p := range r.serviceObject("p").Spec.Ports {
		ports[p.Protocol]++
	}
	tools := system.PublishedLast - system.PublishedFirst + 1
	if ports["TCP"] != tools+1 || ports["UDP"] != tools {
		t.Errorf("the service has %v ports, want %d for TCP and %d for UDP", ports, tools+1, tools)
	}
}

func TestOnlyANamedImageIsPulled(t *testing.T) {
	for never, want := range map[bool]string{true: "Never", false: ""} {
		r := &runObjects{namespace: "wt-run1", image: "windtunnel:1", neverPull: never}
		if got := r.podObject("p", "n1", false).Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("never pull %t: the policy is %q, want %q", never, got, want)
		}
	}
}

func TestPodsOfManyNodesHaveValidNames(t *testing.T) {
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) // of RFC 1123
	seen := map[string]bool{}
	for i := range 100 {
		node := ready(fmt.Sprint("n", i), at("192.0.2.1"))
		m := must.Get(newMachine(nil, &runObjects{}, node, i, 2))(t)
		for _, p := range m.pods {
			if !label.MatchString(p.name) || seen[p.name] {
				t.Errorf("node %d: pod %q: used before %t", i, p.name, seen[p.name])
			}
			seen[p.name] = true
		}
	}
	must.Equal(t, 300, len(seen))
}

// The messages are those of the admission plugin ResourceQuota.
func TestAQuotaIsNamed(t *testing.T) {
	for said, want := range map[string]string{
		"exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4":         "a quota of the cluster forbids it",
		"failed quota: small: must specify limits.cpu for: windtunnel":                    "remove these resources from the quota",
		"insufficient quota to consume: pods":                                             "only in namespaces with a quota for it",
		"exceeded quota: s, requested: services=1, used: services=0, limited: services=0": "raise the quota of new namespaces",
	} {
		c, s := simulate(t, aNode("n1", at("192.0.2.1")), aNode("n2", at("192.0.2.2")))
		kind, object := "pods", "pod "
		if strings.Contains(said, "services") {
			kind, object = "services", "service pod-2-1"
		}
		s.react = func(method, at string, _ map[string]any) *failure {
			if method == http.MethodPost && path.Base(at) == kind {
				return &failure{http.StatusForbidden, "Forbidden", kind + ` "x" is forbidden: ` + said}
			}
			return nil
		}
		_, _, err := c.testbeds(context.Background(), Options{Least: 2, Service: true}, nil)
		must.Fail(t, err, "make "+object, ": a quota of the cluster forbids it", said, want)
	}
}

// The controllers compute the state of a new quota.
func TestAQuotaWithoutAStateIsAwaited(t *testing.T) {
	c, s := simulate(t)
	refusals := 3
	s.react = func(string, string, map[string]any) *failure {
		if refusals == 0 {
			return nil
		}
		refusals--
		return &failure{http.StatusForbidden, "Forbidden", `pods "agent-1" is forbidden: status unknown for quota: small, resources: pods`}
	}
	r := &runObjects{namespace: "wt-run1"}
	if err := c.createPod(context.Background(), r.podObject("agent-1", "n1", true)); err != nil || refusals > 0 {
		t.Errorf("error %v, %d refusals are left", err, refusals)
	}
}
