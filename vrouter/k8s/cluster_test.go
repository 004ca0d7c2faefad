package k8s

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/api"
)

// productImage is the file of the image that `make image` makes.
const productImage = "../../out/vrouter.image.tar"

// installation is vrouter in a test cluster.
type installation struct {
	*testcluster.Cluster
	image, manifest string
}

// install starts a cluster without a CNI plugin. The caller applies the manifest, which has the flags.
func install(t *testing.T, o testcluster.Options, flags ...string) *installation {
	o.Images = []string{productImage}
	k := &installation{Cluster: testcluster.Start(t, o), image: testcluster.Tags(t, productImage)[0]}
	k.manifest = k.VrouterManifest(k.image, flags...)
	return k
}

// A real cluster of two nodes without a CNI plugin: vrouter is installed, upgraded and removed by
// its manifest alone.
func TestACluster(t *testing.T) {
	k := install(t, testcluster.Options{Subnets: true, DNS: true})
	before := k.inventory()
	k.Step("one apply makes the nodes ready", k.testApply)
	k.Step("pods on two nodes reach each other", k.testPods)
	k.Step("pods resolve names by the cluster's DNS server", k.testDNS)
	k.Step("the check finds that pods reach everything", func(t *testing.T) { k.testCheck(t, 2*9) })
	k.Step("clients everywhere reach a pod", k.testReach)
	k.Step("the API server's proxy reaches pods and services", k.testProxy)
	k.Step("the agent of a worker cannot change networks", k.testRoles)
	k.Step("a namespace chooses its network", k.testNamespace)
	k.Step("policies decide which pods reach each other", k.testPolicies)
	k.Step("a restart of the agents keeps connections and configuration", k.testRestart)
	k.Step("another CNI configuration is an event of the node", k.testOtherPlugin)
	k.Step("an agent that cannot load its programs is an event of its node", k.testNoPrograms)
	k.Step("the check names an image that cannot be pulled", k.testCheckWithoutImage)
	k.Step("the doctor names a node that cannot be reached", k.testApart)
	k.Step("a pod without a permission says so, and removes nothing", k.testPermission)
	k.Step("a second apply changes nothing", func(t *testing.T) {
		if said := k.kubectl(k.manifest, "apply", "-f", "-"); strings.Contains(said, "created") || strings.Contains(said, "configured") {
			t.Errorf("the second apply prints:\n%s", said)
		}
	})
	k.Step("deletion leaves nothing", func(t *testing.T) { k.testDeletion(t, before) })
}

// A cluster whose nodes, pods and services have addresses of both IP versions.
func TestAClusterOfBothIPVersions(t *testing.T) {
	k := install(t, testcluster.Options{Subnets: true, DualStack: true, DNS: true})
	before := k.inventory()
	k.Step("one apply makes the nodes ready", k.testApply)
	k.Step("pods on two nodes reach each other", k.testPods)
	k.Step("pods resolve names by the cluster's DNS server", k.testDNS)
	k.Step("the check finds that pods reach everything", func(t *testing.T) { k.testCheck(t, 2*15) })
	k.Step("clients everywhere reach a pod", k.testReach)
	k.Step("the API server's proxy reaches pods and services", k.testProxy)
	k.Step("deletion leaves nothing", func(t *testing.T) { k.testDeletion(t, before) })
}

// A cluster without kube-proxy, whose nodes, pods and services have addresses of both IP versions.
func TestAClusterWithoutKubeProxy(t *testing.T) {
	k := install(t, testcluster.Options{Subnets: true, DualStack: true, NoKubeProxy: true, DNS: true})
	before := k.inventory()
	k.Step("one apply makes the nodes ready", k.testApply)
	k.Step("pods on two nodes reach each other", k.testPods)
	k.Step("pods resolve names by the cluster's DNS server", k.testDNS)
	k.Step("the check finds that pods reach everything", func(t *testing.T) { k.testCheck(t, 2*15) })
	k.Step("clients everywhere reach a pod", k.testReach)
	k.Step("the API server's proxy reaches pods and services", k.testProxy)
	k.Step("clients outside reach services in every way", k.testOutside)
	k.Step("a restart of the agents keeps connections and configuration", k.testRestart)
	k.Step("deletion leaves nothing", func(t *testing.T) { k.testDeletion(t, before) })
}

// A cluster without IPv4.
func TestAClusterOfIPv6Alone(t *testing.T) {
	k := install(t, testcluster.Options{Subnets: true, IPv6Only: true, DNS: true})
	before := k.inventory()
	k.Step("one apply makes the nodes ready", k.testApply)
	k.Step("pods on two nodes reach each other", k.testPods)
	k.Step("pods resolve names by the cluster's DNS server", k.testDNS)
	k.Step("the check finds that pods reach everything", func(t *testing.T) { k.testCheck(t, 2*9) })
	k.Step("clients everywhere reach a pod", k.testReach)
	k.Step("the API server's proxy reaches pods and services", k.testProxy)
	k.Step("policies decide which pods reach each other", k.testPolicies)
	k.Step("deletion leaves nothing", func(t *testing.T) { k.testDeletion(t, before) })
}

func (k *installation) testCheck(t *testing.T, want int) {
	// The API server is outside the pods' and the nodes' networks.
	out, err := k.Command(filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "vrouter"), "k8s", "check", "--image", k.image, "--outside", k.API(), "-o", "json").CombinedOutput()
	t.Logf("%s", out)
	var findings []api.Finding
	if err != nil || json.Unmarshal(out, &findings) != nil || len(findings) != want {
		k.logPods()
		t.Errorf("%v, %d findings, want %d", err, len(findings), want)
	}
	if left := k.lines("get", "namespace", checkName, "--ignore-not-found"); len(left) > 0 {
		t.Errorf("the check left %v", left)
	}
}

func (k *installation) testDeletion(t *testing.T, before [][]string) {
	k.kubectl("", "delete", "pods", "--all", "--wait")
	said := k.follow()
	begun := time.Now()
	k.kubectl(k.manifest, "delete", "-f", "-", "--timeout", "90s")
	if took := time.Since(begun); took > 25*time.Second {
		t.Errorf("the deletion took %v, so pods were killed", took)
	}
	defer func() {
		if t.Failed() {
			t.Logf("the pods print:\n%s", said())
		}
	}()
	k.Await("the namespace is gone", func() bool { return len(k.lines("get", "namespace", Namespace, "--ignore-not-found")) == 0 })
	if k.tainted() {
		t.Error("a node has the taint of a node without a network")
	}
	for i, left := range k.inventory() {
		for _, l := range left {
			if !slices.Contains(before[i], l) {
				t.Errorf("%s still has %s", k.Nodes[i].Name, l)
			}
		}
	}
}

// kubectl runs kubectl as the administrator. It must succeed.
func (k *installation) kubectl(stdin string, args ...string) string {
	k.T.Helper()
	said, err := k.Kubectl(stdin, args...)
	if err != nil {
		k.logPods()
		k.T.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, said)
	}
	return said
}

// lines returns the lines of kubectl's output; none if it fails.
func (k *installation) lines(args ...string) []string {
	said, err := k.Kubectl("", args...)
	if err != nil || said == "" {
		return nil
	}
	return strings.Split(said, "\n")
}

// await waits for a condition, and logs the pods if it does not come.
func (k *installation) await(what string, holds func() bool) {
	k.T.Helper()
	defer func() {
		if k.T.Failed() {
			k.logPods()
		}
	}()
	k.Await(what, holds)
}

func (k *installation) logPods() {
	for _, args := range [][]string{{"get", "pods", "-A", "-o", "wide"}, {"-n", Namespace, "logs", "-l", "app=" + StoreName, "--tail=30"}, {"-n", Namespace, "logs", "-l", "app=" + NodeName, "--tail=30", "--prefix"}, {"get", "events", "-A"}} {
		said, _ := k.Kubectl("", args...)
		k.T.Logf("kubectl %s:\n%s", strings.Join(args, " "), said)
	}
}

// follow returns a function that returns what vrouter's pods print from now on.
func (k *installation) follow() func() string {
	var out strings.Builder
	var all []*exec.Cmd
	for _, app := range []string{StoreName, ControllerName, NodeName} {
		logs := k.Command("kubectl", "-n", Namespace, "logs", "-f", "--tail=0", "--prefix", "-l", "app="+app)
		logs.Stdout, logs.Stderr = &out, &out
		must.Succeed(k.T, logs.Start())
		all = append(all, logs)
	}
	return func() string {
		for _, l := range all {
			_ = l.Wait() // it ends with the pods
		}
		return out.String()
	}
}

// inventory lists what vrouter could leave on each node: files, devices, routes, and rules of routing and iptables.
func (k *installation) inventory() (all [][]string) {
	for _, n := range k.Nodes {
		var has []string
		for _, pattern := range []string{"/opt/cni/bin/*", "/etc/cni/net.d/*", "/run/vrouter*", "/run/vrouter/*", "/var/lib/vrouter*", "/var/lib/vrouter/*"} {
			files := must.Get(filepath.Glob(n.Root + pattern))(k.T)
			for _, f := range files {
				has = append(has, "the file "+strings.TrimPrefix(f, n.Root))
			}
		}
		for _, list := range [][]string{{"ip", "-br", "link"}, {"ip", "route"}, {"ip", "-6", "route"}, {"ip", "rule"}, {"iptables", "-w", "-S"}, {"iptables", "-w", "-t", "nat", "-S"}, {"ip6tables", "-w", "-S"}, {"ip6tables", "-w", "-t", "nat", "-S"}, {"nft", "list", "tables"}} {
			said, err := k.OnNode(n, list[0], list[1:]...)
			if err != nil {
				k.T.Fatalf("%v on %s: %v: %s", list, n.Name, err, said)
			}
			for line := range strings.Lines(said) {
				if strings.Contains(line, "KUBE-") || strings.Contains(line, "CNI-HOSTPORT-") || list[0] == "nft" && !strings.Contains(line, "vrouter") { // of kube-proxy, portmap and iptables, which keep their chains
					continue
				}
				text := strings.Join(strings.Fields(line), " ")
				if list[len(list)-1] == "link" { // a node that boots again has other indexes and MAC addresses
					text, _, _ = strings.Cut(strings.Fields(line)[0], "@")
				}
				has = append(has, strings.Join(list, " ")+": "+text)
			}
		}
		all = append(all, has)
	}
	return all
}

func (k *installation) testApply(t *testing.T) {
	k.kubectl(k.manifest, "apply", "-f", "-")
	k.awaitNodes()
	k.await("all pods of vrouter are ready", func() bool {
		ready := k.lines("-n", Namespace, "get", "pods", "-o", `jsonpath={range .items[*]}{.status.containerStatuses[0].ready}{"\n"}{end}`)
		return slices.Equal(ready, slices.Repeat([]string{"true"}, len(k.Nodes)+strings.Count(k.manifest, "kind: Deployment")))
	})
	k.awaitConditions("False", agentReady)
}

// awaitConditions waits until the condition NetworkUnavailable of all nodes has a status and a reason, and the nodes have
// the taint that follows from it.
func (k *installation) awaitConditions(status, reason string) {
	k.T.Helper()
	k.await("the condition of all nodes is "+status+", "+reason, func() bool {
		said := k.lines("get", "nodes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="NetworkUnavailable")].status} {.status.conditions[?(@.type=="NetworkUnavailable")].reason}{"\n"}{end}`)
		return slices.Equal(said, slices.Repeat([]string{status + " " + reason}, len(k.Nodes))) && k.tainted() == (status == "True")
	})
}

// tainted reports whether a node has the taint of a node without a network.
func (k *installation) tainted() bool {
	return slices.Contains(strings.Fields(k.kubectl("", "get", "nodes", "-o", "jsonpath={.items[*].spec.taints[*].key}")), corev1.TaintNodeNetworkUnavailable)
}

func (k *installation) awaitNodes() {
	k.T.Helper()
	k.await("all nodes are ready", func() bool {
		ready := k.lines("get", "nodes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		return slices.Equal(ready, slices.Repeat([]string{"True"}, len(k.Nodes)))
	})
}

// pod is a pod of the test, with its address.
type pod struct {
	Metadata struct{ Name string }
	Spec     struct{ NodeName string }
	Status   struct {
		PodIP  string
		PodIPs []struct{ IP netip.Addr }
	}
}

// podsManifest has a pod on each node.
func (k *installation) podsManifest() string {
	var b strings.Builder
	for i, n := range k.Nodes {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Pod\nmetadata: {name: pod-%d}\nspec: {nodeName: %s, terminationGracePeriodSeconds: 1, containers: [{name: c, image: %q, imagePullPolicy: Never}]}\n---\n", i+1, n.Name, testcluster.SandboxImage)
	}
	return b.String()
}

func (k *installation) pods() (list []pod) {
	var all struct{ Items []pod }
	must.Succeed(k.T, json.Unmarshal([]byte(k.kubectl("", "get", "pods", "-o", "json")), &all))
	return all.Items
}

func (k *installation) testPods(t *testing.T) {
	k.await("the default service account is there", func() bool { return len(k.lines("get", "serviceaccount", "default", "-o", "name")) == 1 })
	k.kubectl(k.podsManifest(), "apply", "-f", "-")
	k.await("both pods have addresses", func() bool {
		return len(k.lines("get", "pods", "--field-selector=status.phase=Running", "-o", "name")) == 2
	})
	for i, p := range k.pods() {
		var cidrs []netip.Prefix
		said := k.kubectl("", "get", "node", p.Spec.NodeName, "-o", "jsonpath={.spec.podCIDRs}")
		if err := json.Unmarshal([]byte(said), &cidrs); err != nil || len(cidrs) != len(p.Status.PodIPs) {
			t.Fatalf("%s has the addresses %v, want one of each podCIDR of its node: %s", p.Metadata.Name, p.Status.PodIPs, said)
		}
		for v, cidr := range cidrs {
			if !cidr.Contains(p.Status.PodIPs[v].IP) {
				t.Errorf("%s has the address %v, want one of its node's %v", p.Metadata.Name, p.Status.PodIPs[v].IP, cidr)
			}
			k.ping(k.Nodes[i], k.pods()[1-i].Status.PodIPs[v].IP.String(), p.Status.PodIPs[v].IP.String())
		}
	}
}

// ping sends echo requests from a pod's network namespace.
func (k *installation) ping(n *testcluster.Node, to, from string) {
	k.T.Helper()
	if said, err := k.OnNode(n, "nsenter", "--net="+k.space(n, from), "ping", "-c", "3", "-i", "0.2", "-W", "2", to); err != nil {
		k.logPods()
		k.T.Errorf("ping from %s to %s: %v: %s", from, to, err, said)
	}
}

// space returns the path, on a node, of the network namespace of the pod with an address.
func (k *installation) space(n *testcluster.Node, address string) string {
	k.T.Helper()
	names, err := k.OnNode(n, "ls", "/run/netns")
	if err != nil {
		k.T.Fatalf("list the namespaces of pods: %v: %s", err, names)
	}
	for name := range strings.FieldsSeq(names) {
		has, err := k.OnNode(n, "ip", "-n", name, "-br", "address")
		if err == nil && strings.Contains(has, address+"/") {
			return "/run/netns/" + name
		}
	}
	k.T.Fatalf("no network namespace of %s has the address %s", n.Name, address)
	return ""
}

// vrouter runs a command in the pod of a node's agent.
func (k *installation) vrouter(n *testcluster.Node, args ...string) (string, error) {
	pod := k.lines("-n", Namespace, "get", "pods", "-l", "app="+NodeName, "--field-selector=spec.nodeName="+n.Name, "-o", "name")
	if len(pod) != 1 {
		k.T.Fatalf("node %s has the agents %v, want one", n.Name, pod)
	}
	return k.Kubectl("", append([]string{"-n", Namespace, "exec", pod[0], "--", "vrouter"}, args...)...)
}

// testRoles writes with the certificate of a node that does not run the store.
func (k *installation) testRoles(t *testing.T) {
	said, err := k.vrouter(k.Nodes[1], "network", "create", "red", "--subnet", "10.99.0.0/16")
	if err == nil || !strings.Contains(said, "operator") {
		t.Errorf("the agent of %s created a network, or does not say what is missing: %v: %s", k.Nodes[1].Name, err, said)
	}
}

func (k *installation) testNamespace(t *testing.T) {
	if said, err := k.vrouter(k.Nodes[0], "network", "create", "red", "--subnet", "10.99.0.0/16"); err != nil {
		t.Fatalf("create a network on the node of the store: %v: %s", err, said)
	}
	k.kubectl("", "create", "namespace", "red")
	k.kubectl("", "annotate", "namespace", "red", NetworkAnnotation+"=red")
	k.await("the default service account is there", func() bool { return len(k.lines("-n", "red", "get", "serviceaccount", "default", "-o", "name")) == 1 })
	k.kubectl(k.podsManifest(), "-n", "red", "apply", "-f", "-")
	k.await("both pods have addresses of the network", func() bool {
		ips := k.lines("-n", "red", "get", "pods", "-o", `jsonpath={range .items[*]}{.status.podIP}{"\n"}{end}`)
		return len(ips) == 2 && strings.HasPrefix(ips[0], "10.99.") && strings.HasPrefix(ips[1], "10.99.")
	})
	ports := k.kubectl("", "-n", Namespace, "exec", "daemonset/"+NodeName, "--", "vrouter", "port", "list", "--all", "--network", "red")
	if !strings.Contains(ports, "red/pod-1") || !strings.Contains(ports, "red/pod-2") {
		t.Errorf("the ports do not name the pods:\n%s", ports)
	}
	k.kubectl("", "delete", "namespace", "red", "--wait")
	if said, err := k.vrouter(k.Nodes[0], "network", "delete", "red"); err != nil {
		t.Errorf("delete the network: %v: %s", err, said)
	}
}

func (k *installation) testRestart(t *testing.T) {
	k.kubectl("", "-n", Namespace, "delete", "pods", "-l", "app="+NodeName, "--wait=false")
	for _, n := range k.Nodes {
		if _, err := os.Stat(n.Root + ConflistPath("/etc/cni/net.d")); err != nil {
			t.Errorf("the restart removed the configuration: %v", err)
		}
	}
	k.kubectl("", "-n", Namespace, "rollout", "status", "daemonset/"+NodeName, "--timeout=60s")
	for i, p := range k.pods() {
		k.ping(k.Nodes[i], k.pods()[1-i].Status.PodIP, p.Status.PodIP)
	}
}

// testOtherPlugin adds another plugin's configuration that sorts before vrouter's, and restarts the agents.
func (k *installation) testOtherPlugin(t *testing.T) {
	n := k.Nodes[0]
	text := must.Get(os.ReadFile(n.Root + ConflistPath("/etc/cni/net.d")))(t)
	const other = "/etc/cni/net.d/00-other.conflist"
	must.Succeed(t, os.WriteFile(n.Root+other, text, 0o600))
	defer os.Remove(n.Root + other)
	k.kubectl("", "-n", Namespace, "rollout", "restart", "daemonset/"+NodeName)
	k.await("an event names the file", func() bool {
		return strings.Contains(k.kubectl("", "describe", "node", n.Name), "the CNI configuration "+other+" comes before")
	})
	must.Equal(t, n.Name, k.kubectl("", "get", "events", "--field-selector=reason="+otherPlugin, "-o", "jsonpath={.items[*].involvedObject.name}"))
	k.kubectl("", "-n", Namespace, "rollout", "status", "daemonset/"+NodeName, "--timeout=60s")
}

// testNoPrograms sets a limit for which no kernel makes a table.
func (k *installation) testNoPrograms(t *testing.T) {
	k.kubectl("", "-n", Namespace, "patch", "configmap", NodeName, "-p", `{"data": {"node.yaml": "limits: {flows: 4294967295}"}}`)
	k.kubectl("", "-n", Namespace, "rollout", "restart", "daemonset/"+NodeName)
	k.await("an event of a node, and the last message of the agent's pod, name the table", func() bool {
		const want = "load the eBPF programs on Linux "
		events := k.kubectl("", "get", "events", "--field-selector=involvedObject.kind=Node,reason="+agentFailed, "-o", "jsonpath={.items[*].message}")
		pods := k.kubectl("", "-n", Namespace, "describe", "pods", "-l", "app="+NodeName)
		return strings.Contains(events, want) && strings.Contains(events, "map flows") && strings.Contains(pods, want)
	})
	for i, p := range k.pods() {
		k.ping(k.Nodes[i], k.pods()[1-i].Status.PodIP, p.Status.PodIP)
	}
	k.kubectl(k.manifest, "apply", "-f", "-")
	k.kubectl("", "-n", Namespace, "rollout", "restart", "daemonset/"+NodeName)
	k.kubectl("", "-n", Namespace, "rollout", "status", "daemonset/"+NodeName, "--timeout=90s")
}

func (k *installation) testCheckWithoutImage(t *testing.T) {
	const image = "registry.invalid/vrouter:none"
	out, err := k.Command(filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "vrouter"), "k8s", "check", "--image", image).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the image "+image+" cannot be pulled") {
		t.Errorf("%v: %s", err, out)
	}
}

// testApart cuts the two nodes off from each other. Both still reach the API server.
func (k *installation) testApart(t *testing.T) {
	isolate := func(mode string) {
		for i := range k.Nodes {
			k.IP(k.Master, fmt.Sprintf("link set port%d type bridge_slave isolated %s", i+1, mode))
		}
	}
	isolate("on")
	defer isolate("off")
	for i, n := range k.Nodes {
		k.await("the doctor of "+n.Name+" names the address of the other node", func() bool {
			said, _ := k.vrouter(n, "doctor")
			return strings.Contains(said, "test frames got replies from "+k.Nodes[1-i].Address)
		})
	}
	isolate("off")
	for i, p := range k.pods() {
		k.await("the nodes reach each other again", func() bool {
			_, err := k.OnNode(k.Nodes[i], "nsenter", "--net="+k.space(k.Nodes[i], p.Status.PodIP), "ping", "-c", "1", "-W", "1", k.pods()[1-i].Status.PodIP)
			return err == nil
		})
	}
}

// testPermission deletes the permissions, so that the pods cannot ask whether they are removed.
func (k *installation) testPermission(t *testing.T) {
	k.kubectl("", "delete", "clusterrole", NodeName)
	k.kubectl("", "-n", Namespace, "delete", "pods", "-l", "app="+NodeName, "--wait")
	k.await("the log names the permission", func() bool {
		said, err := k.Kubectl("", "-n", Namespace, "logs", "-l", "app="+NodeName)
		return err == nil && strings.Contains(said, `cannot get resource \"nodes\"`) && strings.Contains(said, "apply the output of `vrouter k8s manifest` again")
	})
	k.awaitConditions("True", agentNotReady)
	for i, p := range k.pods() {
		if _, err := os.Stat(k.Nodes[i].Root + ConflistPath("/etc/cni/net.d")); err != nil {
			t.Errorf("the pod removed the configuration: %v", err)
		}
		k.ping(k.Nodes[i], k.pods()[1-i].Status.PodIP, p.Status.PodIP)
	}
	k.kubectl(k.manifest, "apply", "-f", "-")
	k.kubectl("", "-n", Namespace, "rollout", "status", "daemonset/"+NodeName, "--timeout=60s")
	k.awaitConditions("False", agentReady)
}
