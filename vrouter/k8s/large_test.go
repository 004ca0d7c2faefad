package k8s

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/internal/testcluster"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// Sizes and targets of the large cluster.
const (
	largeServices  = 5000
	largeEndpoints = 4 // of each service
	largePods      = 10_000
	largePolicies  = 500
	largeSpaces    = 50 // namespaces
	largeChanges   = 40
	largeMemory    = 150e6                  // bytes
	largeDelay     = 200 * time.Millisecond // of a change of a label
	serviceDelay   = 50 * time.Millisecond  // of a change of a service
)

// largeAgent is the process of `vrouter k8s node` on a node of a large cluster.
type largeAgent struct {
	*controlled
	client    *http.Client   // of the API server
	workloads map[int]string // network namespaces of pods
	pid       int
}

// TestAnAgentFollowsALargeCluster runs a real agent with a real API server, over HTTPS. It measures the agent's memory,
// and the time from a request to the API server that changes an object until the change is in force. WINDTUNNEL_TIMING_TESTS
// compares the times with the targets.
func TestAnAgentFollowsALargeCluster(t *testing.T) {
	k := &largeAgent{controlled: &controlled{Cluster: testcluster.Start(t, testcluster.Options{ServerOnly: true}), ctx: t.Context()}}
	k.client = k.Client()
	k.follow()
	k.workloads = map[int]string{}
	for _, pod := range []int{toPod, fromPod} {
		name := fmt.Sprintf("vr-large%d-%d", os.Getpid(), pod)
		ns := must.Get(netspace.Create(name))(t)
		must.Succeed(t, ns.Close())
		t.Cleanup(func() { must.Succeed(t, netspace.Delete(name)) })
		k.workloads[pod] = name
	}
	k.start(t)
	k.Await("the agent has written services", func() bool { return k.entries("services") > 0 })
	k.logMemory(t, "without services, but that of the API server")
	k.Step("services", k.testManyServices)
	k.Step("policies", k.testManyPolicies)
}

// start starts the agent of the first node in namespaces of its own, as a pod of the DaemonSet has them.
func (k *largeAgent) start(t *testing.T) {
	n := k.Nodes[0]
	k.kubectl(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": %q}, "spec": {"podCIDR": "10.88.0.0/18", "podCIDRs": ["10.88.0.0/18"]}}`, n.Name), "create", "-f", "-")
	k.kubectl("", "patch", "node", n.Name, "--subresource=status", "-p", fmt.Sprintf(`{"status": {"addresses": [{"type": "InternalIP", "address": %q}]}}`, n.Address))
	k.kubectl("", "create", "namespace", Namespace)
	k.kubectl("", "-n", Namespace, "create", "secret", "generic", SecretName, "--from-literal=address=etcd+insecure://"+testcluster.MasterAddress+":2379")
	k.Write("node.yaml", "")
	k.Write("token", testcluster.AdminToken)
	script := strings.NewReplacer("DIR", k.Dir, "SPACES", netspace.Dir, "ACCOUNT", accountDir).Replace(`set -e
mount --make-rprivate /
mount -t proc proc /proc
mkdir DIR/spaces
mount --rbind SPACES DIR/spaces
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mkdir -p SPACES ACCOUNT DIR/bin DIR/conf DIR/image
mount --rbind DIR/spaces SPACES
cp DIR/token DIR/ca.crt ACCOUNT/
cp "$0" DIR/image/vrouter
cp "$0" DIR/image/vrouter-portmap
exec DIR/image/vrouter "$@"`)
	master, _, err := net.SplitHostPort(k.API())
	must.Succeed(t, err)
	cmd := k.CommandIn(n.Namespace, "sh", "-c", script, filepath.Join(os.Getenv("WINDTUNNEL_BIN"), "vrouter"), "k8s", "node",
		"--config", k.Path("node.yaml"), "--node-name", n.Name, "--subnet", testcluster.PodNetwork, "--bin-dir", k.Path("bin"), "--conf-dir", k.Path("conf"))
	cmd.Env = append(cmd.Env, "KUBERNETES_SERVICE_HOST="+master, "KUBERNETES_SERVICE_PORT=6443")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	must.Succeed(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	k.pid = cmd.Process.Pid
}

// logMemory logs the agent's memory, and returns the resident bytes.
func (k *largeAgent) logMemory(t *testing.T, when string) (resident float64) {
	text := string(must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/status", k.pid)))(t))
	bytesOf := func(field string) float64 {
		_, rest, _ := strings.Cut(text, field+":")
		var kB float64
		if _, err := fmt.Sscan(rest, &kB); err != nil {
			t.Fatalf("%s in %q: %v", field, text, err)
		}
		return kB * 1024
	}
	t.Logf("memory %s: resident %.0f MB, anonymous %.0f MB; most until now %.0f MB", when, bytesOf("VmRSS")/1e6, bytesOf("RssAnon")/1e6, bytesOf("VmHWM")/1e6)
	return bytesOf("VmRSS")
}

// table opens a map of the agent; nil: the map does not exist yet.
func (k *largeAgent) table(name string) *ebpf.Map {
	pins, _ := filepath.Glob(fmt.Sprintf("/proc/%d/root/run/vrouter/%s/bpf/g*/%s", k.pid, k.Nodes[0].Name, name))
	if len(pins) != 1 {
		return nil
	}
	return must.Get(ebpf.LoadPinnedMap(pins[0], nil))(k.T)
}

// entries counts the entries of a map.
func (k *largeAgent) entries(name string) (n int) {
	m := k.table(name)
	if m == nil {
		return 0
	}
	defer m.Close()
	var key, value []byte
	for it := m.Iterate(); it.Next(&key, &value); {
		n++
	}
	return n
}

// logTimes logs how long changes took. The slowest must not take longer than the target.
func logTimes(t *testing.T, what string, all []time.Duration, target time.Duration) {
	slices.Sort(all)
	slowest := all[len(all)-1]
	t.Logf("%s: median %v, slowest of %d %v", what, all[len(all)/2].Round(100*time.Microsecond), len(all), slowest.Round(100*time.Microsecond))
	if slowest > target && os.Getenv("WINDTUNNEL_TIMING_TESTS") != "" {
		t.Errorf("%s: the slowest took %v, want at most %v", what, slowest, target)
	}
}

// testManyServices changes the number of endpoints of a service, and waits until the service in the map has this number.
func (k *largeAgent) testManyServices(t *testing.T) {
	endpoints := func(i, count int) (all []any) {
		for j := range count {
			all = append(all, map[string]any{"addresses": []string{fmt.Sprintf("10.88.%d.%d", 64+j*20+i/250, i%250+1)}})
		}
		return all
	}
	k.Create(largeServices, func(i int) (string, map[string]any) {
		return "/api/v1/namespaces/default/services", map[string]any{"metadata": map[string]any{"name": fmt.Sprint("service-", i)}, "spec": map[string]any{"ports": []any{map[string]any{"port": 80}}}}
	})
	const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
	k.Create(largeServices, func(i int) (string, map[string]any) {
		name := fmt.Sprint("service-", i)
		return slices, map[string]any{
			"metadata": map[string]any{"name": name, "labels": map[string]string{"kubernetes.io/service-name": name}}, "addressType": "IPv4",
			"ports": []any{map[string]any{"name": "", "port": 8080, "protocol": "TCP"}}, "endpoints": endpoints(i, largeEndpoints),
		}
	})
	k.Await("the agent has written all services", func() bool {
		return k.entries("services") > largeServices && k.entries("backends") >= largeServices*largeEndpoints
	})
	k.logMemory(t, "when all services are written")
	m := k.table("services")
	defer m.Close()
	key := layout.ServiceKey{Address: layout.AddressOf(netip.MustParseAddr(k.kubectl("", "get", "service", "service-17", "-o", "jsonpath={.spec.clusterIP}"))), Port: layout.Network16(80), Protocol: unix.IPPROTO_TCP}
	var took []time.Duration
	for i := range largeChanges {
		count := largeEndpoints - 1 + i%2
		began := time.Now()
		k.Patch(k.client, slices+"/service-17", map[string]any{"endpoints": endpoints(17, count)})
		must.EventuallyTrue(t, "the change is in the map", func() bool {
			var is layout.Service
			return m.Lookup(key, &is) == nil && int(is.Backends) == count
		})
		took = append(took, time.Since(began))
	}
	logTimes(t, fmt.Sprintf("a change of an endpoint slice among %d services", largeServices), took, serviceDelay)
	if resident := k.logMemory(t, "after the changes"); resident > largeMemory {
		t.Errorf("with %d services and %d endpoints, the agent has %.0f MB of memory, want at most %.0f", largeServices, largeServices*largeEndpoints, resident/1e6, largeMemory/1e6)
	}
}

// Names of namespaces and pods of the large cluster. The pods toPod and fromPod are workloads of the test.
const (
	toPod, fromPod = 0, largeSpaces // in the same namespace
	localPods      = 100            // on the node of the agent
	udpPort        = 9000
)

func largeSpace(pod int) string { return fmt.Sprint("ns", pod%largeSpaces) }

func largeAddress(pod int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 88, byte((pod + 256) >> 8), byte(pod + 256)})
}

// testManyPolicies changes the label of a pod, whose packets to another pod a policy then allows or denies.
func (k *largeAgent) testManyPolicies(t *testing.T) {
	k.makePods()
	k.makePolicies()
	state := model.State{}
	k.fleet.Peek(func(v *fleet.View) { state.Nodes, state.Networks = v.Nodes(), v.Networks() })
	state.Nodes = append(state.Nodes, model.Node{Name: "other", Underlay: []netip.Addr{netip.MustParseAddr(k.Nodes[1].Address)}})
	for i := range largePods {
		p := model.Port{
			Name: fmt.Sprint("port", i), Network: state.Networks[0].Name, Node: k.Nodes[0].Name, IPs: []netip.Addr{largeAddress(i)}, Origin: model.CNI, Owner: fmt.Sprint(i),
			OfPod: &model.Pod{Namespace: largeSpace(i), Name: fmt.Sprint("pod", i)},
		}
		if i >= localPods {
			p.Node = "other"
		}
		p.MAC, p.Attach.Netns = model.PortMAC(p, func(model.MAC) bool { return false }), k.workloads[i]
		state.Ports = append(state.Ports, p)
	}
	must.Succeed(t, k.fleet.Apply(k.ctx, state))
	var attended sync.WaitGroup
	attending, leave := context.WithCancel(k.ctx)
	t.Cleanup(func() { leave(); attended.Wait() })
	attended.Go(func() { k.fleet.Attend(attending, "other", fleet.Alive{Instance: "one"}, func() {}) })
	last := k.datagrams(t)
	silent := func() bool { return time.Since(*last.Load()) > 50*sendEvery }
	must.EventuallyTrue(t, "the policies are in force", silent)
	k.logMemory(t, "with the policies and pods too")
	var allow, deny []time.Duration
	for i := range largeChanges {
		label := map[bool]string{true: "allowed", false: "other"}[i%2 == 0]
		began := time.Now()
		k.Patch(k.client, fmt.Sprintf("/api/v1/namespaces/%s/pods/pod%d", largeSpace(fromPod), fromPod), map[string]any{"metadata": map[string]any{"labels": map[string]string{"app": label}}})
		if label == "allowed" {
			must.EventuallyTrue(t, "packets arrive", func() bool { return last.Load().After(began) })
			allow = append(allow, last.Load().Sub(began))
			continue
		}
		must.EventuallyTrue(t, "no packets arrive", silent)
		deny = append(deny, last.Load().Sub(began))
	}
	among := fmt.Sprintf("a change of a label among %d policies and %d pods", largePolicies, largePods)
	logTimes(t, among+", until the first packet that it allows", allow, largeDelay)
	logTimes(t, among+", until the last packet that it denies", deny, largeDelay)
	k.logMemory(t, "after the changes")
}

// makePods makes pods of largeSpaces namespaces.
func (k *largeAgent) makePods() {
	k.Create(largeSpaces, func(i int) (string, map[string]any) {
		return "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": largeSpace(i), "labels": map[string]string{"team": fmt.Sprint(i % 10)}}}
	})
	k.Create(largeSpaces, func(i int) (string, map[string]any) {
		return "/api/v1/namespaces/" + largeSpace(i) + "/serviceaccounts", map[string]any{"metadata": map[string]any{"name": "default"}}
	})
	k.Create(largePods, func(i int) (string, map[string]any) {
		return "/api/v1/namespaces/" + largeSpace(i) + "/pods", map[string]any{
			"metadata": map[string]any{"name": fmt.Sprint("pod", i), "labels": map[string]string{"app": fmt.Sprint("app", i/50%20), "pod-name": fmt.Sprint("pod", i/4)}},
			"spec": map[string]any{
				"automountServiceAccountToken": false,
				"containers":                   []any{map[string]any{"name": "c", "image": "x", "ports": []any{map[string]any{"name": "http", "containerPort": 8080}}}},
			},
		}
	})
}

// makePolicies makes the policies of the benchmarks in package netpol, except the first one. The first one allows pods with
// the label "allowed" to send to toPod.
func (k *largeAgent) makePolicies() {
	labelled := func(label, value string) map[string]any {
		return map[string]any{"matchLabels": map[string]string{label: value}}
	}
	k.Create(largePolicies, func(i int) (string, map[string]any) {
		spec := map[string]any{
			"podSelector": labelled("app", fmt.Sprint("app", i/50)), "policyTypes": []string{"Ingress", "Egress"},
			"ingress": []any{map[string]any{"ports": []any{map[string]any{"port": "http"}}, "from": []any{
				map[string]any{"podSelector": labelled("app", fmt.Sprint("app", i%20))},
				map[string]any{"namespaceSelector": labelled("team", fmt.Sprint(i%10)), "podSelector": labelled("app", fmt.Sprint("app", i%7))},
			}}},
			"egress": []any{map[string]any{"to": []any{map[string]any{"ipBlock": map[string]any{"cidr": "10.0.0.0/8", "except": []string{fmt.Sprintf("10.0.%d.0/24", i%250)}}}}}},
		}
		if i == 0 {
			spec = map[string]any{"podSelector": labelled("pod-name", "pod0"), "ingress": []any{map[string]any{
				"ports": []any{map[string]any{"port": udpPort, "protocol": "UDP"}}, "from": []any{map[string]any{"podSelector": labelled("app", "allowed")}},
			}}}
		}
		return "/apis/networking.k8s.io/v1/namespaces/" + largeSpace(i) + "/networkpolicies", map[string]any{"metadata": map[string]any{"name": fmt.Sprint("p", i)}, "spec": spec}
	})
}

// sendEvery is the time between two datagrams.
const sendEvery = 500 * time.Microsecond

// datagrams sends datagrams from fromPod to toPod until the step ends. The result has the time at which the last datagram
// arrived, or the start time if none has arrived.
func (k *largeAgent) datagrams(t *testing.T) *atomic.Pointer[time.Time] {
	var last atomic.Pointer[time.Time]
	began := time.Now()
	last.Store(&began)
	to := netip.AddrPortFrom(largeAddress(toPod), udpPort)
	var server, client *net.UDPConn
	k.Await("the workloads have their addresses", func() bool {
		err := inSpace(k.workloads[toPod], func() (err error) {
			server, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(to))
			return err
		})
		return err == nil
	})
	k.Await("the other workload has its address", func() bool {
		err := inSpace(k.workloads[fromPod], func() (err error) {
			client, err = net.DialUDP("udp4", &net.UDPAddr{IP: largeAddress(fromPod).AsSlice()}, net.UDPAddrFromAddrPort(to))
			return err
		})
		return err == nil
	})
	var wait sync.WaitGroup
	end := make(chan struct{})
	t.Cleanup(func() { close(end); server.Close(); client.Close(); wait.Wait() })
	wait.Go(func() {
		for b := make([]byte, 1); ; {
			if _, err := server.Read(b); err != nil {
				return
			}
			now := time.Now()
			last.Store(&now)
		}
	})
	wait.Go(func() {
		for tick := time.NewTicker(sendEvery); ; {
			select {
			case <-tick.C:
				_, _ = client.Write([]byte{1}) // denied datagrams can give errors
			case <-end:
				return
			}
		}
	})
	return &last
}

// inSpace calls f in a network namespace.
func inSpace(name string, f func() error) error {
	return netspace.OwnThread(func() error {
		ns, err := netns.GetFromName(name)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return err
		}
		return f()
	})
}
