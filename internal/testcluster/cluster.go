// Package testcluster starts a real Kubernetes cluster of two or more nodes for a test: etcd, the API
// server, the controllers and the scheduler, and on each node containerd, kubelet and kube-proxy.
package testcluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// Networks and credentials of a cluster.
const (
	PodNetwork     = "10.88.0.0/16"
	PodNetwork6    = "fd00:88::/56" // of a cluster with IPv6
	ServiceNetwork = "10.96.0.0/16"
	MasterAddress  = "172.30.0.1" // of a cluster with IPv4
	AdminToken     = "admin-token"
	LimitedToken   = "limited-token"

	masterAddress6  = "fd00:30::1"
	serviceNetwork6 = "fd00:96::/112"
)

// Options of Start.
type Options struct {
	Nodes    int      // default: 2
	Programs []string // of the sandbox image, besides windtunnel
	Images   []string // docker archives that the nodes have
	// CNI returns the CNI configuration of a node. nil: the nodes have none.
	CNI func(node int) string
	// NodeRoutes adds routes between the nodes to the pods of node N, 10.88.N.0/24.
	NodeRoutes bool
	// Subnets makes the controllers give each node a part of PodNetwork, and of PodNetwork6.
	Subnets bool
	// DualStack gives nodes, pods and services IPv6 addresses, too.
	DualStack bool
	// IPv6Only gives nodes, pods and services no IPv4 addresses.
	IPv6Only bool
	// NoKubeProxy starts no kube-proxy. The pod network must replace it.
	NoKubeProxy bool
	// DNS builds CoreDNS, which StartDNS starts.
	DNS bool
	// E2E builds the programs of Kubernetes' end-to-end tests, and imports the image of their pods on each node.
	E2E bool
	// Trace makes containerd log its work in detail, such as the calls of CNI plugins.
	Trace bool
	// ServerOnly starts only etcd and the API server. The nodes are only network namespaces.
	ServerOnly bool
}

// Cluster is a Kubernetes cluster on this machine. A network namespace has
// the API server and the switch between the nodes.
type Cluster struct {
	T           *testing.T // of the running step
	Dir         string     // of its files, with the kubeconfigs "kubeconfig" and "limited"
	Bin         string     // with its programs
	Master      string     // network namespace of the API server
	Nodes       []*Node
	Server      *exec.Cmd // the API server
	Controllers *exec.Cmd // the controller manager

	whole   *testing.T // the processes of the cluster run until its end
	options Options
}

// Node is a node of a cluster. Its files are below Root.
type Node struct {
	Name, Address, Namespace string
	Root                     string // the node's root directory

	index  int
	cgroup string // of its pods, from the root of each hierarchy
	stop   func() // ends its processes
}

// Require skips the test unless it was asked for, and the machine can run a cluster.
func Require(t *testing.T) {
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
}

// Start starts a cluster for the test, or skips the test (Require). The TestMain of the package must
// call RunNode.
func Start(t *testing.T, o Options) *Cluster {
	t.Helper()
	Require(t)
	k := &Cluster{T: t, whole: t, Dir: t.TempDir(), Bin: programs(t), options: o}
	if o.ServerOnly {
		k.wire()
		k.writeKeys()
		k.startMaster()
		return k
	}
	var inSandbox []string
	if o.DNS {
		buildDNS(t, k.Bin)
		o.Programs = append(o.Programs, "coredns")
	}
	for _, p := range append([]string{"windtunnel"}, o.Programs...) {
		path := filepath.Join(k.Bin, p)
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join(os.Getenv("WINDTUNNEL_BIN"), p)
		}
		inSandbox = append(inSandbox, path)
	}
	writeSandbox(t, inSandbox, k.Path("sandbox.image"))
	for i, path := range o.Images {
		image, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; make the image by: make image", err)
		}
		must.Succeed(t, os.WriteFile(k.Path(fmt.Sprintf("%d.image", i)), image, 0o644))
	}
	k.keepSysctls("kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory")
	k.wire()
	if o.E2E {
		k.writeE2E()
	}
	k.writeKeys()
	k.startMaster()
	for _, n := range k.Nodes {
		k.startNode(n)
	}
	return k
}

// Step runs a part of the test.
func (k *Cluster) Step(name string, f func(t *testing.T)) {
	k.T.Helper()
	outer := k.T
	outer.Run(name, func(t *testing.T) {
		k.T = t
		defer func() { k.T = outer }()
		f(t)
	})
}

// Path returns the path of a file of the cluster.
func (k *Cluster) Path(name string) string { return filepath.Join(k.Dir, name) }

// Write writes a file of the cluster.
func (k *Cluster) Write(name, text string) {
	k.T.Helper()
	must.Succeed(k.T, os.WriteFile(k.Path(name), []byte(text), 0o600))
}

// keepSysctls restores sysctls of the machine, which the kubelet sets.
func (k *Cluster) keepSysctls(names ...string) {
	for _, n := range names {
		path := "/proc/sys/" + n
		value, err := os.ReadFile(path)
		must.Succeed(k.T, err)
		k.T.Cleanup(func() { must.Succeed(k.T, os.WriteFile(path, value, 0)) })
	}
}

// IP runs the ip program on a network namespace of the cluster.
func (k *Cluster) IP(namespace, args string) {
	k.T.Helper()
	if out, err := exec.Command("ip", append([]string{"-n", namespace}, strings.Fields(args)...)...).CombinedOutput(); err != nil {
		k.T.Fatalf("ip -n %s %s: %v: %s", namespace, args, err, out)
	}
}

// makeSpace makes a network namespace for the test.
func (k *Cluster) makeSpace(name string) string {
	name = fmt.Sprintf("wt-kube%d-%s", os.Getpid(), name)
	ns, err := netspace.Create(name)
	must.Succeed(k.T, err)
	must.Succeed(k.T, ns.Close())
	k.whole.Cleanup(func() {
		if err := netspace.Delete(name); err != nil {
			k.whole.Error(err)
		}
	})
	k.IP(name, "link set lo up")
	settings := strings.Split(k.both("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"), ",")
	out, err := exec.Command("ip", append([]string{"netns", "exec", name, "sysctl", "-qw"}, settings...)...).CombinedOutput()
	if err != nil {
		k.T.Fatalf("forward packets in %s: %v: %s", name, err, out)
	}
	return name
}

// both returns the IPv4 and the IPv6 value of a flag of Kubernetes' programs, with a comma between them if the
// cluster has both IP versions.
func (k *Cluster) both(v4, v6 string) string {
	switch {
	case k.options.IPv6Only:
		return v6
	case k.options.DualStack:
		return v4 + "," + v6
	}
	return v4
}

// API returns the address and the port of the API server.
func (k *Cluster) API() string { return net.JoinHostPort(k.masterIP(), "6443") }

// masterIP is the address of the API server: IPv4, unless the cluster has none.
func (k *Cluster) masterIP() string {
	return k.MasterAddresses()[0]
}

// MasterAddresses are the addresses of the API server, by IP version.
func (k *Cluster) MasterAddresses() []string {
	return strings.Split(k.both(MasterAddress, masterAddress6), ",")
}

// everyAddress is the address at which a program listens for connections to all addresses.
func (k *Cluster) everyAddress() string {
	if k.options.IPv6Only {
		return "::"
	}
	return "0.0.0.0"
}

// wire joins the nodes by a bridge in the master's namespace.
func (k *Cluster) wire() {
	k.Master = k.makeSpace("master")
	k.IP(k.Master, "link add br0 type bridge")
	k.IP(k.Master, "link set br0 up")
	for prefix := range strings.SplitSeq(k.both(MasterAddress+"/24", masterAddress6+"/64"), ",") {
		k.IP(k.Master, "address add "+prefix+" dev br0 nodad")
	}
	for i := range max(k.options.Nodes, 2) {
		n := &Node{Name: fmt.Sprintf("wt-node-%d", i+1), index: i, cgroup: fmt.Sprintf("/wt-kube%d-%d", os.Getpid(), i+1)}
		k.Nodes = append(k.Nodes, n)
		k.wireNode(n)
	}
	if k.options.NodeRoutes {
		for i, n := range k.Nodes {
			route := fmt.Sprintf("route add 10.88.%d.0/24 via %s", i, n.Address)
			k.IP(k.Nodes[1-i].Namespace, route)
			k.IP(k.Master, route)
		}
	}
}

// wireNode makes the network namespace of a node.
func (k *Cluster) wireNode(n *Node) {
	v4, v6 := fmt.Sprintf("172.30.0.%d", 11+n.index), fmt.Sprintf("fd00:30::%d", 11+n.index)
	n.Namespace, n.Address = k.makeSpace(fmt.Sprint(n.index+1)), k.both(v4, v6)
	port := fmt.Sprintf("port%d", n.index+1)
	k.IP(k.Master, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, n.Namespace))
	k.IP(k.Master, "link set "+port+" master br0 up")
	k.IP(n.Namespace, "link set eth0 up")
	for prefix := range strings.SplitSeq(k.both(v4+"/24", v6+"/64"), ",") {
		k.IP(n.Namespace, "address add "+prefix+" dev eth0 nodad")
	}
	for gateway := range strings.SplitSeq(k.both(MasterAddress, masterAddress6), ",") {
		k.IP(n.Namespace, "route add default via "+gateway)
	}
}

// Kill cuts a node off the network and kills its processes. Nothing of it is left.
func (k *Cluster) Kill(n *Node) {
	k.T.Helper()
	k.IP(k.Master, fmt.Sprintf("link delete port%d", n.index+1))
	n.stop()
	must.Succeed(k.T, netspace.Delete(n.Namespace))
	must.Succeed(k.T, os.RemoveAll(k.Path(n.Name)))
}

// Boot starts a killed node, whose disk and memory are empty.
func (k *Cluster) Boot(n *Node) {
	k.T.Helper()
	k.wireNode(n)
	k.startNode(n)
}

// Command returns a command that runs in the master's namespace, with the programs of the
// cluster in its PATH.
func (k *Cluster) Command(name string, args ...string) *exec.Cmd {
	return k.CommandIn(k.Master, name, args...)
}

// CommandIn returns a command that runs in a network namespace. nsenter becomes the program, so
// signals reach the program.
func (k *Cluster) CommandIn(namespace, name string, args ...string) *exec.Cmd {
	if path := filepath.Join(k.Bin, name); exists(path) {
		name = path
	}
	cmd := exec.Command("nsenter", append([]string{"--net=" + filepath.Join(netspace.Dir, namespace), name}, args...)...)
	cmd.Dir, cmd.Env = k.Dir, append(os.Environ(), "PATH="+k.Bin+":"+os.Getenv("PATH"), "KUBECONFIG="+k.Path("kubeconfig"))
	return cmd
}

// Kubectl runs kubectl as the administrator. It returns standard output and standard error together.
func (k *Cluster) Kubectl(stdin string, args ...string) (string, error) {
	cmd := k.Command("kubectl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

// OnNode runs a program in the namespaces of a node, and returns its output.
func (k *Cluster) OnNode(n *Node, name string, args ...string) (string, error) {
	out, err := n.command(append([]string{name}, args...)).CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

// Client returns an HTTP client for the API server, at "https://" + k.API(). It sends requests as
// the administrator.
func (k *Cluster) Client() *http.Client {
	k.T.Helper()
	authority, err := os.ReadFile(k.Path("ca.crt"))
	must.Succeed(k.T, err)
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	return &http.Client{Transport: asAdmin{&http.Transport{DialContext: k.Dial, TLSClientConfig: &tls.Config{RootCAs: authorities}, MaxIdleConnsPerHost: 16}}}
}

// asAdmin sends requests as the administrator.
type asAdmin struct{ http.RoundTripper }

func (a asAdmin) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+AdminToken)
	return a.RoundTripper.RoundTrip(r)
}

// command returns a command that runs in the namespaces of a node.
func (n *Node) command(argv []string) *exec.Cmd {
	pid := strings.TrimSuffix(strings.TrimPrefix(n.Root, "/proc/"), "/root")
	return exec.Command("nsenter", append([]string{"-t", pid, "-n", "-m", "-u", "-i", "-p"}, argv...)...)
}

// Dial connects from the master's namespace.
func (k *Cluster) Dial(ctx context.Context, network, address string) (c net.Conn, err error) {
	err = netspace.OwnThread(func() error {
		ns, err := netns.GetFromName(k.Master)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return err
		}
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// run starts a program in the master's namespace, until the end of the test.
func (k *Cluster) run(name string, args ...string) *exec.Cmd {
	t := k.whole
	t.Helper()
	cmd := k.Command(name, args...)
	log, err := os.OpenFile(k.Path(name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	must.Succeed(t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Setpgid: true}
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s:\n%s", name, last(text))
		}
	})
	return cmd
}

// Await waits until a condition holds.
func (k *Cluster) Await(what string, holds func() bool) {
	k.T.Helper()
	for deadline := time.Now().Add(90 * time.Second); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.LogNodes()
			k.T.Fatalf("%s: not within 90 s", what)
		}
	}
}

// LogNodes logs the last output of the nodes' programs.
func (k *Cluster) LogNodes() {
	logs, err := filepath.Glob(k.Path("wt-node-*/*.log"))
	must.Succeed(k.T, err)
	for _, path := range logs {
		text, err := os.ReadFile(path)
		must.Succeed(k.T, err)
		k.T.Logf("%s:\n%s", strings.TrimPrefix(path, k.Dir), last(text))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// last returns the last lines of a text.
func last(text []byte) string {
	const most = 4000
	return string(text[max(0, len(text)-most):])
}
