package k8s

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/lab/testbed/remote"
)

func TestMain(m *testing.M) {
	testcluster.RunNode()
	os.Exit(m.Run())
}

// productImage is the file of the image that `make image` makes. All pods of runs use it.
const productImage = "../../../out/windtunnel.image.tar"

// testCluster is a cluster for the tests of runs. The engines run in the master's namespace.
type testCluster struct {
	*testcluster.Cluster
	api *cluster
}

// startCluster starts a cluster for the test, and installs the network of pods, unless the options have
// it. It skips the test unless it was asked for.
func startCluster(t *testing.T, o testcluster.Options, install func(k *testcluster.Cluster)) *testCluster {
	t.Helper()
	k := &testCluster{Cluster: testcluster.Start(t, o)}
	k.api = &cluster{base: "https://" + k.API(), http: k.Client(), proxy: &remote.Process{}}
	if install != nil {
		install(k.Cluster)
	}
	k.awaitNodes()
	return k
}

func nodeName(i int) string { return fmt.Sprintf("wt-node-%d", i+1) }

// ask sends a request that must succeed.
func (k *testCluster) ask(method, path string, body any) {
	k.T.Helper()
	if err := k.api.ask(context.Background(), method, path, body, nil); err != nil {
		k.T.Fatalf("%s %s: %v", method, path, err)
	}
}

// awaitNodes waits until both nodes are ready and have the image of the runs.
func (k *testCluster) awaitNodes() {
	tags := testcluster.Tags(k.T, productImage)
	k.Await("both nodes are ready", func() bool {
		nodes, err := k.api.allNodes(context.Background())
		count := 0
		if err == nil {
			for _, n := range nodes {
				if usable(&n) == nil && !tainted(&n) && hasImage(&n, tags) {
					count++
				}
			}
		}
		return count == len(k.Nodes)
	})
}

// hasImage reports whether a node has an image with one of the tags.
func hasImage(n *nodeObject, tags []string) bool {
	for _, image := range n.Status.Images {
		for _, name := range image.Names {
			if slices.ContainsFunc(tags, func(tag string) bool { return strings.HasSuffix(name, "/"+tag) }) {
				return true
			}
		}
	}
	return false
}

// spaces lists the namespaces of runs.
func (k *testCluster) spaces() (names []string) {
	all := must.Get(list[namespace](context.Background(), k.api, namespacesPath+"?labelSelector="+runLabel))(k.T)
	for _, n := range all {
		names = append(names, n.Metadata.Name)
	}
	return names
}

// cordon makes a node unschedulable, or schedulable again.
func (k *testCluster) cordon(i int, on bool) {
	k.ask(http.MethodPatch, nodesPath+"/"+nodeName(i), map[string]any{"spec": map[string]any{"unschedulable": on}})
}

// pods lists the pods of a run's namespace.
func (k *testCluster) pods(namespace string) []podObject {
	all := must.Get(list[podObject](context.Background(), k.api, podsPath(namespace)))(k.T)
	return all
}
