package k8s

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/lab/space"
	"windtunnel/lab/testbed/remote"
)

const (
	podNetwork     = "10.88.0.0/16"
	serviceNetwork = "10.96.0.0/24"
	masterAddress  = "172.30.0.1"
	adminToken     = "admin-token"
	limitedToken   = "limited-token"
)

func nodeName(i int) string    { return fmt.Sprintf("wt-node-%d", i+1) }
func nodeAddress(i int) string { return fmt.Sprintf("172.30.0.%d", 11+i) }

// testCluster is a Kubernetes cluster of two nodes on this machine. A network namespace has
// the API server and the switch between the nodes. The engines run in it, too.
type testCluster struct {
	t      *testing.T // of the running step
	whole  *testing.T // the processes of the cluster run until its end
	dir    string     // of its files
	bin    string     // with its programs
	master *space.Space
	nodes  []*space.Space
	inits  []*exec.Cmd // process 1 of each node
	server *exec.Cmd   // the API server
	// controllers is the controller manager.
	controllers *exec.Cmd
	api         *cluster
}

// startCluster starts a cluster for the test. It skips the test unless it was asked for.
func startCluster(t *testing.T) *testCluster {
	t.Helper()
	if os.Getenv("WINDTUNNEL_KUBERNETES") == "" {
		t.Skip("builds and starts a Kubernetes cluster, which takes minutes; run it with: make test-kubernetes")
	}
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	for _, p := range []string{"etcd", "containerd", "ctr", "runc", "iptables"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed; get it with: apt-get install containerd etcd-server iptables", p)
		}
	}
	k := &testCluster{t: t, whole: t, dir: t.TempDir(), bin: clusterPrograms(t)}
	program, err := filepath.Abs("../../../bin/windtunnel")
	must(t, err)
	writeSandbox(t, []string{program, filepath.Join(k.bin, "flanneld")}, k.path("sandbox.tar"))
	product, err := os.ReadFile(productImage)
	if err != nil {
		t.Fatalf("%v; make the image by: make image", err)
	}
	must(t, os.WriteFile(k.path("image.tar"), product, 0o644))
	k.keepSysctls("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory")
	k.wire()
	k.writeKeys()
	k.startMaster()
	for i := range k.nodes {
		k.startNode(i)
	}
	k.awaitNodes()
	return k
}

func (k *testCluster) path(name string) string { return filepath.Join(k.dir, name) }

func (k *testCluster) write(name, text string) {
	must(k.t, os.WriteFile(k.path(name), []byte(text), 0o600))
}

// keepSysctls restores sysctls of the machine, which the kubelet sets.
func (k *testCluster) keepSysctls(names ...string) {
	for _, n := range names {
		path := "/proc/sys/" + n
		value, err := os.ReadFile(path)
		must(k.t, err)
		k.t.Cleanup(func() { must(k.t, os.WriteFile(path, value, 0)) })
	}
}

// makeSpace makes a network namespace for the test.
func (k *testCluster) makeSpace(name string) *space.Space {
	sp, err := space.Create(fmt.Sprintf("wt-kube%d-%s", os.Getpid(), name))
	must(k.t, err)
	k.t.Cleanup(func() {
		if err := errors.Join(sp.Close(), space.Delete(sp.Name)); err != nil {
			k.t.Error(err)
		}
	})
	must(k.t, sp.Sysctl("net.ipv4.ip_forward", "1"))
	return sp
}

// wire joins the nodes by a bridge in the master's namespace.
func (k *testCluster) wire() {
	t := k.t
	k.master = k.makeSpace("master")
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br0"
	must(t, k.master.Add(&netlink.Bridge{LinkAttrs: attrs}))
	must(t, k.master.Up("br0"))
	must(t, k.master.Address("br0", netip.MustParsePrefix(masterAddress+"/24")))
	for i := range 2 {
		n := k.makeSpace(fmt.Sprint(i + 1))
		k.nodes = append(k.nodes, n)
		port := fmt.Sprintf("port%d", i+1)
		must(t, k.master.Pair(space.Veth{Name: port, PeerName: "eth0", MTU: 1500}, n))
		must(t, k.master.Enslave(port, "br0"))
		must(t, k.master.Up(port))
		must(t, n.Address("eth0", netip.MustParsePrefix(nodeAddress(i)+"/24")))
		must(t, n.Up("eth0"))
		k.route(n, "0.0.0.0/0", masterAddress)
		k.route(n, fmt.Sprintf("10.88.%d.0/24", 1-i), nodeAddress(1-i))
		k.route(k.master, fmt.Sprintf("10.88.%d.0/24", i), nodeAddress(i))
	}
}

func (k *testCluster) route(sp *space.Space, to, by string) {
	must(k.t, sp.Links.RouteAdd(k.routeTo(to, by)))
}

func (k *testCluster) routeTo(to, by string) *netlink.Route {
	return &netlink.Route{Dst: space.IPNet(netip.MustParsePrefix(to)), Gw: net.ParseIP(by)}
}

// writeKeys writes the certificates, the tokens and the kubeconfigs.
func (k *testCluster) writeKeys() {
	t := k.t
	authority, authorityKey := k.certificate("ca", nil, nil)
	k.certificate("server", authority, authorityKey)
	account, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	k.write("account.key", string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(account)})))
	k.write("tokens", adminToken+",admin,1,system:masters\n"+limitedToken+",limited,2\n")
	k.write("audit.yaml", auditPolicy)
	k.write("kubeconfig", k.kubeconfig(adminToken))
	k.write("limited", k.kubeconfig(limitedToken))
}

// certificate makes a certificate. Without a parent it is an authority.
func (k *testCluster) certificate(name string, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	t := k.t
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.ParseIP(masterAddress), net.ParseIP("127.0.0.1"), net.ParseIP("10.96.0.1")},
	}
	if parent == nil {
		c.IsCA, c.KeyUsage, c.IPAddresses, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil, nil
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	k.write(name+".crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	k.write(name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	made, err := x509.ParseCertificate(der)
	must(t, err)
	return made, key
}

func (k *testCluster) kubeconfig(token string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "https://%s:6443", certificate-authority: %s}}]
users: [{name: user, user: {token: %s}}]
contexts: [{name: test, context: {cluster: test, user: user}}]
current-context: test
`, masterAddress, k.path("ca.crt"), token)
}

// run starts a program in the master's namespace, until the end of the test.
func (k *testCluster) run(name string, args ...string) *exec.Cmd {
	t := k.whole
	t.Helper()
	path := filepath.Join(k.bin, name)
	if _, err := os.Stat(path); err != nil {
		path = name
	}
	cmd := exec.Command(path, args...)
	log, err := os.OpenFile(k.path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true}
	must(t, k.master.Do(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s:\n%s", name, last(text))
		}
	})
	return cmd
}

func (k *testCluster) startMaster() {
	k.run("etcd", "--data-dir", k.path("etcd"), "--unsafe-no-fsync", "--log-level", "error")
	k.startServer()
	k.controllers = k.run("kube-controller-manager", "--kubeconfig", k.path("kubeconfig"), "--leader-elect=false", "--service-account-private-key-file", k.path("account.key"),
		"--root-ca-file", k.path("ca.crt"), "--use-service-account-credentials=false", "--bind-address", "127.0.0.1", "--authentication-skip-lookup")
	authority, err := os.ReadFile(k.path("ca.crt"))
	must(k.t, err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	transport := &http.Transport{DialContext: k.dial, TLSClientConfig: &tls.Config{RootCAs: authorities}}
	k.api = &cluster{base: "https://" + masterAddress + ":6443", http: &http.Client{Transport: asAdmin{transport}}, proxy: &remote.Process{}}
	k.await("the API server answers", k.answers)
}

// asAdmin sends requests as the administrator.
type asAdmin struct{ http.RoundTripper }

func (a asAdmin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+adminToken)
	return a.RoundTripper.RoundTrip(r)
}

// answers reports whether the API server answers.
func (k *testCluster) answers() bool {
	return k.api.ask(context.Background(), http.MethodGet, "/version", nil, nil) == nil
}

// ask sends a request that must succeed.
func (k *testCluster) ask(method, path string, body any) {
	k.t.Helper()
	if err := k.api.ask(context.Background(), method, path, body, nil); err != nil {
		k.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// dial connects from the master's namespace.
func (k *testCluster) dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = k.master.Do(func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// auditPolicy makes the API server log the programs that are started in pods.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
  resources: [{group: "", resources: [pods/exec]}]
- level: None
`

// startServer starts the API server, with further options.
func (k *testCluster) startServer(options ...string) {
	k.server = k.run("kube-apiserver", append(options, "--etcd-servers", "http://127.0.0.1:2379", "--service-cluster-ip-range", serviceNetwork, "--advertise-address", masterAddress,
		"--bind-address", "0.0.0.0", "--tls-cert-file", k.path("server.crt"), "--tls-private-key-file", k.path("server.key"), "--token-auth-file", k.path("tokens"),
		"--authorization-mode", "RBAC", "--anonymous-auth=false", "--allow-privileged=true", "--kubelet-preferred-address-types", "InternalIP",
		"--audit-policy-file", k.path("audit.yaml"), "--audit-log-path", k.path("audit.log"), "--service-account-issuer", "https://test", "--service-account-key-file", k.path("account.key"), "--service-account-signing-key-file", k.path("account.key"))...)
}

// execs returns the number of programs in pods that were started by a verb of the API: get
// for WebSocket, create for SPDY.
func (k *testCluster) execs(verb string) (n int) {
	text, err := os.ReadFile(k.path("audit.log"))
	must(k.t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, `"verb":"`+verb+`"`) && strings.Contains(line, `"code":101`) {
			n++
		}
	}
	return n
}

func (k *testCluster) await(what string, holds func() bool) {
	k.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.logNodes()
			k.t.Fatalf("%s: not within 90 s", what)
		}
	}
}

// logNodes logs the last output of the nodes' programs.
func (k *testCluster) logNodes() {
	logs, err := filepath.Glob(k.path("wt-node-*/*.log"))
	must(k.t, err)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		must(k.t, err)
		k.t.Logf("%s:\n%s", strings.TrimPrefix(path, k.dir), last(text))
	}
}

// awaitNodes waits until both nodes are ready and have the image of the runs.
func (k *testCluster) awaitNodes() {
	tags := tagsOf(k.t, k.path("image.tar"))
	k.await("both nodes are ready", func() bool {
		nodes, err := k.api.allNodes(context.Background())
		count := 0
		if err == nil {
			for _, n := range nodes {
				if usable(&n) == nil && !tainted(&n) && hasImage(&n, tags) {
					count++
				}
			}
		}
		return count == len(k.nodes)
	})
}

// hasImage reports whether a node has an image with one of the tags.
func hasImage(n *node, tags []string) bool {
	for _, image := range n.Status.Images {
		for _, name := range image.Names {
			if slices.ContainsFunc(tags, func(tag string) bool { return strings.HasSuffix(name, "/"+tag) }) {
				return true
			}
		}
	}
	return false
}

// cgroup is the control group of all pods of a node, from the root of each hierarchy.
func (k *testCluster) cgroup(i int) string {
	return space.Cgroup(fmt.Sprintf("wt-kube%d-%d", os.Getpid(), i+1))
}

// makeCgroups makes the control groups of a node. Its pods use one CPU.
func (k *testCluster) makeCgroups(i int) {
	t := k.t
	hierarchies, err := filepath.Glob("/sys/fs/cgroup/*")
	must(t, err)
	for _, h := range hierarchies {
		info, err := os.Stat(h)
		must(t, err)
		if !info.IsDir() || filepath.Base(h) == "unified" {
			continue
		}
		group := h + k.cgroup(i)
		must(t, os.MkdirAll(group, 0o755))
		if filepath.Base(h) != "cpuset" {
			continue
		}
		mems, err := os.ReadFile(h + "/cpuset.mems")
		must(t, err)
		must(t, os.WriteFile(group+"/cpuset.cpus", []byte(strconv.Itoa(i)), 0o644))
		must(t, os.WriteFile(group+"/cpuset.mems", mems, 0o644))
	}
	t.Cleanup(func() {
		if err := space.DeleteCgroups(strings.TrimPrefix(k.cgroup(i), "/")); err != nil {
			t.Error(err)
		}
	})
}

// spaces lists the namespaces of runs.
func (k *testCluster) spaces() (names []string) {
	all, err := list[namespace](context.Background(), k.api, namespacesPath+"?labelSelector="+runLabel)
	must(k.t, err)
	for _, n := range all {
		names = append(names, n.Metadata.Name)
	}
	return names
}

// cordon makes a node unschedulable, or schedulable again.
func (k *testCluster) cordon(i int, on bool) {
	k.ask(http.MethodPatch, nodesPath+"/"+nodeName(i), map[string]any{"spec": map[string]any{"unschedulable": on}})
}

// pods lists the pods of a run's namespace.
func (k *testCluster) pods(namespace string) []podObject {
	all, err := list[podObject](context.Background(), k.api, podsPath(namespace))
	must(k.t, err)
	return all
}
