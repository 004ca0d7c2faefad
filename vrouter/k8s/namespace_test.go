package k8s

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// TestAClusterNamespaceChoosesTheNetworkOfItsPods runs an agent and the CNI plugin with a real API
// server. The plugin's configuration has the network pods.
func TestAClusterNamespaceChoosesTheNetworkOfItsPods(t *testing.T) {
	k := &controlled{Cluster: testcluster.Start(t, testcluster.Options{ServerOnly: true})}
	ctx, end := context.WithTimeout(context.Background(), 2*time.Minute)
	defer end()
	program, socket := filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "vrouter"), k.Path("agent.sock")
	k.Write("node.yaml", fmt.Sprintf("{node: a, fabric: [br0], socket: %q, state_dir: %q, run_dir: %q, limits: {routes: 4096, flows: 4096}}", socket, k.Path("state"), k.Path("run")))
	agent := k.Command(program, "agent", "--config", k.Path("node.yaml"), "--kubeconfig", k.Path("kubeconfig"))
	agent.Stderr = t.Output()
	must.Succeed(t, agent.Start())
	t.Cleanup(func() {
		agent.Process.Signal(syscall.SIGTERM)
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent ends with %v after SIGTERM", err)
		}
		if out, err := k.Command(program, "remove", "--config", k.Path("node.yaml")).CombinedOutput(); err != nil {
			t.Errorf("remove the node: %v\n%s", err, out)
		}
	})
	client := api.Dial(socket)
	defer client.Close()
	k.Await("the agent answers", func() bool { _, err := client.Status(ctx); return err == nil })
	must.Succeed(t, client.PutNode(ctx, api.NodeRequest{Node: model.Node{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr(testcluster.MasterAddress)}}}))
	for i, name := range []string{"pods", "red"} {
		if _, err := client.AddNetwork(ctx, model.Network{Name: name, Subnets: []netip.Prefix{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88 + byte(i), 0, 0}), 16)}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"plain", "red", "wrong"} {
		k.kubectl("", "create", "namespace", name)
	}
	k.kubectl("", "annotate", "namespace", "red", NetworkAnnotation+"=red")
	k.kubectl("", "annotate", "namespace", "wrong", NetworkAnnotation+"=rad")
	verb := func(verb, namespace string, container int) string {
		cmd := k.Command(program)
		cmd.Env = append(cmd.Env, "CNI_COMMAND="+verb, fmt.Sprintf("CNI_CONTAINERID=c%d", container), fmt.Sprintf("CNI_IFNAME=pod%d", container), "CNI_PATH=/",
			"CNI_NETNS="+filepath.Join(netspace.Dir, k.Nodes[0].Namespace), "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE="+namespace+";K8S_POD_NAME=web;K8S_POD_UID=5c1b")
		cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "pods", "type": "vrouter", "network": "pods", "ranges": ["10.88.7.0/24"], "socket": %q}`, socket))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, t.Output()
		_ = cmd.Run() // out has the error
		return out.String()
	}
	for i, want := range []struct{ namespace, address, says string }{
		{"plain", "10.88.7.0/16", ""},
		{"red", "10.89.0.2/16", ""},
		{"wrong", "", `namespace \"wrong\" chooses the network \"rad\" for its pods, but there is no such network`},
		{"absent", "", `find the network of namespace \"absent\" of pod absent/web: namespaces \"absent\" not found`},
	} {
		var result struct{ IPs []struct{ Address string } }
		out := verb("ADD", want.namespace, i)
		must.Succeed(t, json.Unmarshal([]byte(out), &result))
		if want.says != "" && !strings.Contains(out, want.says) || want.says == "" && (len(result.IPs) != 1 || result.IPs[0].Address != want.address) {
			t.Errorf("ADD in namespace %s: %s, want the address %q, or the error %q", want.namespace, out, want.address, want.says)
		}
	}
	ports, err := client.Ports(ctx, api.PortFilter{Network: "red"})
	if err != nil || len(ports) != 1 || ports[0].Pod() != (model.Pod{Namespace: "red", Name: "web", UID: "5c1b"}) {
		t.Errorf("network red has the ports %+v, %v, want the port of pod red/web", ports, err)
	}
	// Pods of known namespaces start while the API server does not answer.
	_ = k.Server.Process.Kill()
	k.Await("the API server has ended", func() bool { return !k.Answers() })
	if out := verb("ADD", "red", 7); !strings.Contains(out, `"10.89.0.3/16"`) {
		t.Errorf("ADD without the API server: %s, want an address of network red", out)
	}
	for _, container := range []int{0, 1, 7} {
		must.Equal(t, "", verb("DEL", "red", container))
	}
	if ports, err := client.Ports(ctx, api.PortFilter{}); err != nil || slices.ContainsFunc(ports, func(p model.Port) bool { return p.Origin == model.CNI }) {
		t.Errorf("after DEL the ports are %+v, %v", ports, err)
	}
}

// Many pods can start at once on a node. With client-go's limit of 5 requests a second, reading the last namespaces
// would exceed answerTimeout, and then fail or return an old annotation.
func TestManyPodsAtOnceReadTheirNamespaces(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "red", "annotations": {%q: "red"}}}`, NetworkAnnotation)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}", server.URL), 0o600))
	cluster := must.Get(Connect(kubeconfig))(t)
	networkOf := NetworkOf(cluster)
	const pods = 100
	results := make(chan error, pods)
	for i := range pods {
		go func() {
			network, err := networkOf(t.Context(), fmt.Sprint("namespace-", i))
			if err == nil && network != "red" {
				err = fmt.Errorf("network %q, want red", network)
			}
			results <- err
		}()
	}
	var all []error
	for range pods {
		all = append(all, <-results)
	}
	must.Succeed(t, errors.Join(all...))
}
