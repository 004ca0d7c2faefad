package agent

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// Levels of a finding.
const (
	fine   = "ok"
	note   = "note"
	faulty = "problem"
)

// doctor looks at what helps or harms the overlay on this node. Nothing is
// changed.
func (a *agent) doctor(v *view) ([]api.Finding, error) {
	findings := []api.Finding{kernelFinding()}
	findings = append(findings, attachFindings(v)...)
	findings = append(findings, mtuFindings(v)...)
	findings = append(findings, a.workloadFindings(v)...)
	for _, f := range v.fabric {
		findings = append(findings, a.offloadFindings(v, f.link.Attrs().Name)...)
	}
	findings = append(findings, a.pinFinding(v))
	findings = append(findings, a.hostFindings(v)...)
	for _, p := range v.problems {
		findings = append(findings, api.Finding{Topic: "state", Level: faulty, Text: p})
	}
	for _, w := range v.warnings {
		if slices.Contains(v.pins.warning(), w) {
			continue // said above, with the remedy
		}
		findings = append(findings, api.Finding{Topic: "state", Level: note, Text: w})
	}
	return findings, nil
}

// kernelFinding names the kernel, and what of it is used.
func kernelFinding() api.Finding {
	release := "of an unknown release"
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		release = unix.ByteSliceToString(u.Release[:])
	}
	f := api.Finding{Topic: "kernel", Level: fine, Text: "Linux " + release}
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < 6 || major == 6 && minor < 1) {
		f.Level, f.Remedy = faulty, "vrouter is made for Linux 6.1 and later"
	}
	return f
}

// attachFindings say how the fabric's devices are served.
func attachFindings(v *view) []api.Finding {
	if len(v.fabric) == 0 {
		return []api.Finding{{Topic: "attach", Level: note, Text: "no fabric device is known: packets to and from other nodes cannot travel", Remedy: "apply a state with this node's underlay addresses, or name devices under fabric in the configuration"}}
	}
	var all []api.Finding
	for _, f := range v.fabric {
		name := f.link.Attrs().Name
		switch {
		case f.Mode == "":
			all = append(all, api.Finding{Topic: "attach", Level: faulty, Text: "the programs are not attached to fabric device " + name, Remedy: "see the problems that follow"})
		case f.merged:
			all = append(all, api.Finding{Topic: "attach", Level: fine, Text: fmt.Sprintf("%s is served by %s; %s", name, f.Mode, f.Why)})
		case f.Why != "":
			all = append(all, api.Finding{Topic: "attach", Level: note, Text: fmt.Sprintf("%s is served by %s, without XDP: %s; received packets are not merged after decapsulation, which costs receivers about half as much CPU again", name, f.Mode, f.Why), Remedy: "where the driver has native XDP, leave xdp: auto and take other XDP programs off the device"})
		default:
			all = append(all, api.Finding{Topic: "attach", Level: fine, Text: fmt.Sprintf("%s is served by %s", name, f.Mode)})
		}
		if strings.HasSuffix(f.Mode, "clsact") {
			all = append(all, api.Finding{Topic: "attach", Level: note, Text: name + ": classic tc filters serve, as tcx is off or not in this kernel (Linux 6.6)"})
		}
	}
	return all
}

// mtuFindings say what the underlay leaves to workloads.
func mtuFindings(v *view) []api.Finding {
	self, ok := v.want.self()
	if !ok {
		return nil
	}
	v6 := !slices.ContainsFunc(self.Underlay, func(a netip.Addr) bool { return a.Is4() })
	var all []api.Finding
	for _, f := range v.fabric {
		mtu := f.link.Attrs().MTU
		var words []string
		most := 0
		for _, e := range self.Encapsulations {
			words = append(words, fmt.Sprintf("%d with %s", mtu-fib.Overhead(e, v6, false), e))
			most = max(most, fib.Overhead(e, v6, true))
		}
		finding := api.Finding{Topic: "mtu", Level: fine, Text: fmt.Sprintf("%s has MTU %d: IP packets of workloads have %s", f.link.Attrs().Name, mtu, strings.Join(words, ", "))}
		switch {
		case mtu-most < leastIPv6:
			finding.Level, finding.Remedy = faulty, fmt.Sprintf("IPv6 needs %d: raise the MTU of the whole underlay to %d at least", leastIPv6, leastIPv6+most)
		case mtu-most < etherMTU:
			finding.Level, finding.Remedy = note, fmt.Sprintf("with %d or more on the whole underlay workloads could have %d", etherMTU+most, etherMTU)
		}
		all = append(all, finding)
	}
	return all
}

// leastIPv6 is the least MTU of a link with IPv6 (RFC 8200, section 5).
const leastIPv6 = 1280

// workloadFindings compare devices that others made with what fits the tunnels.
func (a *agent) workloadFindings(v *view) []api.Finding {
	t, err := a.plane().Dump()
	if err != nil {
		return []api.Finding{{Topic: "mtu", Level: note, Text: fmt.Sprintf("the vifs' MTU cannot be read: %v", err)}}
	}
	var all []api.Finding
	for name, d := range v.devices {
		vif, ok := t.Vifs[uint32(d.index())]
		if mtu := d.link.Attrs().MTU; ok && mtu > int(vif.MTU) {
			p, _ := v.want.state.Port(name)
			if p.Attach.Device != "" {
				all = append(all, api.Finding{Topic: "mtu", Level: note, Text: fmt.Sprintf("device %s of port %s has MTU %d, tunnels carry %d: larger packets are answered with \"too big\"", d.link.Attrs().Name, name, mtu, vif.MTU), Remedy: fmt.Sprintf("ip link set %s mtu %d, and the workload's end likewise", d.link.Attrs().Name, vif.MTU)})
			}
		}
	}
	slices.SortFunc(all, func(x, y api.Finding) int { return strings.Compare(x.Text, y.Text) })
	return all
}

// offload is a feature that makes the overlay cheaper, by the kernel's name
// (net/ethtool/common.c).
type offload struct {
	name string
	of   []model.Encapsulation // which pays without it
	cost string
}

var offloads = []offload{
	{"tx-udp_tnl-segmentation", []model.Encapsulation{model.MPLSoUDP, model.VXLAN}, "superpackets of TCP are cut by the CPU before they are sent"},
	{"tx-gre-segmentation", []model.Encapsulation{model.MPLSoGRE}, "superpackets of TCP are cut by the CPU before they are sent"},
	{"rx-gro", []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE, model.VXLAN}, "received packets climb the stack one by one"},
}

// offloadFindings say what each encapsulation that the node offers pays on a
// device.
func (a *agent) offloadFindings(v *view, device string) []api.Finding {
	var has map[string]bool
	err := a.space.do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		has, err = e.Features(device)
		return err
	})
	if err != nil {
		return []api.Finding{{Topic: "offload", Level: note, Text: fmt.Sprintf("what %s offloads cannot be found out: %v", device, err)}}
	}
	offered := model.DefaultEncapsulations
	if self, ok := v.want.self(); ok {
		offered = self.Encapsulations
	}
	var all []api.Finding
	for _, o := range offloads {
		var pays []string
		for _, e := range o.of {
			if slices.Contains(offered, e) {
				pays = append(pays, string(e))
			}
		}
		if !has[o.name] && len(pays) > 0 {
			all = append(all, api.Finding{Topic: "offload", Level: note, Text: fmt.Sprintf("%s is without %s: with %s %s", device, o.name, strings.Join(pays, ", "), o.cost), Remedy: fmt.Sprintf("where the driver has it: ethtool -K %s %s on", device, o.name)})
		}
	}
	if len(all) == 0 {
		all = []api.Finding{{Topic: "offload", Level: fine, Text: device + " cuts superpackets of every encapsulation that this node offers, and merges what it receives"}}
	}
	return all
}

// pinFinding says where the pins are, and whether they outlive this agent.
func (a *agent) pinFinding(v *view) api.Finding {
	dir := a.config.pinsDir()
	switch {
	case v.pins.endWith != "":
		return api.Finding{Topic: "pins", Level: faulty, Text: v.pins.endWith + ": with the agent they end, and packets with them", Remedy: endingRemedy(a.config)}
	case v.pins.unsure != "":
		return api.Finding{Topic: "pins", Level: note, Text: v.pins.unsure, Remedy: endingRemedy(a.config)}
	case v.pins.dir != dir:
		return api.Finding{Topic: "pins", Level: fine, Text: fmt.Sprintf("pins are in %s of process 1's mounts (this agent has mounts of its own): packets flow on without the agent", dir)}
	}
	return api.Finding{Topic: "pins", Level: fine, Text: fmt.Sprintf("pins are in %s: packets flow on without the agent", dir)}
}

// hostFindings are settings of the node that packets of the overlay meet. The
// programs forward beside the host's stack: forwarding and rp_filter do not
// matter to them, but what the host does with the outer packets does.
func (a *agent) hostFindings(v *view) []api.Finding {
	var all []api.Finding
	read := func(path string) string {
		var text []byte
		a.space.do(func() (err error) {
			text, err = os.ReadFile(path)
			return err
		})
		return strings.TrimSpace(string(text))
	}
	for _, f := range v.fabric {
		name := f.link.Attrs().Name
		if f.link.Attrs().MasterIndex != 0 {
			all = append(all, api.Finding{Topic: "host", Level: note, Text: fmt.Sprintf("fabric device %s belongs to device %d (a bridge or bond): packets of the overlay are taken before that one sees them", name, f.link.Attrs().MasterIndex)})
		}
		if read(filepath.Join("/proc/sys/net/ipv6/conf", name, "disable_ipv6")) == "1" && hasIPv6(v) {
			all = append(all, api.Finding{Topic: "host", Level: faulty, Text: "IPv6 is turned off on fabric device " + name + ", and this node has an IPv6 underlay address", Remedy: "sysctl net.ipv6.conf." + name + ".disable_ipv6=0"})
		}
	}
	if read("/proc/sys/net/core/bpf_jit_enable") == "0" {
		all = append(all, api.Finding{Topic: "host", Level: note, Text: "eBPF programs are interpreted, at several times the cost", Remedy: "sysctl net.core.bpf_jit_enable=1"})
	}
	if len(all) == 0 {
		all = []api.Finding{{Topic: "host", Level: fine, Text: "no setting of the host stands in the way"}}
	}
	return all
}

func hasIPv6(v *view) bool {
	self, _ := v.want.self()
	return slices.ContainsFunc(self.Underlay, func(a netip.Addr) bool { return a.Is6() })
}
