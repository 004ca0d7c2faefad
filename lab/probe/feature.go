package probe

import (
	"fmt"
	"slices"

	"windtunnel/internal/setup"
	"windtunnel/lab/vm/kernel"
)

// The features that systems and fabrics can require.
const (
	Netns        = "netns"
	Veth         = "veth"
	Netkit       = "netkit"
	Bridge       = "bridge"
	VXLAN        = "vxlan"
	Macvlan      = "macvlan"
	Tun          = "tun"
	IFB          = "ifb"
	Pfifo        = "pfifo"
	TBF          = "tbf"
	Packet       = "packet"
	CPUShare     = "cpu-share"
	Clsact       = "clsact"
	BPF          = "bpf"
	TCX          = "tcx"
	BTF          = "btf"
	Threaded     = "threaded-napi"
	Backpressure = "veth-backpressure"
	Pacing       = "pacing"
	VRouter      = "vrouter"
	QEMU         = "qemu"
	GuestKernel  = "guest-kernel"
	KVM          = "kvm"
	BridgeFilter = "bridge-netfilter"
	WireGuard    = "wireguard"
	OpenVSwitch  = "openvswitch"
)

// Feature is a kernel feature that can be missing.
type Feature struct {
	Name   string `json:"name"`
	What   string `json:"what"`   // for people
	Remedy string `json:"remedy"` // how the user can get the feature
}

// features in the order of their trials: later trials use the devices of earlier ones.
var features = []Feature{
	{Netns, "network namespaces", "use a kernel with CONFIG_NET_NS=y, outside a container that forbids them"},
	{Veth, "veth pairs", module("veth", "CONFIG_VETH", "")},
	{Netkit, "netkit pairs", "use Linux 6.8 or later with CONFIG_NETKIT=y"},
	{Bridge, "Linux bridges", module("bridge", "CONFIG_BRIDGE", "")},
	{VXLAN, "VXLAN devices", module("vxlan", "CONFIG_VXLAN", "")},
	{Macvlan, "macvlan devices", module("macvlan", "CONFIG_MACVLAN", "")},
	{Tun, "tun/tap devices", module("tun", "CONFIG_TUN", "; /dev/net/tun must exist")},
	{WireGuard, "WireGuard devices", module("wireguard", "CONFIG_WIREGUARD", "; without it, wireguard-go works in user space where it is installed")},
	{IFB, "intermediate functional block devices", module("ifb", "CONFIG_IFB", "")},
	{Pfifo, "the pfifo queueing discipline", module("sch_fifo", "CONFIG_NET_SCHED", "")},
	{TBF, "the token bucket queueing discipline (rates)", module("sch_tbf", "CONFIG_NET_SCH_TBF", "")},
	{Packet, "packet sockets (delays)", module("af_packet", "CONFIG_PACKET", "")},
	{CPUShare, "control groups that limit CPU time", "use a kernel with CONFIG_CFS_BANDWIDTH=y, and mount the control groups with the controller cpu"},
	{Clsact, "the clsact hook", module("sch_ingress", "CONFIG_NET_SCH_INGRESS", "")},
	{BPF, "BPF programs on the traffic control hook", module("cls_bpf", "CONFIG_NET_CLS_BPF", ", CONFIG_BPF_SYSCALL=y, and CAP_BPF or root")},
	{TCX, "BPF programs attached by tcx links", "use Linux 6.6 or later with CONFIG_NET_XGRESS=y"},
	{BTF, "the kernel's type information", "use a kernel with CONFIG_DEBUG_INFO_BTF=y"},
	{Threaded, "NAPI polling in threads", "use Linux 5.12 or later"},
	{Backpressure, "a veth queue that stops when the ring is full, and drops nothing", "use Linux 6.16 or later; on older kernels the wire drops bursts, and TCP sends them again"},
	{VRouter, "the vrouter program", "build it with `make build`; windtunnel looks in its own folder, then in PATH"},
	{OpenVSwitch, "Open vSwitch's kernel datapath", module("openvswitch", "CONFIG_OPENVSWITCH", "; without it Open vSwitch switches in userspace")},
	{BridgeFilter, "bridges that hand frames to iptables (flannel needs them)", module("br_netfilter", "CONFIG_BRIDGE_NETFILTER", "")},
	{QEMU, "the machine emulator QEMU (for VMs as endpoints)", setup.Command("qemu-system-x86_64")},
	{GuestKernel, "a kernel for VMs to boot", kernel.FetchCommand},
	{KVM, "hardware virtualisation that runs a guest (KVM)", "enable it in the firmware or in the hypervisor above (nested virtualisation); without it VMs are emulated, and their figures are not those of real VMs"},
	{Pacing, "TCP pacing by SO_MAX_PACING_RATE", "use Linux 4.13 or later"},
}

func module(name, option, more string) string {
	return fmt.Sprintf("load the module (modprobe %s) or use a kernel with %s%s", name, option, more)
}

// Finding is the result of the trial of a feature.
type Finding struct {
	Feature
	Works  bool   `json:"works"`
	Reason string `json:"reason,omitempty"` // why it does not
	// Untried is set if only root can try the feature.
	Untried bool   `json:"untried,omitempty"`
	How     string `json:"how,omitempty"` // how the answer was found, if not by a trial
}

// Missing returns the reason why a feature cannot be used, and the remedy. missing is false
// if the feature works.
func (f *Facts) Missing(feature string) (reason, remedy string, missing bool) {
	for _, found := range f.Features {
		if found.Name != feature {
			continue
		}
		if found.Works {
			return "", "", false
		}
		return found.Reason, found.Remedy, true
	}
	return fmt.Sprintf("feature %q is unknown to the probe", feature), "name one that `windtunnel doctor` lists", true
}

const rootRemedy = "run as root (sudo)"

// AssumeRoot returns the facts with the assumption that all features work that were not tried.
func (f *Facts) AssumeRoot() *Facts {
	as := *f
	as.Features = slices.Clone(f.Features)
	for i := range as.Features {
		as.Features[i].Works = as.Features[i].Works || as.Features[i].Untried
	}
	return &as
}

// notRoot is the finding for every feature that only root can try.
func (f *Facts) notRoot(list []Feature) []Finding {
	found := make([]Finding, len(list))
	for i, feature := range list {
		feature.Remedy = rootRemedy
		found[i] = Finding{Feature: feature, Reason: "not tried: this process lacks CAP_NET_ADMIN and CAP_SYS_ADMIN", Untried: true}
	}
	return found
}
