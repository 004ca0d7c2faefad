package datapath

import (
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// Feature is a kernel feature that the programs require.
type Feature struct {
	Name  string
	Since string       // the first kernel that has it
	Probe func() error // returns nil if the kernel has the feature, and wraps ebpf.ErrNotSupported if it lacks it
}

// Features are all kernel features that the programs require.
var Features = []Feature{
	{"tc programs", "4.1", func() error { return features.HaveProgramType(ebpf.SchedCLS) }},
	{"hash tables", "3.19", hasMap(ebpf.Hash)},
	{"LRU hash tables", "4.10", hasMap(ebpf.LRUHash)},
	{"longest-prefix tries", "4.11", hasMap(ebpf.LPMTrie)},
	{"per-CPU arrays", "4.6", hasMap(ebpf.PerCPUArray)},
	{"ring buffers", "5.8", hasMap(ebpf.RingBuf)},
	{"bpf_skb_adjust_room", "4.13", hasHelper(asm.FnSkbAdjustRoom)},
	{"bpf_skb_change_head", "5.8", hasHelper(asm.FnSkbChangeHead)},
	{"bpf_redirect_neigh", "5.10", hasHelper(asm.FnRedirectNeigh)},
	{"bpf_redirect_peer", "5.10", hasHelper(asm.FnRedirectPeer)},
	{"bpf_clone_redirect", "4.2", hasHelper(asm.FnCloneRedirect)},
	{"bpf_loop", "5.17", hasHelper(asm.FnLoop)},
	{"bpf_ktime_get_coarse_ns", "5.11", hasHelper(asm.FnKtimeGetCoarseNs)},
	{"BTF of the kernel", "5.2 with CONFIG_DEBUG_INFO_BTF", hasBTF},
}

func hasMap(t ebpf.MapType) func() error {
	return func() error { return features.HaveMapType(t) }
}

func hasHelper(f asm.BuiltinFunc) func() error {
	return func() error { return features.HaveProgramHelper(ebpf.SchedCLS, f) }
}

// hasBTF probes BTF, without which the kernel's verifier refuses pointers in arguments of global functions.
func hasBTF() error {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return ebpf.ErrNotSupported
	}
	return nil
}

// KernelRelease is the release of the running kernel, as uname -r prints it.
func KernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}
