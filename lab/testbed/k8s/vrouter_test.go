package k8s

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
	"windtunnel/lab/sample"
)

// vrouterImage is the file of vrouter's image that `make image` makes.
const vrouterImage = "../../../out/vrouter.image.tar"

// A cluster whose network vrouter is. Its nodes and its control plane are on one machine.
func TestAClusterWithVrouter(t *testing.T) {
	k := startCluster(t, testcluster.Options{Subnets: true, Images: []string{productImage, vrouterImage}}, func(k *testcluster.Cluster) { k.InstallVrouter(vrouterImage) })
	said, exit := k.start("kubeconfig", measure("--trials", "1", "--scenario", "cni/stream,service-connect/crr")...).wait(t)
	if exit != 0 {
		t.Fatalf("exit status %d, output:\n%s", exit, said)
	}
	t.Log(said)
	data := k.load()
	for _, n := range k.Nodes {
		if used := data.Run.Environment.Settings[n.Name+" vrouter encapsulation"]; used != "direct" {
			t.Errorf("%s uses the encapsulation %q, want direct, because the nodes are on one link", n.Name, used)
		}
	}
	for _, s := range data.Samples {
		if !s.OK() {
			t.Errorf("%s: %v", s.Scenario, s.Failure)
			continue
		}
		k.assertGroups(&s, "vrouter")
		if used := s.Metrics[sample.GroupCores("sender", sample.ControlPlane)] + s.Metrics[sample.GroupCores("receiver", sample.ControlPlane)]; used <= 0 {
			t.Errorf("%s: the control plane has no figure, and runs on the nodes' CPUs", s.Scenario)
		}
		for _, g := range append(s.Gates, s.Flags...) {
			if strings.HasPrefix(g.Culprit, "kube") || g.Culprit == "etcd" {
				t.Errorf("%s: %s", s.Scenario, g.Message)
			}
		}
	}
	must.Equal(t, sample.SharedMachine, data.Run.Environment.NodesShare)
}
