package system

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// WireGuard routes the containers' packets into encrypted tunnels between the nodes.
// It uses the kernel's WireGuard if the kernel has it, else wireguard-go in user
// space.
//
// The kernel encrypts on every online CPU (wg_cpumask_next_online,
// drivers/net/wireguard/queueing.h), also on CPUs of other nodes. So the CPU time of
// the two sides cannot be separated with the kernel's WireGuard. With wireguard-go
// it can, because wireguard-go runs only on the CPUs of its node.
type WireGuard struct{}

const (
	wireGuardDevice = "wg0"
	wireGuardPort   = 51820 // the usual port of wg-quick
	// wireGuardOverhead on an IPv4 underlay: IPv4 20, UDP 8, data header 16, tag
	// 16 (WireGuard white paper, 5.4.6).
	wireGuardOverhead = 60
	// wireGuardRuns is the key of the note that names the implementation.
	wireGuardRuns     = "wireguard"
	wireGuardInKernel = "kernel"
)

func (WireGuard) Name() string { return "wireguard" }
func (WireGuard) About() About {
	return About{
		Description: "containers routed through WireGuard: the kernel's, or wireguard-go where the kernel has none",
		Overhead:    wireGuardOverhead,
		SetUp:       400 * time.Millisecond, // the start of wireguard-go, and the handshakes
		VMs:         true,
	}
}

// kernelWireGuard reports whether this machine's kernel has WireGuard.
var kernelWireGuard = sync.OnceValue(func() bool {
	_, _, missing := probe.Probe().Missing(probe.WireGuard)
	return !missing
})

// Needs names the implementation that will be used. So the run's record names it too.
func (WireGuard) Needs() ([]string, []program.Program) {
	wg := program.Program{Name: "wg", Version: []string{"wg", "--version"}}
	if kernelWireGuard() {
		return []string{"veth", "bridge", probe.WireGuard}, []program.Program{wg}
	}
	return []string{"veth", "bridge", "tun"}, []program.Program{wg, {
		Name:    "wireguard-go",
		Build:   "apt-get install wireguard-go; or use a kernel with CONFIG_WIREGUARD",
		Version: []string{"wireguard-go", "--version"},
	}}
}

func (w WireGuard) Attach(n *Node) error {
	if err := connectRouted(n, MTU(w, n.MTU)); err != nil {
		return err
	}
	if err := portIsFree(n, wireGuardPort); err != nil {
		return err
	}
	if err := w.addDevice(n); err != nil {
		return err
	}
	if err := w.configure(n); err != nil {
		return err
	}
	return routeInto(n, wireGuardDevice, MTU(w, n.MTU))
}

// portIsFree returns an error if the node cannot listen on a UDP port. WireGuard
// binds its socket only when its device is set up, and wireguard-go reports a
// failure only in its log.
func portIsFree(n *Node, port int) error {
	err := n.Space.Do(func() error {
		socket, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
		if err != nil {
			return err
		}
		return socket.Close()
	})
	if err != nil {
		return fmt.Errorf("UDP port %d of node %s is in use; `ss -ulpn` on the node shows the program: %w", port, n.Name, err)
	}
	return nil
}

// addDevice creates the WireGuard device in the kernel. If the kernel has no
// WireGuard, it starts wireguard-go.
func (WireGuard) addDevice(n *Node) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = wireGuardDevice
	err := n.Space.Add(&netlink.Wireguard{LinkAttrs: attrs})
	if err == nil {
		n.Space.Note(wireGuardRuns, wireGuardInKernel)
		return nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) {
		return err
	}
	n.Space.Note(wireGuardRuns, "wireguard-go")
	return startWireGuardGo(n)
}

// configure sets the key and the peers of the device. The configuration has the form
// of wg(8), for both kinds of device.
func (w WireGuard) configure(n *Node) error {
	home, err := n.home()
	if err != nil {
		return err
	}
	text, err := wireGuardConfig(n)
	if err != nil {
		return err
	}
	const file = wireGuardDevice + ".conf"
	if err := os.WriteFile(filepath.Join(home, file), []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration of %s: %w", wireGuardDevice, err)
	}
	if err := wireGuardCommand(n, "wg", "setconf", wireGuardDevice, file); err != nil {
		return fmt.Errorf("configure %s: %w%s", wireGuardDevice, err, n.lastOutput("wireguard-go"))
	}
	return nil
}

// wireGuardConfig returns a node's configuration. Every other node is a peer; the
// subnets of the peer are its allowed addresses.
func wireGuardConfig(n *Node) (string, error) {
	own, err := wireGuardKey(n, n.Index)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[Interface]\nPrivateKey = %s\nListenPort = %d\n", base64.StdEncoding.EncodeToString(own.Bytes()), wireGuardPort)
	for i, addr := range n.peers() {
		peer, err := wireGuardKey(n, i)
		if err != nil {
			return "", err
		}
		v4, v6 := routedSubnets(i)
		fmt.Fprintf(&b, "\n[Peer]\nPublicKey = %s\nEndpoint = %s\nAllowedIPs = %s, %s\n",
			base64.StdEncoding.EncodeToString(peer.PublicKey().Bytes()), netip.AddrPortFrom(addr, wireGuardPort), v4, v6)
	}
	return b.String(), nil
}

// wireGuardKey returns node i's private key. It is derived from the testbed's name,
// so that every node knows the others' public keys. A person who knows the name can
// derive the key too, so the encryption protects nothing. It costs the same as with
// a secret key.
func wireGuardKey(n *Node, i int) (*ecdh.PrivateKey, error) {
	testbed := n.Name[:strings.LastIndex(n.Name, "-")+1]
	seed := sha256.Sum256(fmt.Appendf(nil, "windtunnel wireguard %s%d", testbed, i))
	// Clamped for Curve25519 (RFC 7748, section 5), so that wg shows the same key.
	seed[0] &= 248
	seed[31] = seed[31]&127 | 64
	key, err := ecdh.X25519().NewPrivateKey(seed[:])
	if err != nil {
		return nil, fmt.Errorf("derive the key of node %d: %w", i, err)
	}
	return key, nil
}

// Detach removes the kernel's device, if this system made it. The device of
// wireguard-go ends with its program.
func (WireGuard) Detach(n *Node) error {
	errs := []error{n.stopDaemons()}
	if n.Space.Settings().Others[wireGuardRuns] == wireGuardInKernel {
		errs = append(errs, n.Space.Remove(wireGuardDevice))
	}
	return errors.Join(append(errs, disconnectRouted(n))...)
}

// Changes implements Changer.
func (w WireGuard) Changes() map[suite.Change]Change {
	all := routedChanges(w)
	all[suite.ChangeNodes] = Change{
		Make: func(n *Node) error {
			return setSparePeer(n, "endpoint", netip.AddrPortFrom(spareUnderlay(n), wireGuardPort).String(), "allowed-ips", spareDestination.String())
		},
		Undo: func(n *Node) error { return setSparePeer(n, "remove") },
	}
	return all
}

// setSparePeer changes the settings of the peer that stands for the imaginary node that joins.
func setSparePeer(n *Node, settings ...string) error {
	key, err := wireGuardKey(n, len(n.Underlay))
	if err != nil {
		return err
	}
	peer := base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())
	return wireGuardCommand(n, append([]string{"wg", "set", wireGuardDevice, "peer", peer}, settings...)...)
}

func (WireGuard) Devices(n *Node) []Device {
	return hops(n, vifName, bridgeHop, tunnelHop(wireGuardDevice))
}
