package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/lab/report/model"
)

func TestMain(m *testing.M) {
	testcluster.RunNode()
	os.Exit(m.Run())
}

// Images that `make image` makes.
const (
	labImage     = "../../out/windtunnel.image.tar"
	vrouterImage = "../../out/vrouter.image.tar"
)

// runsFolder has a folder with the runs and reports of each test.
const runsFolder = "../../out/bench-kubernetes"

// figuresFolder has the figures, as ./internal/performance stores them.
const figuresFolder = "../../out/performance"

// podNetwork is a network of pods that the figures compare.
type podNetwork struct {
	name    string
	options testcluster.Options
	install func(k *testcluster.Cluster)
}

// podNetworks are vrouter, and the networks with which it is compared. kube-proxy carries the services of the
// latter.
var podNetworks = []podNetwork{
	{"vrouter", testcluster.Options{Subnets: true, Images: []string{labImage, vrouterImage}}, func(k *testcluster.Cluster) { k.InstallVrouter(vrouterImage) }},
	{"flannel", testcluster.Options{Subnets: true, Images: []string{labImage}, Programs: []string{"flanneld"}}, (*testcluster.Cluster).InstallFlannel},
	{"bridge", testcluster.Options{NodeRoutes: true, CNI: testcluster.Bridge, Images: []string{labImage}}, func(*testcluster.Cluster) {}},
}

// TestKubernetes measures the figures of pod networks, on clusters that it starts one after the other. It stores them
// for `go run ./internal/performance -render -write docs/performance.md`. With -short it only shows that each part works.
//
//	make bench-kubernetes                          # all
//	make bench-kubernetes PART=pods                # one of pods, connections, start
func TestKubernetes(t *testing.T) {
	testcluster.Require(t)
	folder := must.Get(filepath.Abs(filepath.Join(runsFolder, time.Now().Format("20060102-150405"))))(t)
	must.Succeed(t, os.MkdirAll(folder, 0o755))
	b := &kubernetesBench{folder: folder, session: session{
		ctx: t.Context(), program: filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "windtunnel"), store: figuresFolder, short: testing.Short(),
	}}
	if b.short {
		b.store += "-short"
	}
	must.Succeed(t, b.open())
	defer os.RemoveAll(b.scratch)
	for _, p := range []struct {
		name    string
		measure func(t *testing.T)
	}{{"pods", b.pods}, {"connections", b.connections}, {"start", b.start}} {
		t.Run(p.name, func(t *testing.T) {
			b.part, b.measured = "kubernetes-"+p.name, measurement{}
			b.begin()
			p.measure(t)
			must.Succeed(t, b.save())
			fmt.Printf("\n### %s\n\n%s", b.part, tableText(b.measured.table()))
		})
	}
}

// kubernetesBench measures in clusters.
type kubernetesBench struct {
	session
	folder string // has the runs
}

// visit starts a cluster with a network, waits until pods can run in it, and measures. If it fails, the other
// visits go on.
func (b *kubernetesBench) visit(t *testing.T, round int, n podNetwork, measure func(k *testcluster.Cluster)) {
	t.Helper()
	t.Run(fmt.Sprintf("%s-%d", n.name, round+1), func(t *testing.T) {
		k := testcluster.Start(t, n.options)
		n.install(k)
		k.Await("both nodes are ready, and have the lab's image", func() bool {
			ready, err := k.Kubectl("", "get", "nodes", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {.status.images[*].names[*]}{"\n"}{end}`)
			lines := strings.Split(ready, "\n")
			for _, l := range lines {
				if !strings.HasPrefix(l, "True ") || !strings.Contains(l, testcluster.Tags(t, labImage)[0]) {
					return false
				}
			}
			return err == nil && len(lines) == len(k.Nodes)
		})
		measure(k)
	})
}

// run runs scenarios of the suite k8s-cni in the cluster of a visit.
func (b *kubernetesBench) run(k *testcluster.Cluster, args ...string) *model.Report {
	t := k.T
	t.Helper()
	visit := filepath.Join(b.folder, strings.ReplaceAll(t.Name(), "/", "-"))
	args = append([]string{"run", "k8s-cni", "--testbed", "k8s", "--kubeconfig", k.Path("kubeconfig"), "--cpu-distance", "near", "--db", visit + ".db", "--out", visit}, args...)
	cmd := k.Command(b.program, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil { // scenarios with figures count
		k.LogNodes()
		t.Errorf("windtunnel %s: %v\n%s", strings.Join(args, " "), err, &out)
	}
	r := must.Get(newest(visit+".db", ""))(t)
	b.measured.runs = append(b.measured.runs, r)
	return r
}
