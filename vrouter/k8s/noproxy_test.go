package k8s

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// outsideManifest has a pod on each node, and services that clients outside reach in every way. The addresses of balancers
// are added by the test, as the controller of a cloud does.
const outsideManifest = `apiVersion: v1
kind: Pod
metadata: {name: outside-0, labels: {app: outside, number: "0"}}
spec: {nodeName: NODE0, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "IMAGE", args: [k8s, probe], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: outside-1, labels: {app: outside, number: "1"}}
spec: {nodeName: NODE1, terminationGracePeriodSeconds: 1, containers: [{name: c, image: "IMAGE", args: [k8s, probe], readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: LoadBalancer, externalIPs: [198.51.100.1, "fd00:51::1"], selector: {app: outside}, ipFamilyPolicy: PreferDualStack, ports: [{port: 80, targetPort: 8080, nodePort: 30090}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside-local}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, externalIPs: [198.51.100.3, "fd00:51::3"], selector: {app: outside, number: "1"}, ipFamilyPolicy: PreferDualStack, ports: [{port: 80, targetPort: 8080, nodePort: 30091}]}
---
apiVersion: v1
kind: Service
metadata: {name: outside-affine}
spec: {type: NodePort, sessionAffinity: ClientIP, selector: {app: outside}, ipFamilyPolicy: PreferDualStack, ports: [{port: 80, targetPort: 8080, nodePort: 30092}]}
`

// testOutside connects to services with external addresses from outside, from both nodes, and from a pod.
func (k *installation) testOutside(t *testing.T) {
	k.kubectl(strings.NewReplacer("NODE0", k.Nodes[0].Name, "NODE1", k.Nodes[1].Name, "IMAGE", k.image).Replace(outsideManifest), "apply", "-f", "-")
	for name, number := range map[string]string{"outside": "2", "outside-local": "4"} {
		k.kubectl("", "patch", "service", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(`{"status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.%s"}, {"ip": "fd00:51::%[1]s"}]}}}`, number))
	}
	k.await("both pods are ready", func() bool { return k.isReady("default", "outside-0") && k.isReady("default", "outside-1") })
	var pod pod
	must.Succeed(t, json.Unmarshal([]byte(k.kubectl("", "get", "pod", "outside-1", "-o", "json")), &pod))
	check := k.kubectl("", "get", "service", "outside-local", "-o", "jsonpath={.spec.healthCheckNodePort}")
	for version, ip := range pod.Status.PodIPs {
		family, external := "-4", "198.51.100."
		if ip.IP.Is6() {
			family, external = "-6", "fd00:51::"
		}
		outside := k.MasterAddresses()[version]
		for i, n := range k.Nodes {
			at := strings.Split(n.Address, ",")[version]
			k.IP(k.Master, fmt.Sprintf("%s route replace %s via %s", family, netip.PrefixFrom(netip.MustParseAddr(external+"0"), ip.IP.BitLen()-8).Masked(), at))
			ways := func(node string, first, second int) (all []string) {
				for _, w := range []string{at + " " + node, external + fmt.Sprint(first) + " 80", external + fmt.Sprint(second) + " 80"} {
					host, port, _ := strings.Cut(w, " ")
					all = append(all, net.JoinHostPort(host, port))
				}
				return all
			}
			cluster, local := ways("30090", 1, 2), ways("30091", 3, 4)
			for _, way := range cluster {
				k.await("clients outside reach both pods by "+way+" of "+n.Name, func() bool {
					seen := map[string]bool{}
					for range 20 {
						seen[k.answer(way)] = true
					}
					return len(seen) == 2 && !seen[""]
				})
			}
			for _, way := range local {
				want := []string{"", "outside-1"}[i]
				if got := k.answer(way); got != want {
					t.Errorf("a client outside connects to %s of %s: the answer is %q, want %q", way, n.Name, got, want)
				}
			}
			if i == 1 { // of connections that it ended, the pod's kernel still knows the client
				said, err := k.OnNode(n, "nsenter", "--net="+k.space(n, ip.IP.String()), "ss", "-Htan", "state", "time-wait")
				if err != nil || !strings.Contains(said, ":"+outside+"]:") && !strings.Contains(said, "["+outside+"]:") {
					t.Errorf("the pod does not see the address %s of the client of a service for clients of its node: %v:\n%s", outside, err, said)
				}
			}
			for port, want := range map[string]int{fmt.Sprint(healthPort): http.StatusOK, check: []int{http.StatusServiceUnavailable, http.StatusOK}[i]} {
				client := http.Client{Transport: &http.Transport{DialContext: k.Dial, DisableKeepAlives: true}}
				answer, err := client.Get("http://" + net.JoinHostPort(at, port) + "/healthz")
				if err != nil || answer.StatusCode != want {
					t.Errorf("a load balancer asks port %s of %s: %v, %+v, want %d", port, n.Name, err, answer, want)
				}
			}
			first := k.answer(net.JoinHostPort(at, "30092"))
			for range 10 {
				if got := k.answer(net.JoinHostPort(at, "30092")); got != first || got == "" {
					t.Errorf("a client of a service with affinity reaches the pods %q and %q", first, got)
				}
			}
			targets := slices.Concat(cluster, local[1:]) // for the node of a client, these are its own addresses
			for _, from := range k.Nodes {
				targets := targets
				if from == n || i == 1 {
					targets = slices.Concat(targets, local[:1])
				}
				k.probe("node "+from.Name, targets, func() (string, error) { return k.vrouter(from, append([]string{"k8s", "probe"}, targets...)...) })
			}
			k.probe("a pod that is its own backend", targets, func() (string, error) {
				return k.Kubectl("", append([]string{"exec", "outside-1", "--", "vrouter", "k8s", "probe"}, targets...)...)
			})
		}
	}
	k.kubectl("", "delete", "pod/outside-0", "pod/outside-1", "service/outside", "service/outside-local", "service/outside-affine")
}
