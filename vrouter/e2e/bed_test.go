// Package e2e tests the vrouter program as people run it: agents in network
// namespaces, told what to do by the command line, with real traffic between
// workloads.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

var program string // the vrouter binary under test

// patience multiplies time limits. It is larger in a guest, whose CPUs are emulated.
var patience time.Duration = 1

func TestMain(m *testing.M) {
	code := func() int {
		if kerneltest.In() {
			if err := kerneltest.Prepare(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
			program, patience = kerneltest.Program, 10
			os.Setenv("PATH", "/bin:"+os.Getenv("PATH"))
			return m.Run()
		}
		if os.Geteuid() != 0 {
			return m.Run() // every test skips
		}
		dir, err := os.MkdirTemp("", "vrouter-e2e-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if program, err = testprogram.Build(dir, "vrouter"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		waitTogether()
		return max(m.Run(), endShared())
	}()
	os.Exit(code)
}

// waitTogether runs twice as many tests side by side as there are CPUs, unless
// somebody said how many: they mostly wait, for daemons and for leases.
func waitTogether() {
	flag.Parse()
	if n := flag.Lookup("test.parallel"); n.Value.String() == n.DefValue {
		n.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
}

var beds atomic.Int64

// bed is a few nodes on one switch: each a network namespace with a device
// "fab" and an agent.
type bed struct {
	t     testing.TB
	name  string
	dir   string
	nodes []*node
	sw    netns.NsHandle
	state model.State
	runs  bool // its agents run
}

type node struct {
	bed    *bed
	index  int
	name   string
	space  string
	ns     netns.NsHandle
	v4, v6 netip.Addr
	agent  *exec.Cmd
	config map[string]any
	bare   bool     // no agent runs on it
	under  []string // program and arguments that start the agent; nil: none

	dropped map[string]uint64 // on the underlay by reason, before the subtest of bed.run
}

type options struct {
	nodes   int
	mtu     int
	offload string // none, tcp, tunnel
	routed  bool   // each node has a separate link, and the namespace sw is the router between the links
	bare    int    // so many nodes, the last ones, run no agent
	config  map[string]any
}

// limits returns limits that are enough for most tests, with changes. An agent reads its tables at
// each start and each check, and reading an empty table takes as long as reading a full one of the
// same size.
func limits(changes map[string]int) map[string]int {
	all := map[string]int{
		"routes": 4096, "prefixes": 1024, "bridge": 4096, "nexthops": 1024, "vifs": 256, "labels": 1024, "remotes": 512, "flows": 16384,
	}
	maps.Copy(all, changes)
	return all
}

// newBed makes the namespaces and the switch between them; agents are not
// started yet.
func newBed(t testing.TB, o options) *bed {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes network namespaces and loads eBPF programs")
	}
	if !kerneltest.In() { // a guest has no other programs, and its tests need none
		needs(t, "ip")
	}
	if o.nodes == 0 {
		o.nodes = 2
	}
	if o.mtu == 0 {
		o.mtu = 1500
	}
	b := &bed{t: t, name: fmt.Sprintf("vr-e%d-%d", os.Getpid()%100000, beds.Add(1)), dir: t.TempDir()}
	b.sw = b.namespace("sw")
	h := b.handle(b.sw)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "br", o.mtu
	b.must(h.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	br, err := h.LinkByName("br")
	b.must(err)
	b.must(h.LinkSetUp(br))
	for i := range o.nodes {
		b.addNode(i, o, h, br)
	}
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	must.Succeed(b.t, err)
}

// namespace makes a named namespace that goes with the test.
func (b *bed) namespace(part string) netns.NsHandle {
	b.t.Helper()
	name := b.name + "-" + part
	ns, err := netspace.Create(name)
	b.must(err)
	b.t.Cleanup(func() {
		ns.Close()
		if err := netspace.Delete(name); err != nil {
			b.t.Error(err)
		}
	})
	b.must(netspace.OwnThread(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0o644)
	}))
	h := b.handle(ns)
	lo, err := h.LinkByName("lo")
	b.must(err)
	b.must(h.LinkSetUp(lo))
	return ns
}

func (b *bed) handle(ns netns.NsHandle) *netlink.Handle {
	b.t.Helper()
	h, err := netspace.Links(ns)
	b.must(err)
	b.t.Cleanup(h.Close)
	return h
}

func (b *bed) addNode(i int, o options, sw *netlink.Handle, br netlink.Link) {
	b.t.Helper()
	n := &node{
		bed: b, index: i, name: string(rune('a' + i)), bare: i >= o.nodes-o.bare,
		v4: netip.AddrFrom4([4]byte{172, 30, 0, byte(i + 1)}),
		v6: netip.MustParseAddr(fmt.Sprintf("fd30::%d", i+1)),
	}
	if o.routed {
		n.v4 = netip.AddrFrom4([4]byte{172, 30, byte(i + 1), 1})
		n.v6 = netip.MustParseAddr(fmt.Sprintf("fd30:0:0:%d::1", i+1))
	}
	n.space = b.name + "-" + n.name
	n.ns = b.namespace(n.name)
	h := b.handle(n.ns)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = "fab", o.mtu
	attrs.HardwareAddr = net.HardwareAddr{2, 0xfa, 0, 0, 0, byte(i + 1)}
	peer := fmt.Sprintf("port%d", i)
	b.must(h.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(int(b.sw))}))
	port, err := sw.LinkByName(peer)
	b.must(err)
	b.must(sw.LinkSetMTU(port, o.mtu))
	if !o.routed {
		b.must(sw.LinkSetMaster(port, br))
	}
	b.must(sw.LinkSetUp(port))
	fab, err := h.LinkByName("fab")
	b.must(err)
	b.must(h.LinkSetUp(fab))
	for _, a := range []netip.Prefix{netip.PrefixFrom(n.v4, 24), netip.PrefixFrom(n.v6, 64)} {
		if a.Addr().Is6() && o.mtu < 1280 {
			continue // IPv6 refuses such a device (RFC 8200)
		}
		addr := &netlink.Addr{IPNet: ipNet(a), Flags: 0x02 /* IFA_F_NODAD */}
		if a.Addr().Is4() {
			addr.Flags = 0
		}
		b.must(h.AddrAdd(fab, addr))
	}
	if o.routed {
		b.route(n, sw, port, h, fab)
	}
	n.offload(o.offload)
	if bigFabric {
		b.raise(b.sw, n.ns)
	}
	n.config = map[string]any{
		"node": n.name, "netns": n.space, "fabric": []string{"fab"},
		"socket": filepath.Join(b.dir, n.name+".sock"), "state_dir": filepath.Join(b.dir, "state-"+n.name),
		"run_dir": filepath.Join(b.dir, "run-"+n.name), "limits": limits(nil),
	}
	if kerneltest.In() {
		n.config["workload_device"] = "auto" // netkit if the guest's kernel has it
	}
	for k, v := range o.config {
		n.config[k] = v
	}
	b.nodes = append(b.nodes, n)
}

// locator returns the prefix that the router routes to the node (options.routed).
func (n *node) locator() netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("fd77:0:0:%x::/64", n.index+1))
}

// route makes the namespace sw the router of a node's link (options.routed). port is the
// router's device on the link, and fab the node's.
func (b *bed) route(n *node, sw *netlink.Handle, port netlink.Link, h *netlink.Handle, fab netlink.Link) {
	b.t.Helper()
	for _, family := range []struct {
		own  netip.Addr
		bits int
	}{{n.v4, 24}, {n.v6, 64}} {
		bytes := family.own.AsSlice()
		bytes[len(bytes)-1] = 254
		gateway, _ := netip.AddrFromSlice(bytes)
		b.must(sw.AddrAdd(port, &netlink.Addr{IPNet: ipNet(netip.PrefixFrom(gateway, family.bits)), Flags: map[bool]int{true: 0x02 /* IFA_F_NODAD */}[gateway.Is6()]}))
		everything, _ := gateway.Prefix(0)
		b.must(h.RouteAdd(&netlink.Route{Dst: ipNet(everything), Gw: gateway.AsSlice(), LinkIndex: fab.Attrs().Index}))
	}
	b.must(sw.RouteAdd(&netlink.Route{Dst: ipNet(n.locator()), Gw: n.v6.AsSlice(), LinkIndex: port.Attrs().Index}))
	testprogram.Output(b.t, "ip netns exec "+b.name+"-sw sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// offload sets what the node's NIC segments.
func (n *node) offload(profile string) {
	n.bed.t.Helper()
	off := map[string][]string{
		"":       nil,
		"tunnel": nil,
		"tcp":    {"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-gre-segmentation", "tx-gre-csum-segmentation"},
		"none":   {"tx", "tso", "gso", "tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-gre-segmentation", "tx-gre-csum-segmentation"},
	}[profile]
	if off == nil {
		return
	}
	needs(n.bed.t, "ethtool")
	args := []string{"netns", "exec", n.space, "ethtool", "-K", "fab"}
	for _, f := range off {
		args = append(args, f, "off")
	}
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.bed.t.Skipf("set the offload profile %s: %v: %s", profile, err, out)
	}
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	must.Succeed(t, err)
}

// configFile is the node's configuration.
func (n *node) configFile() string { return filepath.Join(n.bed.dir, n.name+".yaml") }

// launch starts the node's agent.
func (n *node) launch() error {
	file := n.configFile()
	writeJSON(n.bed.t, file, n.config)
	command := append(slices.Clone(n.under), program, "agent", "--config", file)
	agent := exec.Command(command[0], command[1:]...)
	if err := startLogged(agent, filepath.Join(n.bed.dir, n.name+".log")); err != nil {
		return err
	}
	n.agent = agent
	return nil
}

// startLogged starts a process and appends its output to a file. The kernel kills the
// process when the test process ends.
func startLogged(cmd *exec.Cmd, path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return started(cmd)
}

// start starts the node's agent and waits until it answers.
func (n *node) start() {
	n.bed.t.Helper()
	n.bed.must(n.launch())
	n.await()
}

// await waits until the node's agent answers.
func (n *node) await() {
	n.bed.t.Helper()
	soon(n.bed.t, "the agent of node "+n.name+" answers", func() error {
		if _, err := ask(n, (*api.Client).Status); err != nil {
			return fmt.Errorf("%w\n%s", err, n.log())
		}
		return nil
	})
}

// starts are processes to start, each answered by its error. One thread starts
// them all and never ends: a process that dies with its parent dies with the
// thread that started it.
var starts = func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
}()

func started(cmd *exec.Cmd) error {
	done := make(chan error)
	starts <- func() { done <- cmd.Start() }
	return <-done
}

// readable is what a file has so far.
func readable(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

func (n *node) log() string {
	data, _ := os.ReadFile(filepath.Join(n.bed.dir, n.name+".log"))
	if len(data) > 4000 {
		data = data[len(data)-4000:]
	}
	return string(data)
}

// kill ends the agent with a signal and waits for it.
func (n *node) kill(s syscall.Signal) {
	n.bed.t.Helper()
	if n.agent == nil {
		return
	}
	n.bed.must(n.agent.Process.Signal(s))
	n.agent.Wait()
	n.agent = nil
}

// try runs a command of the program against the node's agent.
func (n *node) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience*60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{"--socket", n.config["socket"].(string), "--timeout", (patience * 10 * time.Second).String()}, args...)...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("vrouter %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

func (n *node) run(args ...string) string {
	n.bed.t.Helper()
	out, err := n.try(args...)
	if err != nil {
		n.bed.t.Fatalf("node %s: %v\n%s", n.name, err, n.log())
	}
	return out
}

// ask calls the API of the node's agent, which takes a tenth of the CPU time of a run of the program.
func ask[R any](n *node, call func(*api.Client, context.Context) (R, error)) (R, error) {
	c := api.Dial(n.config["socket"].(string)).Within(60 * time.Second)
	defer c.Close()
	return call(c, context.Background())
}

// answer returns the answer of the node's agent to a call of its API.
func answer[R any](n *node, call func(*api.Client, context.Context) (R, error)) R {
	n.bed.t.Helper()
	r, err := ask(n, call)
	if err != nil {
		n.bed.t.Fatalf("node %s: %v\n%s", n.name, err, n.log())
	}
	return r
}

// table returns the rows of a table of the node's agent, of all networks.
func table[R any](n *node, list func(*api.Client, context.Context, uint32) ([]R, error)) []R {
	n.bed.t.Helper()
	return answer(n, func(c *api.Client, ctx context.Context) ([]R, error) { return list(c, ctx, 0) })
}

// vif returns the vif of a port.
func (n *node) vif(port string) inspect.Vif {
	n.bed.t.Helper()
	for _, v := range table(n, (*api.Client).Vifs) {
		if v.Port == port {
			return v
		}
	}
	n.bed.t.Fatalf("node %s has no vif of port %s", n.name, port)
	return inspect.Vif{}
}

// set makes a state the desired state of the node's agent.
func (n *node) set(s model.State) {
	n.bed.t.Helper()
	answer(n, func(c *api.Client, ctx context.Context) (api.Applied, error) { return c.PutState(ctx, s) })
}

// rows reads a listing as JSON.
func rows[R any](n *node, args ...string) []R {
	n.bed.t.Helper()
	return one[[]R](n, args...)
}

// one reads what a command shows as JSON.
func one[R any](n *node, args ...string) R {
	n.bed.t.Helper()
	var r R
	out := n.run(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		n.bed.t.Fatalf("vrouter %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return r
}

// up starts every agent and gives all the bed's state. If the agents run, it only gives the
// state.
func (b *bed) up() {
	b.t.Helper()
	if !b.runs {
		b.launch()
	}
	b.apply()
}

// launch starts every agent.
func (b *bed) launch() {
	b.t.Helper()
	b.t.Cleanup(b.down)
	b.runs = true
	for _, n := range b.agents() {
		b.must(n.launch())
	}
	for _, n := range b.agents() {
		n.await()
	}
}

// agents returns the nodes that run an agent.
func (b *bed) agents() []*node {
	return slices.DeleteFunc(slices.Clone(b.nodes), func(n *node) bool { return n.bare })
}

// run runs a subtest on the bed's nodes. All subtests use the same agents, because the kernel
// verifies the programs at each start of an agent, which takes 0.7 s of CPU time.
func (b *bed) run(name string, f func(t *testing.T)) {
	b.t.Helper()
	whole := b.t.(*testing.T)
	if !b.runs {
		b.launch()
	}
	whole.Run(name, func(t *testing.T) {
		b.t = t
		defer func() { b.t = whole }()
		b.begin()
		defer b.clear()
		f(t)
	})
}

// begin makes drops count from now on, on all nodes.
func (b *bed) begin() {
	b.t.Helper()
	for _, n := range b.agents() {
		n.forgetDrops()
	}
}

// forgetDrops makes drops count from now on.
func (n *node) forgetDrops() {
	n.dropped = map[string]uint64{}
	for _, d := range answer(n, (*api.Client).Drops) {
		if d.Vif == 0 {
			n.dropped[d.Reason] = d.Packets
		}
	}
}

// clear leaves only the nodes in the agents' state.
func (b *bed) clear() {
	b.t.Helper()
	b.state = model.State{Nodes: b.nodesOf(false)}
	b.apply()
	b.state = model.State{}
}

func (b *bed) apply() {
	b.t.Helper()
	for _, n := range b.agents() {
		n.set(b.state)
	}
}

// down removes all nodes in parallel, but those with an embedded store last: the command remove
// of the other nodes would wait 3 s for their store.
func (b *bed) down() {
	for _, embedded := range []bool{false, true} {
		var wait sync.WaitGroup
		for _, n := range b.agents() {
			if (n.config["store"] == "embedded") == embedded {
				wait.Go(n.down)
			}
		}
		wait.Wait()
	}
}

// down removes the node. An agent with a shared store would wait for the store, so down kills
// it first.
func (n *node) down() {
	end := func() {
		if n.agent != nil {
			n.agent.Process.Kill()
			n.agent.Wait()
			n.agent = nil
		}
	}
	if n.config["store"] != nil {
		end()
	}
	if n.bed.t.Failed() {
		n.bed.t.Logf("node %s: %s", n.name, n.log())
	}
	if _, err := ask(n, func(c *api.Client, ctx context.Context) (any, error) {
		return nil, c.Shutdown(ctx, api.ShutdownRequest{Remove: true, WithStore: true})
	}); err != nil { // no agent runs
		if out, err := n.remove("--with-store"); err != nil {
			n.bed.t.Errorf("remove node %s: %v\n%s", n.name, err, out)
		}
	}
	end()
}

// remove takes a node down by hand.
func (n *node) remove(flags ...string) (string, error) {
	flags = append([]string{"remove", "--config", n.configFile()}, flags...)
	out, err := exec.Command(program, flags...).CombinedOutput()
	return string(out), err
}

// ip runs the command ip in the node's namespace, and returns its output.
func (n *node) ip(line string) string {
	n.bed.t.Helper()
	return testprogram.Output(n.bed.t, "ip -n "+n.space+" "+line)
}

// exec runs a command in the node's namespace, and returns its output.
func (n *node) exec(line string) string {
	n.bed.t.Helper()
	return testprogram.Output(n.bed.t, "ip netns exec "+n.space+" "+line)
}

// in runs f on a thread of a namespace; sockets made in it stay there.
func in(ns netns.NsHandle, f func() error) error {
	return netspace.OwnThread(func() error {
		if err := netns.Set(ns); err != nil {
			return err
		}
		return f()
	})
}

// nodesOf is the state's nodes, all with these encapsulations and this family
// of underlay. If encaps is empty, they offer all tunnels.
func (b *bed) nodesOf(v6 bool, encaps ...model.Encapsulation) []model.Node {
	if encaps == nil {
		encaps = []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE, model.VXLAN}
	}
	var all []model.Node
	for _, n := range b.nodes {
		addr := n.v4
		if v6 {
			addr = n.v6
		}
		all = append(all, model.Node{Name: n.name, Underlay: []netip.Addr{addr}, Encapsulations: encaps})
	}
	return all
}

// workload is a namespace with a port in it.
type workload struct {
	bed  *bed
	port model.Port
	ns   netns.NsHandle
}

// workload adds a namespace, and its port to the state.
func (b *bed) workload(name, network string, node int, ips ...string) *workload {
	b.t.Helper()
	w := &workload{bed: b, ns: b.namespace(name)}
	w.port = model.Port{
		Name: name, Network: network, Node: b.nodes[node].name,
		MAC:    model.MAC{2, 0, 0, byte(len(b.state.Ports) >> 8), byte(len(b.state.Ports)), byte(node + 1)},
		Attach: model.Attachment{Netns: b.name + "-" + name},
	}
	for _, ip := range ips {
		w.port.IPs = append(w.port.IPs, netip.MustParseAddr(ip))
	}
	b.state.Ports = append(b.state.Ports, w.port)
	return w
}

func (w *workload) ip(version int) netip.Addr {
	for _, a := range w.port.IPs {
		if a.Is4() == (version == 4) {
			return a
		}
	}
	w.bed.t.Fatalf("workload %s has no IPv%d address", w.port.Name, version)
	return netip.Addr{}
}

var errTimeout = errors.New("timed out")

func subnets(texts ...string) (all []netip.Prefix) {
	for _, s := range texts {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func addresses(texts ...string) (all []netip.Addr) {
	for _, s := range texts {
		all = append(all, netip.MustParseAddr(s))
	}
	return all
}
