package datapath

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// pinned lists the maps that outlive the agent. All other maps are created each time the programs are loaded. If the value is
// true, a trace reads the map itself. For all other maps a trace has copies, so that it changes no counter.
var pinned = map[string]bool{
	"settings": true, "vifs": true, "vrfs": true, "nexthop_entries": true, "nexthops": true, "members": true, "hosts4": true, "hosts6": true,
	"lpm4": true, "lpm6": true, "bridge": true, "ilm": true, "vnis": true, "remotes": true, "senders": true, "learned_mtus": true,
	"policies": true, "more_rules": true, "policy_generations": true, "services": true, "backends": true, "service_ranges": true, "nats": true, "floatings": true, "affinities": true, "flows": true,
	"fragments": false, "vif_stats": false, "vrf_stats": false, "drops": false, "fallbacks": false, "outcomes": false, "drop_log": false,
	"vif_flows_begun": false, "vif_flows_ended": false, "vrf_flows_begun": false, "vrf_flows_ended": false,
}

// readPrograms reads the programs and sets their constants and the sizes of their maps. The result needs
// 2.5 MB, so the caller must not keep it.
func (d *Datapath) readPrograms() (*ebpf.CollectionSpec, error) {
	spec, err := loadVrouter()
	if err != nil {
		return nil, fmt.Errorf("read the programs: %w", err)
	}
	times := d.options.Times
	for name, value := range map[string]any{
		"nonce": d.nonce, "flow_limit": d.options.Limits.Flows,
		"flow_idle": seconds(times.Idle), "flow_unanswered": seconds(times.Unanswered), "flow_closed": seconds(times.Closed),
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("set the programs' constant %s: %w", name, err)
		}
	}
	for name, n := range d.options.Limits.sizes() {
		spec.Maps[name].MaxEntries = n
	}
	return spec, nil
}

// load creates or adopts the maps and loads the programs.
func (d *Datapath) load() (err error) {
	if d.nonce, err = bootNonce(d.options.Pins); err != nil {
		return err
	}
	spec, err := d.readPrograms()
	if err != nil {
		return err
	}
	for name, m := range spec.Maps {
		if _, is := pinned[name]; is {
			m.Pinning = ebpf.PinByName
		}
	}
	var objects vrouterObjects
	err = spec.LoadAndAssign(&objects, &ebpf.CollectionOptions{Maps: ebpf.MapOptions{PinPath: d.generation}})
	if err != nil {
		return explain(err)
	}
	d.maps, d.programs = objects.vrouterMaps, objects.vrouterPrograms
	for _, m := range []*ebpf.Map{d.maps.Vrfs, d.maps.NexthopEntries, d.maps.Nexthops, d.maps.Ilm, d.maps.PolicyGenerations} {
		if _, err := m.Memory(); err != nil { // The first call is not safe for concurrent use, and later several goroutines read the maps.
			return fmt.Errorf("map the memory of %s: %w", m, err)
		}
	}
	return nil
}

func seconds(t time.Duration) uint32 { return uint32(t / time.Second) }

// explain adds the reason and the remedy to the error of a refused load.
func explain(err error) error {
	var verifier *ebpf.VerifierError
	if errors.As(err, &verifier) {
		lines := verifier.Log
		if len(lines) > 8 {
			lines = lines[len(lines)-8:]
		}
		err = fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
	}
	var missing []string
	for _, f := range Features {
		if errors.Is(f.Probe(), ebpf.ErrNotSupported) {
			missing = append(missing, f.Name+" (Linux "+f.Since+")")
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("load the eBPF programs: %w; this kernel (%s) lacks %s: vrouter needs Linux 6.1 or later", err, KernelRelease(), strings.Join(missing, ", "))
	}
	if errors.Is(err, unix.E2BIG) || errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("load the eBPF programs: %w; if a map is too large, lower limits in the node's configuration", err)
	}
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load the eBPF programs: %w (run as root, outside a container that forbids bpf(2))", err)
	}
	return fmt.Errorf("load the eBPF programs on Linux %s: %w", KernelRelease(), err)
}

// ProgramInfo has the kernel's figures of a loaded program.
type ProgramInfo struct {
	Name                 string
	Tag                  string
	VerifiedInstructions uint32 // that the verifier walked; its limit is a million
	Instructions         int
	JITedBytes           uint32
}

// Programs describes the loaded programs.
func (d *Datapath) Programs() ([]ProgramInfo, error) {
	var all []ProgramInfo
	for _, p := range []*ebpf.Program{d.programs.FromWorkload, d.programs.FabricXdp, d.programs.FabricTc, d.programs.FabricOut, d.programs.Looped} {
		info, err := p.Info()
		if err != nil {
			return nil, fmt.Errorf("ask the kernel about %s: %w", p, err)
		}
		one := ProgramInfo{Name: info.Name, Tag: info.Tag}
		one.VerifiedInstructions, _ = info.VerifiedInstructions()
		if instructions, err := info.Instructions(); err == nil {
			one.Instructions = len(instructions)
		}
		one.JITedBytes, _ = info.JitedSize()
		all = append(all, one)
	}
	return all, nil
}
