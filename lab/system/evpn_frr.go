package system

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// Paths of FRR's daemons in Debian. Their directory is not in PATH.
const (
	frrZebra = "/usr/lib/frr/zebra"
	frrBGP   = "/usr/lib/frr/bgpd"
	frrLeast = "7.5" // Debian 11's

	evpnAS    = 65000 // private use, RFC 6996
	evpnReady = 9 * time.Second
)

// frrUser is the user that the packages create for FRR's daemons. The daemons refuse
// to start for a user outside the group frrvty, even for root. They change to this
// user after their start.
const frrUser = "frr"

// frrDir returns the directory for the sockets, process IDs and configuration of FRR
// on a node. Its owner is frrUser, who may not enter the node's home. Therefore the
// daemons access the directory by a bind mount at frrSeen.
func frrDir(n *Node) string { return filepath.Join(space.Home(n.Name), "frr") }

// frrSeen is the path at which the daemons access frrDir. It exists on every system,
// and FRR's daemons always write crash logs below it (/var/tmp/frr).
const frrSeen = "/var/tmp"

// makeFRRDir makes the directory with the daemons' configuration.
func makeFRRDir(n *Node, zebra, bgpd string) error {
	if _, err := n.home(); err != nil {
		return err
	}
	who, err := user.Lookup(frrUser)
	if err != nil {
		return fmt.Errorf("find the user of FRR's daemons; install the package frr: %w", err)
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return fmt.Errorf("user %s has the id %q: %w", frrUser, who.Uid, err)
	}
	dir := frrDir(n)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory for FRR's files: %w", err)
	}
	for name, text := range map[string]string{"zebra.conf": zebra, "bgpd.conf": bgpd, "vtysh.conf": ""} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, uid, -1)); err != nil {
			return fmt.Errorf("write FRR's configuration: %w", err)
		}
	}
	if err := os.Chown(dir, uid, -1); err != nil {
		return fmt.Errorf("change the owner of FRR's files to %s: %w", frrUser, err)
	}
	return nil
}

// startFRR starts zebra, which manages the kernel's tables, and bgpd, with these configurations.
func startFRR(n *Node, zebra, bgpd string) error {
	if err := makeFRRDir(n, zebra, bgpd); err != nil {
		return err
	}
	if err := n.start(daemon{name: "zebra", argv: frrDaemon(n, frrZebra), ready: frrAnswers(n, "zebra")}); err != nil {
		return err
	}
	listen := n.Underlay[n.Index].String()
	return n.start(daemon{name: "bgpd", argv: append(frrDaemon(n, frrBGP), "-l", listen), ready: frrAnswers(n, "bgpd")})
}

// frrDaemon returns a daemon's command line. The daemon has all its files in frrDir
// and opens no VTY port. Only the daemon sees the mount at frrSeen. The mount ends
// with the daemon, even after SIGKILL.
func frrDaemon(n *Node, path string) []string {
	name := filepath.Base(path)
	file := func(name string) string { return filepath.Join(frrSeen, name) }
	return []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" ` + frrSeen + ` && exec "$@"`, frrDir(n),
		path, "-u", frrUser, "-g", frrUser, "--vty_socket", frrSeen, "-z", file("zserv.api"),
		"-f", file(name + ".conf"), "-i", file(name + ".pid"), "-P", "0", "--log", "stdout"}
}

// bgpConfig returns the configuration of a node's bgpd. All other nodes are internal
// peers. bgpd announces the addresses of every VNI.
func bgpConfig(self netip.Addr, peers []netip.Addr) string {
	var b strings.Builder
	fmt.Fprintf(&b, "router bgp %d\n bgp router-id %s\n no bgp default ipv4-unicast\n timers bgp 1 3\n", evpnAS, self)
	b.WriteString(" neighbor NODES peer-group\n")
	fmt.Fprintf(&b, " neighbor NODES remote-as %d\n neighbor NODES update-source %s\n neighbor NODES timers connect 1\n neighbor NODES advertisement-interval 0\n", evpnAS, self)
	for _, p := range peers {
		fmt.Fprintf(&b, " neighbor %s peer-group NODES\n", p)
	}
	b.WriteString(" address-family l2vpn evpn\n  neighbor NODES activate\n  advertise-all-vni\n exit-address-family\n")
	return b.String()
}

// others returns the underlay addresses of all nodes but this one.
func others(n *Node) []netip.Addr {
	var addrs []netip.Addr
	for _, a := range n.peers() {
		addrs = append(addrs, a)
	}
	return addrs
}

func vtysh(n *Node, daemon, command string) (string, error) {
	return n.command("vtysh", "--config_dir", frrDir(n), "--vty_socket", frrDir(n), "-d", daemon, "-c", command)
}

func frrAnswers(n *Node, name string) func() error {
	return func() error {
		_, err := vtysh(n, name, "show version")
		return err
	}
}

// awaitEVPN waits until the kernel sends frames for unknown destinations to every
// other node. zebra adds a node to the forwarding table when bgpd has received the
// node's route (the inclusive multicast route, RFC 7432, section 7.3).
func awaitEVPN(n *Node, within time.Duration) error {
	for deadline := time.Now().Add(within); ; time.Sleep(daemonAsk) {
		missing, err := evpnMissing(n)
		if err != nil || len(missing) == 0 {
			return err
		}
		if time.Now().Before(deadline) {
			continue
		}
		said := n.LastWords()
		if summary, err := vtysh(n, "bgpd", "show bgp l2vpn evpn summary"); err == nil {
			said += "\n" + strings.TrimSpace(summary)
		}
		return fmt.Errorf("node %s received no BGP routes from %v within %v; %s", n.Name, missing, within, said)
	}
}

// evpnMissing returns the nodes to which the kernel does not yet send frames for
// unknown destinations.
func evpnMissing(n *Node) ([]netip.Addr, error) {
	l, err := n.Space.Link(vxlanDevice)
	if err != nil {
		return nil, err
	}
	entries, err := n.Space.Links.NeighList(l.Attrs().Index, unix.AF_BRIDGE)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("read the table of %s in %s: %w", vxlanDevice, n.Space.Name, err)
	}
	told := map[netip.Addr]bool{}
	for _, e := range entries {
		if ip, ok := netip.AddrFromSlice(e.IP); ok && e.HardwareAddr.String() == "00:00:00:00:00:00" {
			told[ip.Unmap()] = true
		}
	}
	var missing []netip.Addr
	for _, a := range n.peers() {
		if !told[a] {
			missing = append(missing, a)
		}
	}
	return missing, nil
}
