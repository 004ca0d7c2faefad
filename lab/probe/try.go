package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/vm"
	"windtunnel/lab/vm/kernel"
)

// sandbox is a temporary namespace for the trials of features. The devices in it are removed
// with it.
type sandbox struct {
	*space.Space
	pair    bool // the veth pair is there
	program *ebpf.Program
}

// near and far are the ends of the sandbox's veth pair.
const near, far = "near", "far"

// attempt tries one feature. how is the source of the answer if it was not a trial.
type attempt func(b *sandbox, f *Facts) (how string, err error)

var attempts = map[string]attempt{
	Netns:     func(*sandbox, *Facts) (string, error) { return "", nil }, // made already
	Veth:      func(b *sandbox, _ *Facts) (string, error) { return "", b.addPair() },
	Bridge:    addDevice(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br"}}),
	Netkit:    addDevice(&netlink.Netkit{LinkAttrs: netlink.LinkAttrs{Name: "nk"}}),
	VXLAN:     addDevice(&netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "vx"}, VxlanId: 42, Port: 4789}),
	IFB:       addDevice(&netlink.Ifb{LinkAttrs: netlink.LinkAttrs{Name: "ifb"}}),
	WireGuard: addDevice(&netlink.Wireguard{LinkAttrs: netlink.LinkAttrs{Name: "wg"}}),
	Macvlan: func(b *sandbox, _ *Facts) (string, error) {
		return "", b.onPair(func(l netlink.Link) error {
			return b.Links.LinkAdd(&netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: "mv", ParentIndex: l.Attrs().Index}, Mode: netlink.MACVLAN_MODE_BRIDGE})
		})
	},
	Tun:    func(b *sandbox, _ *Facts) (string, error) { return "", b.Do(openTun) },
	Clsact: func(b *sandbox, _ *Facts) (string, error) { return "", b.onPair(b.addClsact) },
	BPF:    func(b *sandbox, _ *Facts) (string, error) { return "", b.onPair(b.addFilter) },
	TCX:    func(b *sandbox, _ *Facts) (string, error) { return "", b.onPair(b.addTCX) },
	TBF: func(b *sandbox, _ *Facts) (string, error) {
		return "", b.onPair(func(l netlink.Link) error {
			return b.Links.QdiscReplace(&netlink.Tbf{QdiscAttrs: root(l, 2), Rate: 1e8, Buffer: 1 << 20, Limit: 1 << 20})
		})
	},
	Packet: func(*sandbox, *Facts) (string, error) {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "", err
		}
		return "", unix.Close(fd)
	},
	CPUShare: func(*sandbox, *Facts) (string, error) { return "", space.CanLimitCPU() },
	Pfifo: func(b *sandbox, _ *Facts) (string, error) {
		return "", b.onPair(func(l netlink.Link) error {
			return b.Links.QdiscReplace(&netlink.GenericQdisc{QdiscAttrs: root(l, 1), QdiscType: "pfifo"})
		})
	},
	BTF:      func(*sandbox, *Facts) (string, error) { return "", exists("/sys/kernel/btf/vmlinux") },
	Threaded: func(b *sandbox, _ *Facts) (string, error) { return "", b.threaded() },
	Backpressure: func(_ *sandbox, f *Facts) (string, error) {
		return "by the kernel's version", stopsFullRings(f.Release)
	},
	Pacing:      func(*sandbox, *Facts) (string, error) { return "", setPacing() },
	VRouter:     findVRouter,
	QEMU:        findQEMU,
	GuestKernel: findGuestKernel,
	KVM:         tryKVM,
	// The module br_netfilter adds these sysctls to a namespace.
	BridgeFilter: func(b *sandbox, _ *Facts) (string, error) {
		return "", b.Do(func() error { return exists("/proc/sys/net/bridge/bridge-nf-call-iptables") })
	},
	// If the module of the datapath's netlink family exists, the kernel then loads it.
	OpenVSwitch: func(b *sandbox, _ *Facts) (string, error) {
		return "", b.Do(func() error {
			_, err := netlink.GenlFamilyGet("ovs_datapath")
			return err
		})
	},
}

// stopsFullRings returns an error if a kernel release, such as "6.1.0-18-amd64", is older than
// 6.16. Since this version, a veth device with a full ring stops its queue (veth_xmit).
func stopsFullRings(release string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 || major < 6 || major == 6 && minor < 16 {
		return fmt.Errorf("kernel %s: %w", release, unix.EOPNOTSUPP)
	}
	return nil
}

func exists(path string) error {
	_, err := os.Stat(path)
	return err
}

func findVRouter(*sandbox, *Facts) (string, error) {
	path, err := program.Beside(VRouter)
	return path, err
}

// rootless are the features whose trial needs no root.
var rootless = map[string]bool{BTF: true, Pacing: true, VRouter: true, QEMU: true, GuestKernel: true}

// tryFeatures tries all features, in a namespace that is gone afterwards.
func tryFeatures(f *Facts) []Finding {
	if !f.Root() {
		found := f.notRoot(features)
		for i := range found {
			if rootless[found[i].Name] {
				found[i] = try(features[i], &sandbox{}, f)
			}
		}
		return found
	}
	name := fmt.Sprintf("wt-probe-%d", os.Getpid())
	if err := space.Delete(name); err != nil { // of an earlier process of this id, killed
		f.Warnings = append(f.Warnings, err.Error())
	}
	s, err := space.Create(name)
	if err != nil {
		return withoutNamespaces(err)
	}
	b := &sandbox{Space: s}
	defer func() {
		if b.program != nil {
			b.program.Close()
		}
		if err := errors.Join(s.Close(), space.Delete(name)); err != nil {
			f.Warnings = append(f.Warnings, fmt.Sprintf("the probe's namespace is left behind; `windtunnel lab clean` removes it: %v", err))
		}
	}()
	found := make([]Finding, len(features))
	for i, feature := range features {
		found[i] = try(feature, b, f)
	}
	return found
}

// withoutNamespaces is the finding for all features if no namespace can be made.
func withoutNamespaces(err error) []Finding {
	found := make([]Finding, len(features))
	for i, feature := range features {
		feature.Remedy = features[0].Remedy
		found[i] = Finding{Feature: feature, Reason: fmt.Sprintf("%s cannot be tried without a network namespace: %v", feature.What, err)}
	}
	found[0].Reason = err.Error()
	return found
}

func try(feature Feature, b *sandbox, f *Facts) Finding {
	how, err := attempts[feature.Name](b, f)
	if err == nil {
		return Finding{Feature: feature, Works: true, How: how}
	}
	reason := fmt.Sprintf("%s cannot be used: %v", feature.What, err)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		reason = fmt.Sprintf("this kernel lacks %s (%v)", feature.What, err)
	}
	return Finding{Feature: feature, Reason: reason, How: how}
}

func addDevice(l netlink.Link) attempt {
	return func(b *sandbox, _ *Facts) (string, error) { return "", b.Links.LinkAdd(l) }
}

func (b *sandbox) addPair() error {
	err := b.Links.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: near, TxQLen: 1000}, PeerName: far})
	b.pair = err == nil
	return err
}

// onPair runs f with one end of the veth pair.
func (b *sandbox) onPair(f func(l netlink.Link) error) error {
	if !b.pair {
		return errors.New("it needs a veth pair")
	}
	l, err := b.Link(near)
	if err != nil {
		return err
	}
	return f(l)
}

// root is the parent of a device's root qdisc. A qdisc of another kind needs another handle
// to replace it.
func root(l netlink.Link, major uint16) netlink.QdiscAttrs {
	return netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(major, 0)}
}

func (b *sandbox) addClsact(l netlink.Link) error {
	return b.Links.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0)}})
}

// load loads a program that lets every packet pass.
func (b *sandbox) load() (err error) {
	if b.program != nil {
		return nil
	}
	b.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "wt_probe", Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	return err
}

func (b *sandbox) addFilter(l netlink.Link) error {
	if err := b.load(); err != nil {
		return err
	}
	return b.Links.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Protocol: unix.ETH_P_ALL, Priority: 1},
		Fd:          b.program.FD(), Name: "wt_probe", DirectAction: true,
	})
}

func (b *sandbox) addTCX(l netlink.Link) error {
	if err := b.load(); err != nil {
		return err
	}
	return b.Do(func() error {
		attached, err := link.AttachTCX(link.TCXOptions{Interface: l.Attrs().Index, Program: b.program, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		return attached.Close()
	})
}

// openTun makes a TUN device, which is removed when its file is closed.
func openTun() error {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/net/tun: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("tun0")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
}

// setPacing sets a pacing rate and checks that the kernel accepted it.
func setPacing() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const rate = 500_000_000
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate); err != nil {
		return err
	}
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE)
	if err != nil {
		return err
	}
	if got != rate {
		return fmt.Errorf("the socket keeps %d bytes/s instead of %d", got, rate)
	}
	return nil
}

// threaded moves the polling of a veth device to a thread. A veth polls only while it is up
// with GRO on.
func (b *sandbox) threaded() error {
	return b.onPair(func(netlink.Link) error {
		if err := b.Offloads(far, map[string]bool{"rx-gro": true}); err != nil {
			return err
		}
		for _, name := range []string{near, far} {
			if err := b.DeviceSysctl("ipv6", name, "disable_ipv6", "1"); err != nil {
				return err
			}
			if err := b.Up(name); err != nil {
				return err
			}
		}
		return b.Sysfs(far+"/threaded", "1")
	})
}

func findQEMU(*sandbox, *Facts) (string, error) {
	path, err := exec.LookPath(vm.Program)
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New(vm.Program + " is not installed")
	}
	return path, err
}

func findGuestKernel(*sandbox, *Facts) (string, error) {
	k, err := kernel.Find()
	if errors.Is(err, kernel.ErrNone) {
		err = errors.New("none was found")
	}
	return k.Release, err
}

// tryKVM boots a guest once after each boot of the machine, if QEMU and a kernel are
// installed. If KVM does not work, this takes some seconds.
func tryKVM(*sandbox, *Facts) (string, error) {
	if _, err := exec.LookPath(vm.Program); err != nil {
		return "", errors.New("QEMU is not installed")
	}
	k, err := kernel.Find()
	if err != nil {
		return "", errors.New("there is no kernel to boot a guest with")
	}
	return "", vm.TryKVM(context.Background(), k)
}
