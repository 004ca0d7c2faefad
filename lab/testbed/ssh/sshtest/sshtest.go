// Package sshtest has hosts with sshd for tests. The hosts are network namespaces.
package sshtest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/internal/setup"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
	"windtunnel/lab/testbed/netns"
)

// Site is hosts with sshd: namespaces joined by a data link, or by a switch if they are
// more than two. The test reaches each over a separate link. Its folder has the files key
// (of root on all hosts), known (the host keys) and program (the folder for the windtunnel
// program, which does not exist yet).
type Site struct {
	Hosts  []Host
	Switch *space.Space // nil for two hosts
	t      *testing.T
	dir    string
	number int // its addresses and names contain it
}

// Host is a host of a site.
type Host struct {
	Name, Address string
	CPUs          string // one CPU
	Data, Data6   string // addresses of the device "data"
	Space         *space.Space
}

const sshd = "/usr/sbin/sshd"

// networks is the number of sites that can exist at once on a machine. Each has a /24 of
// 198.18.0.0/15, which is reserved for benchmarks (RFC 2544).
const networks = 512

// takeNumber gives the site a number that no other site of this machine has. An abstract
// socket marks it: the kernel removes it with the process.
func (s *Site) takeNumber() {
	s.t.Helper()
	for i := range networks {
		n := (os.Getpid() + i) % networks
		if mark, err := net.Listen("unix", fmt.Sprintf("@wt-sshtest-%d", n)); err == nil {
			s.t.Cleanup(func() { mark.Close() })
			s.number = n
			return
		}
	}
	s.t.Fatalf("all %d networks of sites are in use", networks)
}

// New starts the named hosts. options are lines for sshd's configuration. The hosts end
// with the test.
func New(t *testing.T, names []string, options ...string) *Site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	for _, program := range []string{sshd, "ssh", "ssh-keygen"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(filepath.Base(program) + " is not installed; get it with: " + setup.Command(program))
		}
	}
	s := &Site{t: t, dir: t.TempDir()}
	s.takeNumber()
	s.Write("authorized", s.WriteKey("key"))
	for i, name := range names {
		s.addHost(i, name)
	}
	if len(names) == 2 {
		s.Must(s.Hosts[0].Space.Pair(space.Veth{Name: "data", PeerName: "data", MTU: 1500}, s.Hosts[1].Space))
	} else {
		s.addSwitch()
	}
	for _, h := range s.Hosts {
		s.readyData(h)
	}
	s.Must(os.MkdirAll("/run/sshd", 0o755)) // sshd's empty directory, which its service makes
	for i := range s.Hosts {
		s.startServer(i, options)
	}
	return s
}

// WriteHosts writes a hosts file with the given first lines, and returns its path.
func (s *Site) WriteHosts(first string) string {
	s.t.Helper()
	text := first + "\nknown_hosts: " + s.Path("known") + "\nhosts:\n"
	for _, h := range s.Hosts {
		text += fmt.Sprintf("  - {name: %s, address: %s, user: root, key: %s, directory: %s, cpus: %q, data: %s, data6: %q}\n",
			h.Name, h.Address, s.Path("key"), s.Path("program"), h.CPUs, h.Data, h.Data6)
	}
	s.Write("hosts.yaml", text)
	return s.Path("hosts.yaml")
}

// Must ends the test if there is an error.
func (s *Site) Must(err error) {
	s.t.Helper()
	must.Succeed(s.t, err)
}

// Path returns the path of a file in the site's folder.
func (s *Site) Path(name string) string { return filepath.Join(s.dir, name) }

// Write writes a file in the site's folder.
func (s *Site) Write(name, text string) { s.Must(os.WriteFile(s.Path(name), []byte(text), 0o600)) }

// WriteKey makes a private key, writes it to a file in the site's folder, and returns the public
// key.
func (s *Site) WriteKey(name string) string {
	s.t.Helper()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.Path(name)).CombinedOutput(); err != nil {
		s.t.Fatalf("make a key: %v: %s", err, out)
	}
	public, err := os.ReadFile(s.Path(name + ".pub"))
	s.Must(err)
	return string(public)
}

// LinkPrefix begins the names of the devices that sites make in the host's network namespace.
const LinkPrefix = "wts"

// LinkTo names the test's end of the link to a host.
func (s *Site) LinkTo(host string) string {
	return fmt.Sprintf(LinkPrefix+"%d-%d%s", os.Getpid(), s.number, host)
}

// address returns the address with a last byte in the site's network between the test and the
// hosts.
func (s *Site) address(last int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+s.number/256, s.number%256, last)
}

// addHost makes a host's namespace and its link to the test.
func (s *Site) addHost(i int, name string) {
	s.t.Helper()
	sp, err := space.Create(fmt.Sprintf("wt-ssh%d-%d-%s", os.Getpid(), s.number, name))
	s.Must(err)
	s.t.Cleanup(func() {
		sp.Close()
		if err := space.Delete(sp.Name); err != nil {
			s.t.Error(err)
		}
	})
	here, err := space.Open("")
	s.Must(err)
	link := s.LinkTo(name)
	s.t.Cleanup(func() {
		if err := errors.Join(here.Remove(link), here.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.Must(here.Pair(space.Veth{Name: link, PeerName: "mgmt", MTU: 1500}, sp))
	s.Must(here.Address(link, netip.MustParsePrefix(s.address(4*i+1)+"/30")))
	s.Must(here.Up(link))
	s.Must(sp.Address("mgmt", netip.MustParsePrefix(s.address(4*i+2)+"/30")))
	s.Must(sp.Up("mgmt"))
	s.Hosts = append(s.Hosts, Host{
		Name: name, Address: s.address(4*i + 2), CPUs: fmt.Sprint(i % runtime.NumCPU()),
		Data: fmt.Sprintf("10.77.0.%d", i+1), Data6: fmt.Sprintf("fd00:77::%d", i+1), Space: sp,
	})
}

// readyData gives a host's data device its addresses, and sets it up.
func (s *Site) readyData(h Host) {
	s.t.Helper()
	s.Must(h.Space.Address("data", netip.MustParsePrefix(h.Data+"/24")))
	s.Must(h.Space.Address("data", netip.MustParsePrefix(h.Data6+"/64")))
	s.Must(h.Space.Up("data"))
}

// EmulateNICs gives both hosts of a pair data devices that behave as the lab's own NICs (fabric
// kind veth, offload tcp). A veth loses its program when it moves to another namespace. So the
// data device is a macvlan, and the veth below it stays.
func (s *Site) EmulateNICs() {
	s.t.Helper()
	s.Must(s.Hosts[0].Space.Remove("data"))
	s.Must(s.Hosts[0].Space.Pair(space.Veth{Name: "nic", PeerName: "nic", MTU: 1500}, s.Hosts[1].Space))
	for i, h := range s.Hosts {
		features, err := h.Space.OffloadsOn("nic")
		s.Must(err)
		s.Must(h.Space.Offloads("nic", testbed.NICOffloads(features, suite.OffloadTCP)))
		s.Must(netns.CompleteTransmit(h.Space, "nic"))
		s.Must(h.Space.SteerReceive("nic", 1, []int{i % runtime.NumCPU()}))
		s.Must(h.Space.Up("nic"))
		nic, err := h.Space.Link("nic")
		s.Must(err)
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex = "data", nic.Attrs().Index
		s.Must(h.Space.Add(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_PASSTHRU}))
		s.readyData(h)
	}
}

// addSwitch joins the data devices of the hosts by a bridge. The bridge's port to host c is
// named c.
func (s *Site) addSwitch() {
	s.t.Helper()
	sp, err := space.Create(fmt.Sprintf("wt-ssh%d-%d-switch", os.Getpid(), s.number))
	s.Must(err)
	s.Switch = sp
	s.t.Cleanup(func() {
		sp.Close()
		if err := space.Delete(sp.Name); err != nil {
			s.t.Error(err)
		}
	})
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "switch"
	s.Must(sp.Add(&netlink.Bridge{LinkAttrs: attrs}))
	s.Must(sp.Up("switch"))
	for i, h := range s.Hosts {
		s.Must(s.Hosts[i].Space.Pair(space.Veth{Name: "data", PeerName: h.Name, MTU: 1500}, sp))
		s.Must(sp.Enslave(h.Name, "switch"))
		s.Must(sp.Up(h.Name))
	}
}

// Limit limits what a device sends to a rate in bit/s, by a token bucket (TBF).
func (s *Site) Limit(sp *space.Space, device string, rate uint64) {
	s.t.Helper()
	l, err := sp.Link(device)
	s.Must(err)
	const burst = 128 << 10 // two superframes
	s.Must(sp.Links.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
		Rate:       rate / 8, Buffer: uint32(burst * 8e6 / float64(rate) * netlink.TickInUsec()), Limit: 1 << 20,
	}))
}

// startServer starts sshd on a host, and adds its key to the known keys.
func (s *Site) startServer(i int, options []string) {
	s.t.Helper()
	h := s.Hosts[i]
	key := s.WriteKey("host_" + h.Name)
	known, err := os.OpenFile(s.Path("known"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	s.Must(err)
	fmt.Fprintf(known, "%s,%s %s", h.Address, h.Data, key)
	s.Must(known.Close())
	config := append([]string{
		"HostKey " + s.Path("host_"+h.Name), "PidFile none", "AuthorizedKeysFile " + s.Path("authorized"),
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "PermitRootLogin prohibit-password",
	}, options...)
	s.Write("sshd_"+h.Name, strings.Join(config, "\n")+"\n")
	cmd := exec.Command(sshd, "-D", "-e", "-f", s.Path("sshd_"+h.Name))
	log, err := os.Create(s.Path("log_" + h.Name))
	s.Must(err)
	defer log.Close()
	cmd.Stderr, cmd.SysProcAttr = log, &syscall.SysProcAttr{Setpgid: true}
	s.Must(s.Hosts[i].Space.Do(cmd.Start))
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		s.awaitNoSessions(i)
		if said, err := os.ReadFile(log.Name()); s.t.Failed() && err == nil {
			s.t.Logf("sshd of host %s:\n%s", h.Name, said)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", h.Address+":22", time.Second)
		if err == nil {
			c.Close()
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("sshd of host %s does not answer: %v", h.Name, err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); len(s.Processes(i)) != 1; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) { // a process of the connection above is left
			s.t.Fatalf("host %s has the processes %v, want sshd alone", h.Name, s.Processes(i))
		}
	}
}

// hasThreadIn reports whether a thread of a process is in a network namespace. In a Go program
// the main thread and the other threads can be in different namespaces.
func hasThreadIn(pid int, namespace uint32) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/ns/net", pid))
	return slices.ContainsFunc(threads, func(path string) bool {
		var st syscall.Stat_t
		return syscall.Stat(path, &st) == nil && uint32(st.Ino) == namespace
	})
}

// Processes lists the processes in a host's namespace.
func (s *Site) Processes(i int) (pids []int) {
	s.t.Helper()
	own, err := s.Hosts[i].Space.Inode()
	s.Must(err)
	all, err := procfs.AllProcs()
	s.Must(err)
	for _, p := range all {
		// The test is not a process of the host, but its threads can be in the namespace.
		if p.PID != os.Getpid() && hasThreadIn(p.PID, own) {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// awaitNoSessions waits until no process is left on a host whose sshd has ended.
func (s *Site) awaitNoSessions(i int) {
	for deadline := time.Now().Add(20 * time.Second); len(s.Processes(i)) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Errorf("processes %v are left on host %s", s.Processes(i), s.Hosts[i].Name)
			return
		}
	}
}
