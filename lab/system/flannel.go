package system

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/suite"
)

// Flannel runs flanneld on each node, with one of its backends, and etcd as the
// store. flanneld connects the nodes' subnets. The containers of a node are on a
// bridge.
type Flannel struct{ Backend string } // vxlan, udp, host-gw

const (
	flannelUDP    = "udp"
	flannelVXLAN  = "vxlan"
	flannelHostGW = "host-gw"
	// flannelUDPOverhead on an IPv4 underlay: IPv4 20, UDP 8 (backend/udp).
	flannelUDPOverhead = 28
	flannelModule      = "github.com/flannel-io/flannel@v0.26.7"
)

// flannelTunnels are the devices that the backends make: backend/vxlan derives the
// name from its VNI, backend/udp takes the first free TUN.
var flannelTunnels = map[string]string{flannelVXLAN: "flannel.1", flannelUDP: "flannel0"}

var flannelProgram = program.Program{
	Name:   "flanneld",
	Also:   []string{"flannel"}, // name of the executable after `go install`
	Module: flannelModule,
	Build: "CGO_ENABLED=1 go install -ldflags '-X github.com/flannel-io/flannel/pkg/version.Version=v0.26.7' " + flannelModule +
		" (needs a C compiler: on amd64 its udp backend is C, and it does not build without)",
	Version: []string{"flanneld", "-version"},
}

func (f Flannel) Name() string { return "flannel-" + f.Backend }
func (f Flannel) About() About {
	unusable := ""
	if f.Backend == flannelUDP && runtime.GOARCH != "amd64" {
		unusable = "flannel's udp backend exists for amd64 only, and this machine is " + runtime.GOARCH
	}
	return About{
		Description: "containers on a Linux bridge on each node, joined by flannel, " + map[string]string{
			flannelVXLAN:  "VXLAN in the kernel",
			flannelUDP:    "UDP by a process of its own (TUN)",
			flannelHostGW: "routes over the fabric without encapsulation",
		}[f.Backend],
		SetUp:    1600 * time.Millisecond, // the start of etcd and flanneld's leases
		IPv4Only: true,                    // its backends carry IPv6 in a second network, which is not configured here
		VMs:      true,
		// Attach compares the MTU with FLANNEL_MTU, which flanneld writes.
		Overhead:  map[string]int{flannelVXLAN: vxlanOverhead, flannelUDP: flannelUDPOverhead}[f.Backend],
		OneDevice: true,
		Unusable:  unusable,
	}
}

func (f Flannel) Needs() ([]string, []program.Program) {
	features := []string{"veth", "bridge", "bridge-netfilter"}
	switch f.Backend {
	case flannelVXLAN:
		features = append(features, "vxlan")
	case flannelUDP:
		features = append(features, "tun")
	}
	return features, []program.Program{etcdProgram, flannelProgram}
}

func (f Flannel) Attach(n *Node) error {
	store := etcdOf(n)
	if n.Index == 0 {
		config, err := flannelConfig(f.Backend)
		if err != nil {
			return err
		}
		if err := startEtcd(n); err != nil {
			return err
		}
		if err := store.put(flannelConfigKey, config); err != nil {
			return err
		}
	}
	// Wait for the network: if it does not exist yet, flanneld retries only after a
	// second.
	if _, err := store.await(flannelConfigKey); err != nil {
		return err
	}
	lease, err := f.startDaemon(n, store)
	if err != nil {
		return err
	}
	if err := f.check(n, lease); err != nil {
		return err
	}
	return connectRouted(n, MTU(f, n.MTU))
}

// startDaemon starts flanneld and waits until it has a subnet. The containers
// already have addresses, so flanneld must get the subnet with these addresses.
// startDaemon therefore first writes a subnet file, as an earlier flanneld would
// leave it. flanneld asks for the subnet in this file (tryAcquireLease,
// pkg/subnet/etcd/local_manager.go).
func (f Flannel) startDaemon(n *Node, store etcd) (flannelLease, error) {
	home, err := n.home()
	if err != nil {
		return flannelLease{}, err
	}
	file := filepath.Join(home, "subnet.env")
	v4, _ := routedSubnets(n.Index)
	if err := os.WriteFile(file, []byte(earlierLease(v4)), 0o600); err != nil {
		return flannelLease{}, fmt.Errorf("write the subnet file for flanneld: %w", err)
	}
	var lease flannelLease
	err = n.start(daemon{
		name: "flanneld",
		argv: []string{flannelProgram.Path(),
			"-etcd-endpoints=" + store.url, "-etcd-prefix=" + flannelPrefix,
			"-iface=" + n.Fabric[0], "-public-ip=" + n.Underlay[n.Index].String(),
			"-subnet-file=" + file, "-ip-masq=false", "-iptables-forward-rules=false", "-healthz-port=0"},
		env: append([]string{"NODE_NAME=" + n.Name}, noProxy...),
		ready: func() error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			lease, err = parseFlannelLease(string(text))
			return err
		},
	})
	return lease, err
}

// check returns an error if flannel's subnet or MTU differs from the lab's.
func (f Flannel) check(n *Node, lease flannelLease) error {
	v4, _ := routedSubnets(n.Index)
	if want := gateway(v4); lease.Gateway != want {
		return fmt.Errorf("flannel gave node %s the gateway %s instead of %s%s", n.Name, lease.Gateway, want, n.lastOutput("flanneld"))
	}
	if want := MTU(f, n.MTU); lease.MTU != want {
		return fmt.Errorf("flannel computes an MTU of %d on a fabric of %d, want %d: this version of flannel encapsulates differently; use %s", lease.MTU, n.MTU, want, flannelModule)
	}
	return nil
}

// Detach also removes the routes of the backend host-gw, which flanneld leaves when it ends.
func (f Flannel) Detach(n *Node) error {
	errs := []error{n.stopDaemons(), disconnectRouted(n)}
	if tunnel := flannelTunnels[f.Backend]; tunnel != "" {
		errs = append(errs, n.Space.Remove(tunnel))
	}
	return errors.Join(append(errs, removeRoutes(n))...)
}

// Changes implements Changer.
func (f Flannel) Changes() map[suite.Change]Change {
	all := routedChanges(f)
	if f.Backend != flannelUDP { // with this backend no route of the node shows that another node has joined
		all[suite.ChangeNodes] = Change{Make: f.addSpareLease, Undo: f.removeSpareLease}
	}
	return all
}

func (f Flannel) Devices(n *Node) []Device {
	if tunnel := flannelTunnels[f.Backend]; tunnel != "" {
		return hops(n, vifName, bridgeHop, tunnelHop(tunnel))
	}
	return hops(n, vifName, bridgeHop)
}
