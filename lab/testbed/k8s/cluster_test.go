package k8s

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/testcluster"
	"windtunnel/lab/testbed/remote"
)

func TestMain(m *testing.M) {
	testcluster.RunNode()
	os.Exit(m.Run())
}

// productImage is the file of the image that `make image` makes. All pods of runs use it.
const productImage = "../../../out/windtunnel.image.tar"

// testCluster is a cluster with the CNI plugin bridge. The engines run in the master's namespace.
type testCluster struct {
	*testcluster.Cluster
	api *cluster
}

// startCluster starts a cluster for the test. It skips the test unless it was asked for.
func startCluster(t *testing.T) *testCluster {
	t.Helper()
	k := &testCluster{Cluster: testcluster.Start(t, testcluster.Options{
		Programs: []string{"flanneld"}, Images: []string{productImage}, NodeRoutes: true,
		CNI: func(node int) string { return fmt.Sprintf(cniConfig, node) },
	})}
	authority, err := os.ReadFile(k.Path("ca.crt"))
	must(t, err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	transport := &http.Transport{DialContext: k.Dial, TLSClientConfig: &tls.Config{RootCAs: authorities}}
	k.api = &cluster{base: "https://" + testcluster.MasterAddress + ":6443", http: &http.Client{Transport: asAdmin{transport}}, proxy: &remote.Process{}}
	k.awaitNodes()
	return k
}

const cniConfig = `{"cniVersion": "1.0.0", "name": "test-network", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.88.%d.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

func nodeName(i int) string { return fmt.Sprintf("wt-node-%d", i+1) }

// asAdmin sends requests as the administrator.
type asAdmin struct{ http.RoundTripper }

func (a asAdmin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+testcluster.AdminToken)
	return a.RoundTripper.RoundTrip(r)
}

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
func hasImage(n *node, tags []string) bool {
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
	all, err := list[namespace](context.Background(), k.api, namespacesPath+"?labelSelector="+runLabel)
	must(k.T, err)
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
	all, err := list[podObject](context.Background(), k.api, podsPath(namespace))
	must(k.T, err)
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
