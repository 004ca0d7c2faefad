package k8s

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/lab/meter"
	"windtunnel/lab/report"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// engine is a windtunnel program that runs in the master's namespace.
type engine struct {
	*exec.Cmd
	out bytes.Buffer
}

// start starts the windtunnel program as a user of the cluster.
func (k *testCluster) start(user string, args ...string) *engine {
	t := k.T
	t.Helper()
	program := must.Get(filepath.Abs("../../../bin/windtunnel"))(t)
	e := &engine{Cmd: k.Command(program, append(args, "--kubeconfig", user)...)} // in k.Dir
	e.Stdout, e.Stderr = &e.out, &e.out
	e.Env = append(e.Env, k.environ()...)
	must.Succeed(t, e.Start())
	return e
}

// environ returns the environment of an engine. A killed engine leaves a directory in TMPDIR.
func (k *testCluster) environ() []string {
	return []string{"XDG_DATA_HOME=" + k.Path("data"), "TMPDIR=" + k.Dir, "KUBECONFIG="}
}

// wait returns the output and the exit status.
func (e *engine) wait(t *testing.T) (string, int) {
	t.Helper()
	err := e.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return e.out.String(), e.ProcessState.ExitCode()
}

// measure returns the arguments of a run. It uses the image of `make image`, which the nodes
// have. All trials count, at any distance of the CPUs.
func measure(args ...string) []string {
	return append([]string{"run", "k8s-cni", "--testbed", "k8s", "--gates", "warn", "--cpu-distance", "any"}, args...)
}

// resume continues the last run from another directory. A resumed run keeps its kubeconfig, so
// it takes no flag for it.
func (k *testCluster) resume() *engine {
	t := k.T
	program := must.Get(filepath.Abs("../../../bin/windtunnel"))(t)
	e := &engine{Cmd: k.Command(program, "run", "--resume", "latest")}
	e.Dir, e.Stdout, e.Stderr = t.TempDir(), &e.out, &e.out
	e.Env = append(e.Env, k.environ()...)
	must.Succeed(t, e.Start())
	return e
}

// load returns the last run.
func (k *testCluster) load() *results.RunData {
	k.T.Helper()
	store := must.Get(results.Open(k.Path("data/windtunnel/windtunnel.db"), results.Options{ReadOnly: true}))(k.T)
	defer store.Close()
	data := must.Get(store.Load(results.Latest))(k.T)
	return data
}

// awaitTrial waits until the agents of a run's pods run tools. It returns the run's
// namespace.
func (k *testCluster) awaitTrial() (namespace string) {
	k.T.Helper()
	k.Await("a trial runs", func() bool {
		for _, name := range k.spaces() {
			namespace = name
		}
		return namespace != "" && k.tools() > 0
	})
	return namespace
}

// tools counts the running traffic programs on the nodes.
func (k *testCluster) tools() (n int) {
	for _, node := range k.Nodes {
		all := must.Get(filepath.Glob(node.Root + "/proc/[0-9]*/cmdline"))(k.T)
		for _, path := range all {
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), "windtunnel\x00traffic\x00") {
				n++
			}
		}
	}
	return n
}

// assertNothingLeft asserts that the cluster has no namespace of a run and the nodes no
// traffic program.
func (k *testCluster) assertNothingLeft() {
	k.T.Helper()
	if left := k.spaces(); len(left) > 0 {
		k.T.Errorf("namespaces left in the cluster: %v", left)
	}
	if n := k.tools(); n > 0 {
		k.T.Errorf("%d traffic programs still run", n)
	}
}

func (k *testCluster) grant(user string) {
	if said, err := k.Kubectl(Manifest(user), "apply", "-f", "-"); err != nil {
		k.T.Fatalf("apply the manifest: %v: %s", err, said)
	}
}

// A real cluster of two nodes, whose programs the test builds: etcd, the API server, the
// controllers, and on each node containerd, kubelet, kube-proxy and the CNI plugin bridge, at
// the end flannel.
func TestACluster(t *testing.T) {
	k := startCluster(t, testcluster.Options{Programs: []string{"flanneld"}, Images: []string{productImage}, NodeRoutes: true, CNI: testcluster.Bridge}, nil)
	step := func(name string, f func(t *testing.T)) {
		t.Helper()
		k.Step(name, func(t *testing.T) {
			f(t)
			k.assertNothingLeft()
		})
	}
	step("a user without permissions is told what to do", func(t *testing.T) {
		said, exit := k.start("limited", measure()...).wait(t)
		if exit != 1 || !strings.Contains(said, "may not create namespaces") || !strings.Contains(said, manifestCommand) {
			t.Errorf("exit status %d, output:\n%s", exit, said)
		}
	})
	k.grant("limited")
	step("the suite runs with the permissions of the manifest", k.testSuite)
	step("a matrix measures between all pairs of nodes", k.testMatrix)
	step("what cannot run says why", k.testRefusals)
	step("a quota is named", k.testQuota)
	step("a second run on the same nodes is refused", k.testBusy)
	step("an interrupted run removes everything", func(t *testing.T) {
		e := k.start("limited", measure("--trials", "3", "--scenario", "cni/stream")...)
		k.awaitTrial()
		must.Succeed(t, e.Process.Signal(syscall.SIGINT))
		if said, exit := e.wait(t); exit != 130 {
			t.Errorf("exit status %d, output:\n%s", exit, said)
		}
	})
	step("a killed run is cleaned up and resumed", k.testKilled)
	step("a deleted pod fails its trial only", func(t *testing.T) {
		k.testFault("is gone|was deleted", func(namespace string) {
			k.ask(http.MethodDelete, podsPath(namespace)+"/pod-2-1", nil)
		})
	})
	step("an evicted pod fails its trial only", func(t *testing.T) {
		k.testFault("is gone|was deleted", func(namespace string) {
			eviction := map[string]any{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata{Name: "pod-2-1", Namespace: namespace}}
			k.ask(http.MethodPost, podsPath(namespace)+"/pod-2-1/eviction", eviction)
		})
	})
	step("an API server that restarts fails its trial only", func(t *testing.T) {
		if ws, spdy := k.Execs("get"), k.Execs("create"); ws == 0 || spdy > 0 {
			t.Errorf("%d agents were reached by WebSocket and %d by SPDY, want all by WebSocket", ws, spdy)
		}
		k.testFault("agent", func(string) {
			must.Succeed(t, k.Server.Process.Kill())
			_ = k.Server.Wait()
			time.Sleep(2 * time.Second)
			k.StartServer("--feature-gates", "TranslateStreamCloseWebsocketRequests=false") // the next trials use SPDY
			k.Await("the API server answers again", k.Answers)
		})
	})
	if k.Execs("create") == 0 {
		t.Error("no agent was reached by SPDY after the API server was started without WebSocket")
	}
	step("a drained node fails trials until it is uncordoned, and the run is resumed", k.testDrained)
	step("flannel carries the packets of pods", k.testFlannel)
}

// overhead is the maximum time of a run besides the measuring: pods, survey, set-up of the
// trials, report and removal.
const overhead = time.Minute

// testSuite runs every scenario of the suite.
func (k *testCluster) testSuite(t *testing.T) {
	begun := time.Now()
	said, exit := k.start("limited", measure("--short", "--trials", "1")...).wait(t)
	took := time.Since(begun)
	if exit != 0 {
		t.Fatalf("exit status %d, output:\n%s", exit, said)
	}
	t.Log(said)
	data := k.load()
	var measuring time.Duration
	for _, s := range data.Samples { // with those that were repeated
		at := slices.IndexFunc(data.Plan.Scenarios, func(sc suite.Scenario) bool { return sc.ID == s.Scenario })
		timing := data.Plan.Scenarios[at].Timing
		measuring += timing.Warmup + timing.Duration + timing.Cooldown
	}
	t.Logf("the run took %v, of which %v were measuring (%d trials)", took, measuring, len(data.Samples))
	if took-measuring > overhead {
		t.Errorf("the run took %v besides %v of measuring, want %v at most", took-measuring, measuring, overhead)
	}
	seen := map[string]bool{}
	for _, s := range data.Samples {
		if !s.OK() {
			t.Errorf("%s: %v", s.Scenario, s.Failure)
			continue
		}
		seen[s.Scenario] = true
		for _, m := range []sample.Metric{sample.SenderCores, sample.SenderToolCores} {
			if used := s.Metrics[m]; used <= 0 || used > 1.05 {
				t.Errorf("%s: %s is %.3f on a node with one CPU", s.Scenario, m, used)
			}
		}
		k.assertGroups(&s, "kube-proxy", meter.OtherPods)
	}
	if want := len(data.Plan.Scenarios); len(seen) != want || want != 18 {
		t.Errorf("%d of %d scenarios have figures, want 18: %v", len(seen), want, data.Run.Skipped)
	}
	env := data.Run.Environment
	for name, want := range map[string]string{
		nodeName(0) + " CNI": "test-network: bridge", nodeName(1) + " kube-proxy": "iptables", nodeName(0) + " kubelet": testcluster.KubernetesVersion,
		nodeName(0) + " eth0 MTU": "1500", nodeName(0) + " pod-1-1 eth0 kind": "veth",
	} {
		if got := env.Settings[name]; !strings.HasPrefix(got, want) {
			t.Errorf("the environment says of %s: %q, want %q", name, got, want)
		}
	}
	if at := data.Run.Options.Cluster; at.Kubeconfig != k.Path("limited") || at.Context != "test" {
		t.Errorf("the record names the cluster %+v", at)
	}
	if env.NodeCPUs[nodeName(0)] != "[0]" || env.NodeCPUs[nodeName(1)] != "[1]" {
		t.Errorf("CPUs of the nodes: %v", env.NodeCPUs)
	}
}

// assertGroups asserts that a sample has the CPU of these control groups on the sender's node,
// and that of the run's pods between the CPU of the tools and that of the whole node. The
// kernel charges softirqs on top of the tools to the pods, too.
func (k *testCluster) assertGroups(s *sample.Sample, names ...string) {
	t := k.T
	t.Helper()
	for _, name := range names {
		if used, ok := s.Metrics[sample.GroupCores("sender", name)]; !ok || used > 0.2 {
			t.Errorf("%s: %s used %.4f cores (known %t), want a small part", s.Scenario, name, used, ok)
		}
	}
	own, tools, node := s.Metrics[sample.GroupCores("sender", meter.OwnPods)], s.Metrics[sample.SenderToolCores], s.Metrics[sample.SenderCores]
	if own < 0.95*tools || own > 1.05*node+0.02 {
		t.Errorf("%s: the run's pods used %.3f cores, want between the tools' %.3f and the node's %.3f", s.Scenario, own, tools, node)
	}
}

// testMatrix measures in both directions, with the service of each node.
func (k *testCluster) testMatrix(t *testing.T) {
	args := []string{"matrix", "k8s-cni", "--testbed", "k8s", "--gates", "warn", "--pairs", "all", "--scenario", "host/rr,cni/stream,service/stream,cni-colocated/rr", "--trials", "1", "--duration", "1s"}
	said, exit := k.start("limited", args...).wait(t)
	if exit != 0 {
		t.Fatalf("exit status %d, output:\n%s", exit, said)
	}
	t.Log(said)
	data := k.load()
	seen := map[string]bool{}
	for _, s := range data.Samples {
		seen[s.Scenario] = seen[s.Scenario] || s.OK()
	}
	for _, scenario := range []string{"host/rr", "cni/stream", "service/stream"} {
		for i := range 2 {
			pair := suite.HostPair{From: nodeName(i), To: nodeName(1 - i)}
			if id := suite.PairID(scenario, pair); !seen[id] {
				t.Errorf("%s has no figures", id)
			}
		}
	}
	if len(seen) != 6 || !strings.Contains(data.Run.Skipped["cni-colocated/rr"], "does not run between hosts") {
		t.Errorf("figures of %v, skipped %v", seen, data.Run.Skipped)
	}
	if r := report.Build(data.Run, data.Plan, data.Samples); len(r.HostMatrices) != 4 {
		t.Errorf("the report has %d matrices, want one for each scenario", len(r.HostMatrices))
	}
}

// testQuota makes a quota in the run's namespace before the run can make its pods: without
// the controllers the namespace has no service account, which pods need.
func (k *testCluster) testQuota(t *testing.T) {
	must.Succeed(t, k.Controllers.Process.Signal(syscall.SIGSTOP))
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			must.Succeed(t, k.Controllers.Process.Signal(syscall.SIGCONT))
		}
	}
	defer resume()
	e := k.start("limited", measure("--trials", "1", "--scenario", "cni/rr")...)
	k.Await("the run makes its namespace", func() bool { return len(k.spaces()) == 1 })
	quota := map[string]any{"metadata": metadata{Name: "small"}, "spec": map[string]any{"hard": map[string]string{"pods": "1"}}}
	k.ask(http.MethodPost, namespacesPath+"/"+k.spaces()[0]+"/resourcequotas", quota)
	resume()
	said, exit := e.wait(t)
	if exit != 1 || !strings.Contains(said, "a quota of the cluster forbids it") || !strings.Contains(said, "exceeded quota: small") || !strings.Contains(said, "raise the quota of new namespaces") {
		t.Errorf("exit status %d, output:\n%s", exit, said)
	}
}

// testBusy starts a run while another one measures on the same nodes.
func (k *testCluster) testBusy(t *testing.T) {
	e := k.start("limited", measure("--trials", "1", "--scenario", "cni/stream", "--duration", "8s")...)
	k.awaitTrial()
	said, exit := k.start("limited", measure("--trials", "1", "--scenario", "cni/rr")...).wait(t)
	if exit != 1 || !strings.Contains(said, "another measurement runs on node "+nodeName(0)) {
		t.Errorf("the second run: exit status %d, output:\n%s", exit, said)
	}
	if said, exit := e.wait(t); exit != 0 {
		t.Errorf("the first run: exit status %d, output:\n%s", exit, said)
	}
}

func (k *testCluster) testRefusals(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no image", []string{"--image", "wt.test/absent:1"}, "its image wt.test/absent:1 cannot be pulled"},
		{"no such node", []string{"--nodes", "x,y"}, `the cluster has no node "x"; its nodes: ` + nodeName(0) + ", " + nodeName(1)},
		{"one node", []string{"--nodes", nodeName(0)}, "the plan needs 2 nodes, and --nodes has 1"},
	} {
		said, exit := k.start("limited", measure(append(c.args, "--trials", "1", "--scenario", "host/rr")...)...).wait(t)
		if exit != 1 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit status %d, want 1 and %q; output:\n%s", c.name, exit, c.want, said)
		}
	}
	k.cordon(1, true)
	defer k.cordon(1, false)
	said, exit := k.start("limited", measure("--trials", "1", "--scenario", "host/rr")...).wait(t)
	if exit != 1 || !strings.Contains(said, "kubectl uncordon "+nodeName(1)) {
		t.Errorf("a cordoned node: exit status %d, output:\n%s", exit, said)
	}
}

func (k *testCluster) testKilled(t *testing.T) {
	k.kill("--trials", "2", "--scenario", "cni/stream,cni/rr")
	said, exit := k.start("limited", "lab", "clean", "--testbed", "k8s").wait(t)
	if exit != 0 || !strings.Contains(said, "removed 1 namespace of ended runs") {
		t.Errorf("lab clean: exit status %d, output:\n%s", exit, said)
	}
	k.assertNothingLeft()
	if said, exit := k.resume().wait(t); exit != 0 {
		t.Errorf("resume: exit status %d, output:\n%s", exit, said)
	}
	if data := k.load(); data.Run.Status != sample.Complete || len(data.Samples) < 4 {
		t.Errorf("the resumed run is %s with %d samples, want 4", data.Run.Status, len(data.Samples))
	}
	k.kill("--trials", "1", "--scenario", "cni/stream")
	said, exit = k.start("limited", measure("--trials", "1", "--scenario", "host/rr")...).wait(t)
	if exit != 0 || !strings.Contains(said, "removed 1 namespace of ended runs from the cluster") {
		t.Errorf("the next run: exit status %d, output:\n%s", exit, said)
	}
	k.assertNothingLeft()
	k.testOwner(k.kill("--trials", "1", "--scenario", "cni/stream"))
}

// kill kills a run during a trial. It returns the namespace that the run leaves.
func (k *testCluster) kill(args ...string) (namespace string) {
	t := k.T
	t.Helper()
	e := k.start("limited", measure(args...)...)
	k.awaitTrial()
	must.Succeed(t, e.Process.Kill())
	e.wait(t)
	k.Await("the tools end on the nodes", func() bool { return k.tools() == 0 })
	left := k.spaces()
	if len(left) != 1 {
		t.Fatalf("the killed run has the namespaces %v, want one", left)
	}
	return left[0]
}

// testOwner deletes the lease of the killed run, which owns all other objects.
func (k *testCluster) testOwner(namespace string) {
	for _, p := range k.pods(namespace) {
		if p.Spec.ActiveDeadlineSeconds == 0 {
			k.T.Errorf("pod %s has no end", p.Metadata.Name)
		}
	}
	k.ask(http.MethodDelete, leasesPath(namespace)+"/"+leaseName, nil)
	k.Await("the cluster deletes the pods of the deleted lease", func() bool { return len(k.pods(namespace)) == 0 })
	k.ask(http.MethodDelete, namespacesPath+"/"+namespace, nil)
	k.Await("the namespace is deleted", func() bool { return len(k.spaces()) == 0 })
}

// testFault runs trials, and causes a fault in the first. The failure's message has one of
// the words. The run then goes on.
func (k *testCluster) testFault(words string, fault func(namespace string)) {
	t := k.T
	t.Helper()
	e := k.start("limited", measure("--trials", "2", "--scenario", "cni/stream", "--duration", "4s")...)
	fault(k.awaitTrial())
	said, exit := e.wait(t)
	if exit != 0 {
		t.Fatalf("exit status %d, output:\n%s", exit, said)
	}
	failed, counted := 0, 0
	for _, s := range k.load().Samples {
		if s.OK() {
			counted++
			continue
		}
		failed++
		known := false
		for _, w := range strings.Split(words, "|") {
			known = known || strings.Contains(s.Failure.Message, w)
		}
		if s.Failure.Kind != sample.AgentLost && s.Failure.Kind != sample.SetupFailed || !known {
			t.Errorf("the trial failed with %s: %s; want one of %q", s.Failure.Kind, s.Failure.Message, words)
		}
		t.Logf("%s: %s", s.Failure.Kind, s.Failure.Message)
	}
	if failed == 0 || counted < 2 {
		t.Errorf("%d trials failed and %d succeeded, want at least 1 and at least 2; output:\n%s", failed, counted, said)
	}
}

// testDrained cordons a node and deletes its pods, as `kubectl drain` does.
func (k *testCluster) testDrained(t *testing.T) {
	e := k.start("limited", measure("--trials", "2", "--scenario", "cni/stream", "--duration", "3s")...)
	namespace := k.awaitTrial()
	k.cordon(1, true)
	for _, p := range k.pods(namespace) {
		if p.Spec.NodeName == nodeName(1) {
			k.ask(http.MethodDelete, podsPath(namespace)+"/"+p.Metadata.Name, nil)
		}
	}
	said, exit := e.wait(t)
	k.cordon(1, false)
	drained := 0
	for _, s := range k.load().Samples {
		if !s.OK() && strings.Contains(s.Failure.Message, "kubectl uncordon "+nodeName(1)) {
			drained++
		}
	}
	if exit == 0 || drained == 0 {
		t.Errorf("exit status %d, %d trials say how to uncordon the node; output:\n%s", exit, drained, said)
	}
	if said, exit := k.resume().wait(t); exit != 0 {
		t.Errorf("resume: exit status %d, output:\n%s", exit, said)
	}
}
