package k8s

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// serverAway is how long the API server does not run.
const serverAway = time.Minute

// A cluster of three nodes under faults. Two nodes keep traffic between their pods, of which no request may
// fail, and the third one is lost and installed again.
func TestAClusterUnderFaults(t *testing.T) {
	k := install(t, testcluster.Options{Nodes: 3, Subnets: true})
	before := k.inventory()
	k.Step("one apply makes the nodes ready", k.testApply)
	k.Await("the default service account is there", func() bool { return len(k.lines("get", "serviceaccount", "default", "-o", "name")) == 1 })
	one, two := k.Nodes[0], k.Nodes[1]
	first, firstService := k.echo(one, "first")
	second, secondService := k.echo(two, "second")
	flows := []*flow{
		k.flow(one, first, second, false), k.flow(two, second, first, true),
		k.flow(one, first, secondService, true), k.flow(two, second, firstService, false),
	}
	k.await("the nodes with pods have ports of their own", func() bool {
		ports, err := k.Kubectl("", "-n", Namespace, "exec", "daemonset/"+NodeName, "--", "vrouter", "port", "list", "--all")
		return err == nil && strings.Count(ports, "this node") == 2
	})
	had := k.possessions()

	under := func(name string, step func(t *testing.T)) { k.under(flows, name, step) }
	under("an upgrade to another image, and back", k.testUpgrade)
	under("an upgrade to an image that cannot be pulled, and back", k.testMissingImage)
	under("the agents are killed", k.testKilledAgents)
	under("containerd and kubelet are killed", func(t *testing.T) {
		for _, program := range []string{"containerd", "kubelet"} {
			for _, n := range k.Nodes {
				k.Restart(n, "KILL", program)
			}
			k.awaitNodes()
		}
		k.testNewPods(t)
	})
	under("the store is deleted", k.testStoreDeleted)
	under("the API server is away", k.testServerAway)
	under("50 pods are created and deleted, three times", k.testManyPods)
	under("a node is lost, deleted and installed again", k.testLostNode)

	k.Step("nothing is left over", func(t *testing.T) {
		var has []string
		for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(time.Second) {
			if has = k.possessions(); slices.Equal(has, had) || time.Now().After(deadline) {
				break
			}
		}
		for _, l := range has {
			if !slices.Contains(had, l) {
				t.Errorf("after the faults: %s", l)
			}
		}
		for _, l := range had {
			if !slices.Contains(has, l) {
				t.Errorf("before the faults: %s", l)
			}
		}
	})
	for _, f := range flows {
		f.stop(t)
	}
	k.Step("deletion leaves nothing", func(t *testing.T) { k.testDeletion(t, before) })
}

// rollout waits until all pods of vrouter are as the last applied manifest wants.
func (k *installation) rollout() {
	k.T.Helper()
	for _, object := range []string{"deployment/" + StoreName, "deployment/" + ControllerName, "daemonset/" + NodeName} {
		k.kubectl("", "-n", Namespace, "rollout", "status", object, "--timeout=90s")
	}
}

// testNewPods starts a pod on each node. The agents' pods are ready, so new pods must start.
func (k *installation) testNewPods(t *testing.T) {
	k.kubectl(k.podsManifest(), "apply", "-f", "-")
	for i := range k.Nodes {
		k.kubectl("", "wait", "--for=condition=Ready", fmt.Sprintf("pod/pod-%d", i+1), "--timeout=180s") // a kubelet can wait for a minute before it asks an API server again that was away
	}
	k.kubectl(k.podsManifest(), "delete", "--wait", "-f", "-")
}

func (k *installation) testUpgrade(t *testing.T) {
	other := strings.Split(k.image, ":")[0] + ":other"
	for _, n := range k.Nodes {
		if said, err := k.OnNode(n, "ctr", "-n", "k8s.io", "images", "tag", "docker.io/library/"+k.image, "docker.io/library/"+other); err != nil {
			t.Fatalf("name the image %s on %s: %v: %s", other, n.Name, err, said)
		}
	}
	for _, image := range []string{other, k.image} {
		k.kubectl(k.VrouterManifest(image), "apply", "-f", "-")
		k.rollout()
		k.testNewPods(t)
	}
}

// testMissingImage applies a manifest with an image that no node has. Then one agent does not run, and pods start on the
// other nodes.
func (k *installation) testMissingImage(t *testing.T) {
	k.kubectl(k.VrouterManifest("registry.invalid/vrouter:none"), "apply", "-f", "-")
	k.await("pods of an agent and of the store wait for the image", func() bool {
		waiting := k.lines("-n", Namespace, "get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.labels.app}:{.status.containerStatuses[0].state.waiting.reason}{"\n"}{end}`)
		return slices.Contains(waiting, NodeName+":ImagePullBackOff") && slices.Contains(waiting, StoreName+":ImagePullBackOff")
	})
	ready := k.lines("-n", Namespace, "get", "pods", "-l", "app="+NodeName, "-o", `jsonpath={range .items[?(@.status.containerStatuses[0].ready==true)]}{.spec.nodeName}{"\n"}{end}`)
	if len(ready) != len(k.Nodes)-1 {
		t.Fatalf("the agents of %v are ready, want those of all nodes but one", ready)
	}
	k.echo(k.Nodes[slices.IndexFunc(k.Nodes, func(n *testcluster.Node) bool { return n.Name == ready[0] })], "meanwhile")
	k.kubectl("", "delete", "pod/meanwhile", "service/meanwhile", "--wait")
	if said := k.kubectl("", "-n", Namespace, "describe", "pods", "-l", "app="+NodeName); !strings.Contains(said, "registry.invalid/vrouter:none") {
		t.Errorf("kubectl describe pods does not name the image:\n%s", said)
	}
	k.kubectl(k.manifest, "apply", "-f", "-")
	k.rollout()
	k.testNewPods(t)
}

func (k *installation) testKilledAgents(t *testing.T) {
	for _, n := range k.Nodes {
		k.Signal(n, "KILL", "vrouter", "k8s", "node")
	}
	for _, n := range k.Nodes {
		k.await("the agent of "+n.Name+" runs again", func() bool { return len(k.Processes(n, "vrouter", "k8s", "node")) == 1 })
	}
	k.rollout()
	k.testNewPods(t)
}

func (k *installation) testStoreDeleted(t *testing.T) {
	k.kubectl("", "-n", Namespace, "delete", "pods", "-l", "app="+StoreName, "--wait")
	k.rollout()
	k.testNewPods(t)
}

func (k *installation) testServerAway(t *testing.T) {
	must.Succeed(t, k.Server.Process.Kill())
	k.Await("the API server has ended", func() bool { return !k.Answers() })
	// An agent that starts waits for the API server.
	k.Signal(k.Nodes[1], "KILL", "vrouter", "k8s", "node")
	time.Sleep(serverAway)
	k.StartServer()
	k.Await("the API server answers", k.Answers)
	k.awaitNodes()
	k.rollout()
	k.testNewPods(t)
}

func (k *installation) testManyPods(t *testing.T) {
	for round := range 3 {
		manifest := fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 50
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec: {terminationGracePeriodSeconds: 1, containers: [{name: c, image: %q, imagePullPolicy: Never}]}
`, testcluster.SandboxImage)
		k.kubectl(manifest, "apply", "-f", "-")
		k.kubectl("", "rollout", "status", "deployment/many", "--timeout=240s")
		addresses := k.lines("get", "pods", "-l", "app=many", "-o", `jsonpath={range .items[*]}{.status.podIP}{"\n"}{end}`)
		slices.Sort(addresses)
		if n := len(slices.Compact(addresses)); n != 50 {
			t.Errorf("round %d: the 50 pods have %d addresses", round, n)
		}
		k.kubectl("", "delete", "deployment", "many")
		k.kubectl("", "wait", "--for=delete", "pods", "-l", "app=many", "--timeout=240s")
	}
}

// testLostNode kills the third node, which has the controller, deletes it, and starts it with empty disks.
func (k *installation) testLostNode(t *testing.T) {
	lost := k.Nodes[2]
	k.kubectl("", "cordon", k.Nodes[0].Name, k.Nodes[1].Name)
	k.kubectl("", "-n", Namespace, "delete", "pods", "-l", "app="+ControllerName, "--wait")
	k.kubectl("", "-n", Namespace, "rollout", "status", "deployment/"+ControllerName, "--timeout=60s")
	k.kubectl("", "uncordon", k.Nodes[0].Name, k.Nodes[1].Name)
	address, _ := k.echo(lost, "third")
	k.Kill(lost)
	k.kubectl("", "delete", "node", lost.Name)
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		said, err := k.Kubectl("", "-n", Namespace, "exec", "daemonset/"+NodeName, "--", "vrouter", "state")
		if err == nil && !strings.Contains(said, lost.Name) && !strings.Contains(said, address) {
			break
		}
		if time.Now().After(deadline) {
			k.logPods()
			t.Fatalf("the store still has node %s, or the address %s of its pod: %v:\n%s", lost.Name, address, err, said)
		}
	}
	k.Boot(lost)
	k.await("the node is in the cluster", func() bool { return len(k.lines("get", "nodes", "-o", "name")) == len(k.Nodes) })
	k.awaitNodes()
	k.rollout()
	address, _ = k.echo(lost, "fourth")
	first := k.kubectl("", "get", "pod", "first", "-o", "jsonpath={.status.podIP}")
	k.ping(k.Nodes[0], address, first)
	k.ping(lost, first, address)
	k.kubectl("", "delete", "pod/fourth", "service/third", "service/fourth", "--wait")
	k.kubectl("", "wait", "--for=delete", "pod/third", "--timeout=120s")
}

// possessions lists what the cluster and its nodes have of vrouter: files, devices, routes and rules, the
// store's objects, entries of tables, and the maps and programs of the agents.
func (k *installation) possessions() (all []string) {
	k.T.Helper()
	for i, has := range k.inventory() {
		for _, l := range has {
			all = append(all, k.Nodes[i].Name+": "+l)
		}
	}
	agents := k.lines("-n", Namespace, "get", "pods", "-l", "app="+NodeName, "-o", `jsonpath={range .items[*]}{.spec.nodeName} {.metadata.name}{"\n"}{end}`)
	for _, a := range agents {
		node, pod, _ := strings.Cut(a, " ")
		count := func(args ...string) {
			said, err := k.Kubectl("", append([]string{"-n", Namespace, "exec", pod, "--", "vrouter"}, args...)...)
			if err != nil {
				k.T.Fatalf("vrouter %s on %s: %v: %s", strings.Join(args, " "), node, err, said)
			}
			all = append(all, fmt.Sprintf("%s: vrouter %s: %d lines", node, strings.Join(args, " "), strings.Count(said, "\n")+1))
		}
		for _, table := range []string{"vif", "nh", "rt", "bridge", "mpls", "vxlan", "service"} {
			count(table, "list")
		}
		count("port", "list", "--all")
		count("state")
		n := k.Nodes[slices.IndexFunc(k.Nodes, func(n *testcluster.Node) bool { return n.Name == node })]
		for _, pid := range k.Processes(n, "vrouter", "k8s", "node") {
			kinds := map[string]int{}
			infos, _ := filepath.Glob(n.Root + "/proc/" + pid + "/fdinfo/*")
			for _, info := range infos {
				text, _ := os.ReadFile(info)                                       // it fails if the agent has closed the file
				for _, kind := range []string{"link_id:", "prog_id:", "map_id:"} { // a link names its program, too
					if strings.Contains(string(text), "\n"+kind) {
						kinds[kind]++
						break
					}
				}
			}
			all = append(all, fmt.Sprintf("%s: files of BPF objects of the agent: %v", node, kinds))
		}
	}
	slices.Sort(all)
	return all
}
