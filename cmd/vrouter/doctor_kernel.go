package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"windtunnel/internal/netspace"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
)

// diagnoseKernel checks the features that the data path requires, and those that
// make it faster.
func diagnoseKernel() []api.Finding {
	release := datapath.KernelRelease()
	if os.Geteuid() != 0 {
		return []api.Finding{{Topic: "kernel", Level: api.LevelProblem, Text: "checking the features of the kernel (" + release + ") needs root", Remedy: "use sudo"}}
	}
	rlimit.RemoveMemlock() // kernels before 5.11 limit BPF maps by it; the probes report an error
	var missing []api.Finding
	for _, f := range datapath.Features {
		if err := f.Probe(); err != nil {
			missing = append(missing, missingFinding(f, err))
		}
	}
	if len(missing) == 0 {
		missing = append(missing, api.Finding{Topic: "kernel", Level: api.LevelOK, Text: fmt.Sprintf("Linux %s has all %d features that the data path needs", release, len(datapath.Features))})
	}
	return append(missing, xdpFinding(), tcxFinding())
}

func missingFinding(f datapath.Feature, err error) api.Finding {
	if errors.Is(err, ebpf.ErrNotSupported) {
		return api.Finding{Topic: "kernel", Level: api.LevelProblem, Text: "this kernel lacks " + f.Name, Remedy: fmt.Sprintf("use at least Linux %s; vrouter is tested from 6.1 on", f.Since)}
	}
	return api.Finding{Topic: "kernel", Level: api.LevelProblem, Text: fmt.Sprintf("check whether this kernel has %s: %v", f.Name, err), Remedy: "run as root, and outside containers that block bpf(2)"}
}

// xdpFinding reports whether XDP can decapsulate packets before GRO.
func xdpFinding() api.Finding {
	err := errors.Join(features.HaveProgramType(ebpf.XDP), features.HaveProgramHelper(ebpf.XDP, asm.FnXdpAdjustMeta))
	if err != nil {
		return api.Finding{Topic: "attach", Level: api.LevelNote, Text: fmt.Sprintf("XDP is not available (%v): packets are decapsulated in tc, after GRO, which costs the receiver CPU", err)}
	}
	return api.Finding{Topic: "attach", Level: api.LevelOK, Text: "XDP is available: on devices whose driver supports it, packets are decapsulated before GRO"}
}

// tcxFinding reports whether programs can be attached by tcx.
func tcxFinding() api.Finding {
	err := tryTCX()
	switch {
	case err == nil:
		return api.Finding{Topic: "attach", Level: api.LevelOK, Text: "tcx is available: programs are attached by links that survive the agent"}
	case errors.Is(err, ebpf.ErrNotSupported):
		return api.Finding{Topic: "attach", Level: api.LevelNote, Text: "tcx is not available (Linux has it from 6.6 on): classic tc filters are used"}
	}
	return api.Finding{Topic: "attach", Level: api.LevelProblem, Text: fmt.Sprintf("attach a tc program: %v", err), Remedy: "run as root, and outside containers that block bpf(2)"}
}

// tryTCX attaches a program that passes every packet to the loopback device of a
// new network namespace.
func tryTCX() error {
	return netspace.OwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("create a network namespace: %w", err)
		}
		p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "MIT", Instructions: asm.Instructions{
			asm.LoadImm(asm.R0, -1, asm.DWord), // TCX_NEXT
			asm.Return(),
		}})
		if err != nil {
			return fmt.Errorf("load a tc program: %w", err)
		}
		defer p.Close()
		const loopback = 1 // its ifindex in every namespace
		l, err := link.AttachTCX(link.TCXOptions{Program: p, Interface: loopback, Attach: ebpf.AttachTCXIngress})
		if err != nil {
			return err
		}
		return l.Close()
	})
}
