package testcluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"windtunnel/internal/must"
)

// dnsAddress is the address of the cluster's DNS service.
const dnsAddress = "10.96.0.10"

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

// hostPrograms are the programs of this machine that upstream's cases start in pods.
var hostPrograms = strings.Fields("sh curl wget nc ss cat date dd echo grep hostname seq sleep sort tail timeout")

// writeE2E builds e2e.test, upstream's test program, with ginkgo, which runs it in parallel, and
// the programs of its image. It does so once: about 10 minutes. It then writes the image.
func (k *Cluster) writeE2E() {
	t, folder := k.T, filepath.Dir(k.Bin)
	compile := func(folder, program, verb string, args ...string) {
		if path := filepath.Join(k.Bin, program); !exists(path) {
			build(t, folder, "CGO_ENABLED=0", append([]string{verb, "-trimpath", "-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion=" + KubernetesVersion, "-o", path}, args...)...)
		}
	}
	compile(folder, "e2e.test", "test", "-c", "k8s.io/kubernetes/test/e2e")
	compile(folder, "ginkgo", "build", "github.com/onsi/ginkgo/v2/ginkgo")
	compile(folder, "agnhost", "build", "k8s.io/kubernetes/test/images/agnhost")
	dns := filepath.Join(folder, "dns")
	must.Succeed(t, os.MkdirAll(dns, 0o755))
	for name, text := range dnsModule {
		must.Succeed(t, os.WriteFile(filepath.Join(dns, name), []byte(text), 0o644))
	}
	compile(dns, "coredns", "build", ".")

	list, err := k.Command("e2e.test", "--list-images").Output()
	must.Succeed(t, err)
	tag := regexp.MustCompile(`(?m)^\S+/e2e-test-images/agnhost:\S+$`).FindString(string(list))
	if tag == "" {
		t.Fatalf("e2e.test does not list the image agnhost:\n%s", list)
	}
	files := []file{{"tmp/", nil}, {"uploads/", nil}, {"etc/", nil}, {"bin/", nil}, copyOf(t, filepath.Join(k.Bin, "agnhost"), "agnhost"),
		copyOf(t, filepath.Join(k.Bin, "coredns"), "coredns"), copyOf(t, which(k, "busybox"), "bin/nslookup")}
	libraries := map[string]bool{}
	for _, p := range hostPrograms {
		path := which(k, p)
		files = append(files, copyOf(t, path, "bin/"+p))
		out, err := exec.Command("ldd", path).Output()
		must.Succeed(t, err)
		for _, l := range regexp.MustCompile(`/\S+`).FindAllString(string(out), -1) {
			if !libraries[l] {
				libraries[l] = true
				files = append(files, copyOf(t, l, l[1:]))
			}
		}
	}
	writeImage(t, k.Path("agnhost.image"), tag, []string{"/agnhost"}, []string{"pause"}, files)
	k.Write("dns.yaml", strings.NewReplacer("IMAGE", tag, "ADDRESS", dnsAddress).Replace(dnsManifest))
}

func which(k *Cluster, program string) string {
	k.T.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		k.T.Skipf("%s is not installed; get it with: make setup", program)
	}
	return path
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
    image: IMAGE
    command: [/coredns, -conf, /dns/Corefile]
    volumeMounts: [{name: dns, mountPath: /dns}]
  volumes: [{name: dns, configMap: {name: dns}}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: ADDRESS
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
`
