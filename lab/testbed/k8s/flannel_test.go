package k8s

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/lab/meter"
	"windtunnel/lab/report"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
)

// startFlannel replaces the CNI plugin bridge by flannel with VXLAN.
func (k *testCluster) startFlannel() {
	k.T.Helper()
	for i, n := range k.Nodes {
		k.ask(http.MethodPatch, nodesPath+"/"+nodeName(i), json.RawMessage(fmt.Sprintf(`{"spec": {"podCIDR": "10.88.%[1]d.0/24", "podCIDRs": ["10.88.%[1]d.0/24"]}}`, i)))
		k.IP(n.Namespace, "link delete cni0")
		k.IP(n.Namespace, fmt.Sprintf("route delete 10.88.%d.0/24", 1-i))
	}
	k.InstallFlannel()
}

// testFlannel runs on flannel, and asserts that VXLAN carried the packets.
func (k *testCluster) testFlannel(t *testing.T) {
	k.startFlannel()
	said, exit := k.start("limited", measure("--trials", "1", "--scenario", "host/stream,cni/stream,cni/rr,cni-colocated/stream,service/stream")...).wait(t)
	if exit != 0 {
		for _, p := range k.pods(testcluster.FlannelNamespace) {
			t.Logf("pod %s: %+v", p.Metadata.Name, p.Status)
		}
		k.LogNodes()
		t.Fatalf("exit status %d, output:\n%s", exit, said)
	}
	t.Log(said)
	data := k.load()
	throughput := map[string]float64{}
	for _, s := range data.Samples {
		if !s.OK() {
			t.Errorf("%s: %v", s.Scenario, s.Failure)
			continue
		}
		throughput[s.Scenario] = s.Metrics[sample.Throughput]
		k.assertGroups(&s, "flannel", "kube-proxy", meter.OtherPods)
	}
	if len(throughput) != 5 || throughput["cni/stream"] <= 0 {
		t.Errorf("figures of %v, want 5 scenarios", throughput)
	}
	settings := data.Run.Environment.Settings
	for name, want := range map[string]string{"CNI": testcluster.FlannelNetwork + ": flannel", "network programs": testcluster.SandboxImage, "pod-1-1 eth0 MTU": "1450"} {
		if got := settings[nodeName(0)+" "+name]; got != want {
			t.Errorf("the environment says of %s: %q, want %q", name, got, want)
		}
	}
	node := must.Get(space.Open(k.Nodes[0].Namespace))(t)
	defer node.Close()
	tunnel := must.Get(node.Link("flannel.1"))(t)
	_, vxlan := tunnel.(*netlink.Vxlan)
	carried := float64(tunnel.Attrs().Statistics.TxBytes)
	if least := throughput["cni/stream"] / 8; !vxlan || carried < least {
		t.Errorf("the tunnel (VXLAN %t) carried %.0f bytes, want at least those of a second, %.0f", vxlan, carried, least)
	}
	var columns []string
	for _, x := range report.Matrices(report.Build(data.Run, data.Plan, data.Samples)) {
		for _, c := range x.Tables[0].Columns {
			columns = append(columns, c.Name)
		}
	}
	for _, name := range []string{"flannel at the sender", "other pods at the receiver"} {
		if !slices.Contains(columns, name) {
			t.Errorf("the report has the columns %q, want %q", columns, name)
		}
	}
}
