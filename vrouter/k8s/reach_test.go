package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// reachManifest has a pod with a port of its node, and two services that each node serves at a port. The
// second service accepts connections only on the pod's node.
const reachManifest = `apiVersion: v1
kind: Pod
metadata: {name: reach-%[1]d, labels: {app: reach}}
spec:
  nodeName: %[2]s
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: %[3]q
    args: [k8s, probe]
    ports: [{containerPort: 8080, hostPort: 8081}]
    readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: reach}
spec: {type: NodePort, selector: {app: reach}, ipFamilyPolicy: PreferDualStack, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
---
apiVersion: v1
kind: Service
metadata: {name: reach-local}
spec: {type: NodePort, externalTrafficPolicy: Local, selector: {app: reach}, ipFamilyPolicy: PreferDualStack, ports: [{port: 80, targetPort: 8080, nodePort: 30081}]}
`

// testReach connects to one pod in every way that Kubernetes offers: from outside, from both nodes, and
// from the pod itself, in each IP version.
func (k *installation) testReach(t *testing.T) {
	const on = 1 // index of the pod's node
	k.kubectl(fmt.Sprintf(reachManifest, on, k.Nodes[on].Name, k.image), "apply", "-f", "-")
	name := fmt.Sprint("reach-", on)
	k.await("the kubelet's probes reach the pod", func() bool { return k.isReady("default", name) })
	var pod pod
	must.Succeed(t, json.Unmarshal([]byte(k.kubectl("", "get", "pod", name, "-o", "json")), &pod))
	for version, ip := range pod.Status.PodIPs {
		at := func(node int) string { return strings.Split(k.Nodes[node].Address, ",")[version] }
		for _, way := range []struct{ what, address, port string }{
			{"a NodePort of its node", at(on), "30080"},
			{"a NodePort of the other node", at(1 - on), "30080"},
			{"a NodePort for clients of its node alone", at(on), "30081"},
			{"the port of its node", at(on), "8081"},
		} {
			k.await("a client outside reaches the pod by "+way.what+", "+way.address, func() bool {
				return k.answer(net.JoinHostPort(way.address, way.port)) == name
			})
			for range 10 { // a packet that goes to the wrong node makes a connection fail
				if said := k.answer(net.JoinHostPort(way.address, way.port)); said != name {
					t.Errorf("a client outside connects to the pod by %s, %s: the answer is %q", way.what, way.address, said)
				}
			}
		}
		must.Equal(t, "", k.answer(net.JoinHostPort(at(1-on), "30081")))
		clusterIP := k.clusterIP("reach", ip.IP)
		targets := []string{net.JoinHostPort(ip.IP.String(), checkPort), net.JoinHostPort(clusterIP, "80")}
		for _, n := range k.Nodes {
			k.probe("node "+n.Name, targets, func() (string, error) { return k.vrouter(n, append([]string{"k8s", "probe"}, targets...)...) })
		}
		k.probe("the pod itself", targets, func() (string, error) {
			return k.Kubectl("", append([]string{"exec", name, "--", "vrouter", "k8s", "probe"}, targets...)...)
		})
	}
	k.kubectl("", "delete", "pod/"+name, "service/reach", "service/reach-local")
}

// answer connects from outside the nodes, and returns what a pod answers; "" without an answer.
func (k *installation) answer(address string) string {
	ctx, cancel := context.WithTimeout(k.T.Context(), 2*time.Second)
	defer cancel()
	c, err := k.Dial(ctx, "tcp", address)
	if err != nil {
		return ""
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return ""
	}
	said, _ := io.ReadAll(c)
	return string(said)
}

// clusterIP returns the address of a service in the IP version of like.
func (k *installation) clusterIP(service string, like netip.Addr) string {
	ips := strings.Fields(k.kubectl("", "get", "service", service, "-o", "jsonpath={.spec.clusterIPs[*]}"))
	at := slices.IndexFunc(ips, func(ip string) bool { return netip.MustParseAddr(ip).Is4() == like.Is4() })
	if at < 0 {
		k.T.Fatalf("service %s has the addresses %v, and none of the version of %v", service, ips, like)
	}
	return ips[at]
}

// probe reports the targets that do not answer `vrouter k8s probe`. run runs it; kubectl can lose its output.
func (k *installation) probe(from string, targets []string, run func() (string, error)) {
	k.T.Helper()
	var results map[string]string
	k.await("the probe from "+from+" prints its results", func() bool {
		said, err := run()
		results = nil
		return err == nil && json.Unmarshal([]byte(said), &results) == nil && len(results) == len(targets)
	})
	for target, problem := range results {
		if problem != "" {
			k.T.Errorf("%s does not reach %s: %s", from, target, problem)
		}
	}
}
