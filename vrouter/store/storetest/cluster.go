// Package storetest runs real etcd clusters for tests. Each member has a network
// namespace. Tests can kill members and cut their links.
package storetest

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/internal/lists"
	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// Cluster is an etcd cluster. A bridge in the namespace Hub connects the members'
// namespaces. Clients reach the members from there.
type Cluster struct {
	Hub     netns.NsHandle
	HubName string
	Members []*Member
	tb      testing.TB
	name    string
	number  int64
	guests  int // number of namespaces that Connect has connected
	tls     *Certificates
}

// Member is one etcd server.
type Member struct {
	Name    string
	Address string // of its clients and peers
	space   netns.NsHandle
	dir     string
	log     string
	argv    []string
	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd has ended
}

var clusters atomic.Int64

// network is the address format of the clusters. 198.18.0.0/15 is reserved for
// benchmarks (RFC 2544).
const network = "198.19.%d.%d"

// mostClusters is the number of addresses for clusters that run at the same time.
const mostClusters = 250

// Start starts a cluster. It skips the test if etcd is not installed or the
// user is not root. tls nil: no TLS.
func Start(tb testing.TB, members int, tls *Certificates) *Cluster {
	tb.Helper()
	program, err := exec.LookPath("etcd")
	if err != nil {
		tb.Skip("etcd is not installed (Debian package: etcd-server)")
	}
	if os.Geteuid() != 0 {
		tb.Skip("needs root: makes network namespaces")
	}
	number := clusters.Add(1)
	c := &Cluster{tb: tb, name: fmt.Sprintf("vr-s%d-%d", os.Getpid()%100000, number), number: number % mostClusters, tls: tls}
	c.HubName = c.name + "-hub"
	c.Hub = c.namespace("hub")
	in(tb, c.Hub, func(h *netlink.Handle) {
		bridge := &netlink.Bridge{LinkAttrs: attrs("br")}
		must.Succeed(tb, h.LinkAdd(bridge))
		must.Succeed(tb, h.LinkSetUp(bridge))
		must.Succeed(tb, h.AddrAdd(bridge, address(fmt.Sprintf(network, c.number, 254))))
	})
	var initial []string
	for i := range members {
		m := &Member{Name: fmt.Sprintf("m%d", i), Address: fmt.Sprintf(network, c.number, i+1), dir: tb.TempDir()}
		m.log = filepath.Join(m.dir, "log")
		c.Members = append(c.Members, m)
		initial = append(initial, fmt.Sprintf("%s=http://%s:2380", m.Name, m.Address))
	}
	scheme := "http"
	if tls != nil {
		scheme = "https"
	}
	for i, m := range c.Members {
		c.join(i, m)
		client := scheme + "://" + m.Address + ":2379"
		m.argv = []string{
			program, "--name", m.Name, "--data-dir", filepath.Join(m.dir, "data"), "--log-level", "error",
			"--listen-peer-urls", "http://" + m.Address + ":2380", "--initial-advertise-peer-urls", "http://" + m.Address + ":2380",
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--initial-cluster", strings.Join(initial, ","), "--initial-cluster-state", "new",
			"--heartbeat-interval", "100", "--election-timeout", "1000",
		}
		if tls != nil {
			m.argv = append(m.argv, "--cert-file", tls.ServerCert, "--key-file", tls.ServerKey, "--trusted-ca-file", tls.CA)
			if !tls.Anonymous {
				m.argv = append(m.argv, "--client-cert-auth")
			}
		}
		c.StartMember(i)
	}
	c.awaitClients()
	return c
}

// Endpoints returns the HOST:PORT of the members, separated by commas, as in the
// address of a store.
func (c *Cluster) Endpoints() string {
	return strings.Join(lists.Map(c.Members, func(m *Member) string { return m.Address + ":2379" }), ",")
}

// Connect connects a namespace to the hub by a veth pair, so that it reaches the
// members.
func (c *Cluster) Connect(ns netns.NsHandle) {
	c.tb.Helper()
	c.guests++
	c.cable(fmt.Sprintf("g%d", c.guests), ns, "etcd0", fmt.Sprintf(network, c.number, 100+c.guests))
}

// Metrics returns the metrics of a member. Metrics with the same name are summed
// over their labels.
func (c *Cluster) Metrics(i int) map[string]float64 {
	c.tb.Helper()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return c.Dial(ctx, address)
	}}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	r := must.Get(client.Get("http://" + c.Members[i].Address + ":2379/metrics"))(c.tb)
	defer r.Body.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || name == "#" {
			continue
		}
		if at := strings.LastIndexByte(value, ' '); at >= 0 {
			value = value[at+1:] // a label's value contained a space
		}
		name, _, _ = strings.Cut(name, "{")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			all[name] += n
		}
	}
	must.Succeed(c.tb, lines.Err())
	return all
}

// Kill kills a member.
func (c *Cluster) Kill(i int) {
	c.tb.Helper()
	m := c.Members[i]
	must.Succeed(c.tb, m.cmd.Process.Kill())
	<-m.ended
}

// StartMember starts a member, or restarts one after Kill.
func (c *Cluster) StartMember(i int) {
	c.tb.Helper()
	m := c.Members[i]
	log := must.Get(os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(c.tb)
	defer log.Close()
	m.cmd = exec.Command(m.argv[0], m.argv[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	m.cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH="+runtime.GOARCH)
	started, ended := make(chan error), make(chan struct{})
	m.ended = ended
	go func() {
		defer close(ended)
		// The kernel sends Pdeathsig when the thread that started the process
		// ends. So that thread must stay.
		runtime.LockOSThread()
		if err := netns.Set(m.space); err != nil {
			started <- err
			return
		}
		cmd := m.cmd
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	must.Succeed(c.tb, <-started)
}

// Backup copies the data of a member. No client may write meanwhile.
func (c *Cluster) Backup(i int) (dir string) {
	c.tb.Helper()
	dir = filepath.Join(c.tb.TempDir(), "data")
	must.Succeed(c.tb, os.CopyFS(dir, os.DirFS(filepath.Join(c.Members[i].dir, "data"))))
	return dir
}

// Restore starts a member, which Kill has ended, with the data of Backup; "": without data.
func (c *Cluster) Restore(i int, backup string) {
	c.tb.Helper()
	data := filepath.Join(c.Members[i].dir, "data")
	must.Succeed(c.tb, os.RemoveAll(data))
	if backup != "" {
		must.Succeed(c.tb, os.CopyFS(data, os.DirFS(backup)))
	}
	c.StartMember(i)
}

// CutOff sets the link of a member down; -1: the links of all members.
func (c *Cluster) CutOff(i int) {
	c.links(i, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetDown(l) })
}

// Rejoin undoes CutOff.
func (c *Cluster) Rejoin(i int) {
	c.links(i, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetUp(l) })
}

func (c *Cluster) links(i int, f func(*netlink.Handle, netlink.Link) error) {
	c.tb.Helper()
	in(c.tb, c.Hub, func(h *netlink.Handle) {
		for j := range c.Members {
			if i < 0 || i == j {
				l := must.Get(h.LinkByName(fmt.Sprintf("m%d", j)))(c.tb)
				must.Succeed(c.tb, f(h, l))
			}
		}
	})
}

// Do runs a function on a new thread in the hub's namespace.
func (c *Cluster) Do(f func() error) error {
	return netspace.OwnThread(func() error {
		if err := netns.Set(c.Hub); err != nil {
			return err
		}
		return f()
	})
}

// Dial connects to an address from the hub's namespace.
func (c *Cluster) Dial(ctx context.Context, target string) (conn net.Conn, err error) {
	var d net.Dialer
	err = c.Do(func() (err error) {
		conn, err = d.DialContext(ctx, "tcp", strings.TrimPrefix(strings.TrimPrefix(target, "http://"), "https://"))
		return err
	})
	return conn, err
}

func (c *Cluster) awaitClients() {
	c.tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for _, m := range c.Members {
		for {
			conn, err := c.Dial(context.Background(), m.Address+":2379")
			if err == nil {
				conn.Close()
				break
			}
			if time.Now().After(deadline) {
				text, _ := os.ReadFile(m.log)
				c.tb.Fatalf("etcd %s does not answer: %v\n%s", m.Name, err, text)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// namespace makes a network namespace that is deleted after the test.
func (c *Cluster) namespace(part string) netns.NsHandle {
	c.tb.Helper()
	name := c.name + "-" + part
	ns := must.Get(netspace.Create(name))(c.tb)
	c.tb.Cleanup(func() {
		ns.Close()
		must.Succeed(c.tb, netspace.Delete(name))
	})
	in(c.tb, ns, func(h *netlink.Handle) {
		lo := must.Get(h.LinkByName("lo"))(c.tb)
		must.Succeed(c.tb, h.LinkSetUp(lo))
	})
	return ns
}

// join makes a member's namespace and connects it to the hub.
func (c *Cluster) join(i int, m *Member) {
	c.tb.Helper()
	m.space = c.namespace(m.Name)
	c.tb.Cleanup(func() {
		if m.cmd != nil && m.cmd.Process != nil {
			m.cmd.Process.Kill()
			<-m.ended
		}
	})
	c.cable(fmt.Sprintf("m%d", i), m.space, "eth0", m.Address)
}

// cable connects a namespace to the hub by a veth pair and sets its address.
func (c *Cluster) cable(port string, ns netns.NsHandle, device, at string) {
	c.tb.Helper()
	in(c.tb, c.Hub, func(h *netlink.Handle) {
		must.Succeed(c.tb, h.LinkAdd(&netlink.Veth{LinkAttrs: attrs(port), PeerName: device, PeerNamespace: netlink.NsFd(ns)}))
		l := must.Get(h.LinkByName(port))(c.tb)
		bridge := must.Get(h.LinkByName("br"))(c.tb)
		must.Succeed(c.tb, h.LinkSetMaster(l, bridge))
		must.Succeed(c.tb, h.LinkSetUp(l))
	})
	in(c.tb, ns, func(h *netlink.Handle) {
		l := must.Get(h.LinkByName(device))(c.tb)
		must.Succeed(c.tb, h.AddrAdd(l, address(at)))
		must.Succeed(c.tb, h.LinkSetUp(l))
	})
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

func address(text string) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(text).To4(), Mask: net.CIDRMask(24, 32)}}
}

func in(tb testing.TB, ns netns.NsHandle, f func(*netlink.Handle)) {
	tb.Helper()
	h := must.Get(netspace.Links(ns))(tb)
	defer h.Close()
	f(h)
}
