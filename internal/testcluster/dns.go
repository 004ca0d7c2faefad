package testcluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

// The addresses of the cluster's DNS service.
const (
	dnsAddress  = "10.96.0.10"
	dnsAddress6 = "fd00:96::a"
)

// dnsModule is the Go module of a CoreDNS with only the plugins errors and kubernetes. The other plugins import
// the libraries of several clouds, which take long to compile.
var dnsModule = map[string]string{
	"go.mod": "module dns\n\ngo 1.23.0\n\nrequire github.com/coredns/coredns v1.12.0\n",
	"main.go": `// Command dns is CoreDNS with the plugins errors and kubernetes.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() {
	dnsserver.Directives = []string{"errors", "kubernetes"}
	coremain.Run()
}
`,
}

// buildDNS builds CoreDNS once, in a module in the user's cache.
func buildDNS(t *testing.T, bin string) {
	t.Helper()
	folder := filepath.Join(filepath.Dir(bin), "dns")
	must.Succeed(t, os.MkdirAll(folder, 0o755))
	for name, text := range dnsModule {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	compile(t, folder, filepath.Join(bin, "coredns"), "build", ".")
}

// StartDNS starts the cluster's DNS server, in a pod and with a service, and waits until it is ready. The cluster must
// have been started with Options.DNS.
func (k *Cluster) StartDNS() {
	k.T.Helper()
	addresses := k.both(dnsAddress, dnsAddress6)
	first, _, _ := strings.Cut(addresses, ",")
	manifest := strings.NewReplacer("IMAGE", SandboxImage, "ADDRESSES", addresses, "FIRST", first).Replace(dnsManifest)
	if said, err := k.Kubectl(manifest, "apply", "-f", "-"); err != nil {
		k.T.Fatalf("start the DNS server: %v: %s", err, said)
	}
	if said, err := k.Kubectl("", "-n", "kube-system", "wait", "--for=condition=Ready", "pod/dns", "--timeout=60s"); err != nil {
		k.T.Fatalf("the DNS server is not ready: %v: %s", err, said)
	}
}

const dnsManifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: default, namespace: kube-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: dns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
      errors
      kubernetes cluster.local
    }
---
apiVersion: v1
kind: Pod
metadata: {name: dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: dns
    image: "IMAGE"
    command: [/bin/coredns, -conf, /dns/Corefile]
    volumeMounts: [{name: dns, mountPath: /dns}]
  volumes: [{name: dns, configMap: {name: dns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: "FIRST"
  clusterIPs: [ADDRESSES]
  ipFamilyPolicy: PreferDualStack
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
`
