package k8s

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/model"
)

// testPolicies applies NetworkPolicies to the namespaces shop and office, one after another.
func (k *installation) testPolicies(t *testing.T) {
	for _, namespace := range []string{"shop", "office"} {
		k.kubectl("", "create", "namespace", namespace)
		k.await("the service account of "+namespace+" is there", func() bool {
			return len(k.lines("-n", namespace, "get", "serviceaccount", "default", "-o", "name")) == 1
		})
	}
	var pods strings.Builder
	for name, on := range map[string]int{"shop/server": 0, "shop/client": 1, "office/guest": 1} {
		namespace, pod, _ := strings.Cut(name, "/")
		fmt.Fprintf(&pods, `apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: %s, labels: {app: %[1]s}}
spec:
  nodeName: %[3]s
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: %q, args: [k8s, probe], ports: [{name: web, containerPort: %s}], readinessProbe: {tcpSocket: {port: web}, periodSeconds: 1, failureThreshold: 1}}
---
`, pod, namespace, k.Nodes[on].Name, k.image, checkPort)
	}
	k.kubectl(pods.String(), "apply", "-f", "-")
	ip := map[string]string{}
	for _, name := range []string{"shop/server", "shop/client", "office/guest"} {
		namespace, pod, _ := strings.Cut(name, "/")
		k.await(name+" is ready", func() bool { return k.isReady(namespace, pod) })
		ip[name] = k.kubectl("", "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.podIP}")
	}
	// flows awaits that exactly the flows in want can be opened.
	flows := func(when string, want string) {
		t.Helper()
		said := ""
		defer func() {
			if t.Failed() {
				t.Logf("%s: flows %s, want %s", when, said, want)
			}
		}()
		k.await(when, func() bool {
			var open []string
			for _, flow := range [][2]string{{"shop/client", "shop/server"}, {"shop/client", "office/guest"}, {"office/guest", "shop/server"}} {
				namespace, pod, _ := strings.Cut(flow[0], "/")
				target := net.JoinHostPort(ip[flow[1]], checkPort)
				var errs map[string]string
				out, err := k.Kubectl("", "-n", namespace, "exec", pod, "--", "vrouter", "k8s", "probe", target)
				if err != nil || json.Unmarshal([]byte(out), &errs) != nil {
					said = out
					return false
				}
				if text, has := errs[target]; has && text == "" {
					open = append(open, flow[0]+">"+flow[1])
				}
			}
			said = strings.Join(open, " ")
			return said == want
		})
	}
	const cs, cg, gs = "shop/client>shop/server", "shop/client>office/guest", "office/guest>shop/server"
	apply := func(name, spec string) {
		k.kubectl(fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s, namespace: shop}\nspec: %s\n", name, spec), "apply", "-f", "-")
	}
	flows("without policies all pods reach each other", cs+" "+cg+" "+gs)
	apply("closed", "{podSelector: {}, policyTypes: [Ingress, Egress]}")
	flows("a policy closes all pods of its namespace", "")
	k.testTrace(t, k.Nodes[1], "shop/client", ip["shop/server"], "port %s, NetworkPolicy shop/closed does not allow it")
	k.testTrace(t, k.Nodes[1], "office/guest", ip["shop/server"], "NetworkPolicy shop/closed does not allow it), unless it answers a flow of")
	apply("clients", "{podSelector: {matchLabels: {app: server}}, ingress: [{from: [{podSelector: {matchLabels: {app: client}}}], ports: [{port: web}]}]}")
	guest, network := netip.MustParseAddr(ip["office/guest"]), testcluster.PodNetwork
	if guest.Is6() {
		network = testcluster.PodNetwork6
	}
	apply("outside", fmt.Sprintf("{podSelector: {matchLabels: {app: client}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: %q, except: [\"%v/%d\"]}}]}]}", network, guest, guest.BitLen()))
	flows("labels and a named port allow a flow to the server, and a block without an exception one from the client", cs)
	apply("offices", "{podSelector: {matchLabels: {app: server}}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: office}}}]}]}")
	flows("a namespace allows flows", cs+" "+gs)
	for _, pod := range []string{"server", "client"} {
		if !k.isReady("shop", pod) {
			t.Errorf("the node cannot probe %s", pod)
		}
	}
	apply("wrong", "{podSelector: {matchLabels: {app: server}}, ingress: [{ports: [{port: nameless}]}]}")
	k.await("an event of the policy names the port that no pod has", func() bool {
		said, err := k.Kubectl("", "-n", "shop", "get", "events", "--field-selector=reason="+withoutEffect+",involvedObject.kind=NetworkPolicy,involvedObject.name=wrong")
		return err == nil && strings.Contains(said, "nameless")
	})
	k.kubectl("", "-n", "shop", "delete", "networkpolicies", "--all")
	flows("without policies all pods reach each other again", cs+" "+cg+" "+gs)
	k.kubectl("", "delete", "namespace", "shop", "office", "--wait")
}

// testTrace traces a packet of a pod. In want, %s is the name of the pod's port.
func (k *installation) testTrace(t *testing.T, n *testcluster.Node, pod, to, want string) {
	var ports []model.Port
	k.await("the agent lists its ports", func() bool { // kubectl loses the output if its connection fails
		said, err := k.vrouter(n, "port", "list", "-o", "json")
		return err == nil && json.Unmarshal([]byte(said), &ports) == nil
	})
	i := slices.IndexFunc(ports, func(p model.Port) bool { return p.Pod().String() == pod })
	if i < 0 {
		t.Fatalf("%s has no port of the pod %s: %+v", n.Name, pod, ports)
	}
	want = strings.ReplaceAll(want, "%s", ports[i].Name)
	k.await(fmt.Sprintf("the trace from %s to %s prints %q", pod, to, want), func() bool {
		said, err := k.vrouter(n, "trace", "--from", ports[i].Name, "--to", to, "--proto", "tcp", "--dport", checkPort)
		return err == nil && strings.Contains(said, want)
	})
}

func (k *installation) isReady(namespace, pod string) bool {
	ready, err := k.Kubectl("", "-n", namespace, "get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].ready}")
	return err == nil && ready == "true"
}
