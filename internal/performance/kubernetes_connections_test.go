package main

import (
	"fmt"
	"strings"
	"testing"

	"windtunnel/internal/testcluster"
	"windtunnel/lab/sample"
)

// connections compares the rate of connections through a ClusterIP, in clusters with many other services: vrouter, and
// kube-proxy with iptables over the bridge plugin. The clusters take turns.
func (b *kubernetesBench) connections(t *testing.T) {
	rounds, services, args := 6, 5000, []string{"--trials", "2", "--duration", "1s"}
	if testing.Short() {
		rounds, services, args = 1, 100, []string{"--trials", "1", "--duration", "1s", "--gates", "warn"}
	}
	all := map[string]networkFigures{"vrouter": {}, "bridge": {}}
	for round := range rounds {
		for _, n := range podNetworks {
			if f, wanted := all[n.name]; wanted {
				b.visit(t, round, n, func(k *testcluster.Cluster) {
					makeServices(k, services)
					awaitServices(k, n.name, services)
					f.add(b.run(k, append(args, "--scenario", "host-connect/crr,service-connect/crr")...), round)
				})
			}
		}
	}
	among := fmt.Sprintf(" among %d services", services)
	for _, by := range []struct{ name, network string }{{"vrouter", "vrouter"}, {"kube-proxy (iptables)", "bridge"}} {
		f := all[by.network]
		service := f.of("service-connect/crr", sample.Transactions)
		b.absolute(t, "connections through a ClusterIP"+among+" by "+by.name, service, "1/s", 1)
		b.ratio(t, "the same over connections of the host network", service.over(f.of("host-connect/crr", sample.Transactions)), noTarget)
	}
	b.ratio(t, "connections through a ClusterIP"+among+": vrouter over kube-proxy", all["vrouter"].of("service-connect/crr", sample.Transactions).byRound(t).over(all["bridge"].of("service-connect/crr", sample.Transactions).byRound(t)), least(2))
}

// makeServices makes services with one endpoint each.
func makeServices(k *testcluster.Cluster, count int) {
	k.Create(count, func(i int) (string, map[string]any) {
		return "/api/v1/namespaces/default/services", map[string]any{"metadata": map[string]any{"name": fmt.Sprint("service-", i)}, "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}}
	})
	k.Create(count, func(i int) (string, map[string]any) {
		name := fmt.Sprint("service-", i)
		return "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]string{"kubernetes.io/service-name": name}}, "addressType": "IPv4",
			"ports":     []any{map[string]any{"name": "", "port": 80, "protocol": "TCP"}},
			"endpoints": []any{map[string]any{"addresses": []string{fmt.Sprintf("10.88.%d.%d", 100+i/250, 1+i%250)}}},
		}
	})
}

// awaitServices waits until the programs of both nodes have all services.
func awaitServices(k *testcluster.Cluster, network string, count int) {
	k.Await("kube-proxy has all services", func() bool {
		for _, n := range k.Nodes {
			rules, err := k.OnNode(n, "iptables", "-w", "-t", "nat", "-S", "KUBE-SERVICES")
			if err != nil || strings.Count(rules, "default/service-") < count {
				return false
			}
		}
		return true
	})
	if network != "vrouter" {
		return
	}
	k.Await("vrouter has all services", func() bool {
		pods, err := k.Kubectl("", "-n", "vrouter", "get", "pods", "-l", "app=vrouter-node", "-o", "name")
		if err != nil || len(strings.Fields(pods)) != len(k.Nodes) {
			return false
		}
		for pod := range strings.FieldsSeq(pods) {
			list, err := k.Kubectl("", "-n", "vrouter", "exec", pod, "--", "vrouter", "service", "list")
			if err != nil || strings.Count(list, "default/service-") < count {
				return false
			}
		}
		return true
	})
}
