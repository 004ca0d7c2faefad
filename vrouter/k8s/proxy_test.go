package k8s

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// webManifest has a pod that answers HTTP requests, and a service of one IP version. The API server's proxy connects to
// the pods of a service itself.
const webManifest = `apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: %[1]s
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: %[2]q, command: [/test], env: [{name: %[3]s, value: "1"}], readinessProbe: {tcpSocket: {port: %[5]s}, periodSeconds: 1}, volumeMounts: [{name: test, mountPath: /test}]}
  volumes: [{name: test, hostPath: {path: %[4]q, type: File}}]
`

// testProxy connects to a pod, and to a service in each IP version, by the API server's proxy.
func (k *installation) testProxy(t *testing.T) {
	k.routeToPods()
	k.kubectl(fmt.Sprintf(webManifest, k.Nodes[1].Name, testcluster.SandboxImage, echoVariable, must.Get(os.Executable())(t), httpPort), "apply", "-f", "-")
	k.kubectl("", "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	paths := []string{"pods/web:" + httpPort}
	var ips []struct{ IP netip.Addr }
	must.Succeed(t, json.Unmarshal([]byte(k.kubectl("", "get", "pod", "web", "-o", "jsonpath={.status.podIPs}")), &ips))
	for _, ip := range ips {
		name, family := "web4", "IPv4"
		if ip.IP.Is6() {
			name, family = "web6", "IPv6"
		}
		k.kubectl(fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {selector: {app: web}, ipFamilies: [%s], ports: [{port: 80, targetPort: %s}]}\n", name, family, httpPort), "apply", "-f", "-")
		paths = append(paths, "services/"+name+":80")
	}
	for _, path := range paths {
		k.await("the API server's proxy reaches "+path, func() bool {
			said, err := k.Kubectl("", "get", "--raw", "/api/v1/namespaces/default/"+path+"/proxy/")
			return err == nil && said == "web"
		})
	}
	k.kubectl("", "delete", "pod", "web")
	for _, path := range paths[1:] {
		k.kubectl("", "delete", "service", strings.TrimSuffix(strings.TrimPrefix(path, "services/"), ":80"))
	}
}

// routeToPods routes the pods of each node by the node, outside the nodes. The API server is on no node here.
func (k *installation) routeToPods() {
	k.T.Helper()
	for _, n := range k.Nodes {
		var cidrs []netip.Prefix
		must.Succeed(k.T, json.Unmarshal([]byte(k.kubectl("", "get", "node", n.Name, "-o", "jsonpath={.spec.podCIDRs}")), &cidrs))
		for _, cidr := range cidrs {
			for address := range strings.SplitSeq(n.Address, ",") {
				if netip.MustParseAddr(address).Is4() == cidr.Addr().Is4() {
					k.IP(k.Master, fmt.Sprintf("route add %s via %s", cidr, address))
				}
			}
		}
	}
}
