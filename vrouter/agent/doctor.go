package agent

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"

	"windtunnel/internal/phrase"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/direct"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// doctor checks the settings of this node that affect the overlay. It changes
// nothing.
func (a *agent) doctor(v *snapshot) []api.Finding {
	findings := []api.Finding{kernelFinding()}
	findings = append(findings, attachFindings(v)...)
	findings = append(findings, directFindings(v)...)
	findings = append(findings, mtuFindings(v)...)
	findings = append(findings, superpacketFinding(v))
	findings = append(findings, a.tableFindings(v)...)
	for _, f := range v.fabric {
		findings = append(findings, a.offloadFindings(v, f.Link.Attrs().Name)...)
	}
	findings = append(findings, a.pinFinding(v))
	findings = append(findings, a.hostFindings(v)...)
	for _, p := range v.problems {
		findings = append(findings, api.Finding{Topic: "state", Level: api.LevelProblem, Text: p.Text})
	}
	for _, w := range v.warnings {
		if slices.Contains(v.pins.Warning(), w) {
			continue // pinFinding reports this warning, with the remedy
		}
		findings = append(findings, api.Finding{Topic: "state", Level: api.LevelNote, Text: w.Text})
	}
	return findings
}

// directFindings reports which addresses of other nodes can be reached without a tunnel:
// underlay addresses on the links of this node, and addresses in locators.
func directFindings(v *snapshot) []api.Finding {
	var fail, lost, stopped []string
	links, works, locators, routed := 0, 0, 0, 0
	locatorOf := map[netip.Addr]netip.Prefix{}
	for _, n := range v.want.Nodes {
		locatorOf[n.LocatorAddress()] = n.Locator
	}
	for a, state := range v.links {
		reached := state == direct.Works || state == direct.Bridges
		switch {
		case a.Is6() && reached:
			locators, routed = locators+1, routed+1
		case a.Is6():
			locators++
			if locator, known := locatorOf[a]; known {
				lost = append(lost, locator.String())
			} else { // a former locator, used until the handover ends
				lost = append(lost, a.String())
			}
		case reached:
			links, works = links+1, works+1
		case state == direct.Stopped:
			links++
			stopped = append(stopped, a.String())
		default:
			links++
			fail = append(fail, a.String())
		}
	}
	slices.Sort(fail)
	slices.Sort(lost)
	slices.Sort(stopped)
	var all []api.Finding
	if links > 0 {
		all = append(all, api.Finding{Topic: "direct", Level: api.LevelOK, Text: fmt.Sprintf("%d of %d underlay addresses on the links of this node can be reached directly, without a tunnel", works, links)})
	}
	if len(fail) > 0 {
		all = append(all, api.Finding{Topic: "direct", Level: api.LevelNote, Text: fmt.Sprintf("test frames with labels as MAC addresses get no reply from %s; tunnels are used if both nodes offer one", strings.Join(fail, ", ")), Remedy: "if switches or hypervisors on the way accept only known MAC addresses (port security, anti-spoofing), allow this node's labels too (list them with bridge fdb show); or remove direct from the encapsulations"})
	}
	if len(stopped) > 0 {
		all = append(all, api.Finding{Topic: "direct", Level: api.LevelNote, Text: fmt.Sprintf("test frames got replies from %s, but now they get none; tunnels are used, and the agent tests the links again every few seconds. The workloads keep the MTU of direct: IPv4 packets without DF that are larger than the tunnel's MTU are dropped (too_big)", strings.Join(stopped, ", ")), Remedy: "start these nodes, or let the switches on the way pass labels again. If they do not pass labels any more, restart this agent: it then lowers the MTU of the workloads"})
	}
	if links > 0 {
		all = append(all, labelFinding(v))
	}
	if locators > 0 {
		all = append(all, api.Finding{Topic: "direct", Level: api.LevelOK, Text: fmt.Sprintf("the locators of %d of %d other nodes can be reached; packets to these nodes can be translated", routed, locators)})
	}
	if len(lost) > 0 {
		all = append(all, api.Finding{Topic: "direct", Level: api.LevelNote, Text: fmt.Sprintf("echo requests get no reply from the first address of these locators: %s; tunnels are used if both nodes offer one", strings.Join(lost, ", ")), Remedy: "add the routes to the locators of both nodes to the underlay (vrouter node locators prints the routes), and let firewalls pass ICMPv6 echo messages"})
	}
	return all
}

// labelFinding reports of how many networks the node receives labels.
func labelFinding(v *snapshot) api.Finding {
	l := v.labels
	beyond := l.Beyond()
	f := api.Finding{Topic: "direct", Level: api.LevelOK, Text: fmt.Sprintf("other nodes may use the labels of %d of the %d networks on this node; limits.link_labels is %d", len(l.Networks)-len(beyond), len(l.Networks), l.Limit)}
	if len(beyond) == 0 {
		return f
	}
	var names []string
	for _, id := range beyond {
		names = append(names, v.networks[id].Name)
	}
	f.Level = api.LevelNote
	f.Text += "; other nodes send the packets of these networks by the next encapsulation: " + phrase.Some(names, 5)
	f.Remedy = "raise limits.link_labels if the filters of the fabric devices and the switches have room for more MAC addresses"
	return f
}

// kernelFinding reports the kernel's release.
func kernelFinding() api.Finding {
	release := datapath.KernelRelease()
	f := api.Finding{Topic: "kernel", Level: api.LevelOK, Text: "Linux " + release}
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n == 2 && (major < 6 || major == 6 && minor < 1) {
		f.Level, f.Remedy = api.LevelProblem, "use Linux 6.1 or later"
	}
	return f
}

// attachFindings report how programs are attached to the fabric devices.
func attachFindings(v *snapshot) []api.Finding {
	if len(v.fabric) == 0 {
		if slices.ContainsFunc(v.problems, func(p api.Problem) bool { return p.Kind == "node" && p.Name == "underlay" }) {
			return nil // the problem is listed, with its remedy
		}
		return []api.Finding{{Topic: "attach", Level: api.LevelNote, Text: "no fabric devices: packets cannot be sent to or received from other nodes", Remedy: "apply a state with this node's underlay addresses, or list devices under fabric in the configuration"}}
	}
	var all []api.Finding
	for _, f := range v.fabric {
		name := f.Link.Attrs().Name
		switch {
		case f.Mode == "":
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelProblem, Text: "the programs are not attached to fabric device " + name, Remedy: "see the problems below"})
		case f.NoXDP != "":
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelOK, Text: fmt.Sprintf("%s is served by %s; %s", name, f.Mode, f.Why)})
		case f.Why != "":
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelNote, Text: fmt.Sprintf("%s is served by %s, without XDP: %s; received packets are not merged (GRO) after decapsulation, so receiving uses about 50 %% more CPU", name, f.Mode, f.Why), Remedy: "if the driver has native XDP, set xdp: auto and detach other XDP programs from the device"})
		default:
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelOK, Text: fmt.Sprintf("%s is served by %s", name, f.Mode)})
		}
		if strings.HasSuffix(f.Mode, "clsact") {
			all = append(all, api.Finding{Topic: "attach", Level: api.LevelNote, Text: name + ": classic tc filters are used, because tcx is off or this kernel lacks it (tcx needs Linux 6.6)"})
		}
	}
	return all
}

// superpacketFinding reports the maximum size of superpackets (BIG TCP).
func superpacketFinding(v *snapshot) api.Finding {
	f := api.Finding{Topic: "big_tcp", Level: api.LevelOK, Text: fmt.Sprintf("superpackets of workloads have at most %d bytes", netdev.BigSuperpacket)}
	if v.small != "" {
		f.Text = "superpackets of workloads have at most 64 KiB: " + v.small
	}
	return f
}

// mtuFindings report the MTUs of workloads.
func mtuFindings(v *snapshot) []api.Finding {
	self, ok := v.want.Self()
	if !ok {
		return nil
	}
	v6 := !slices.ContainsFunc(self.Underlay, func(a netip.Addr) bool { return a.Is4() })
	var all []api.Finding
	for _, f := range v.fabric {
		all = append(all, MTUFinding(f.Link.Attrs().Name, f.Link.Attrs().MTU, self.Encapsulations, v6))
	}
	return all
}

// MTUFinding reports the MTUs that workloads get from the MTU of an underlay device. v6: the
// node has no IPv4 underlay address.
func MTUFinding(device string, mtu int, encapsulations []model.Encapsulation, v6 bool) api.Finding {
	var words []string
	most := 0
	for _, e := range encapsulations {
		words = append(words, fmt.Sprintf("%d with %s", mtu-fib.Overhead(e, v6, false), e))
		most = max(most, fib.Overhead(e, v6, true))
	}
	f := api.Finding{Topic: "mtu", Level: api.LevelOK, Text: fmt.Sprintf("%s has MTU %d: IP packets of workloads have %s", device, mtu, strings.Join(words, ", "))}
	switch {
	case mtu-most < minIPv6MTU:
		f.Level, f.Remedy = api.LevelProblem, fmt.Sprintf("IPv6 needs %d: raise the MTU of the whole underlay to at least %d", minIPv6MTU, minIPv6MTU+most)
	case mtu-most < netdev.EtherMTU:
		f.Level, f.Remedy = api.LevelNote, fmt.Sprintf("raise the MTU of the whole underlay to at least %d for workloads with MTU %d", netdev.EtherMTU+most, netdev.EtherMTU)
	}
	return f
}

// minIPv6MTU is the smallest MTU of a link with IPv6 (RFC 8200, section 5).
const minIPv6MTU = 1280

// tableFindings are the findings about the data path's tables.
func (a *agent) tableFindings(v *snapshot) []api.Finding {
	t, err := a.reconciler.Plane().Dump()
	if err != nil {
		return []api.Finding{{Topic: "tables", Level: api.LevelNote, Text: fmt.Sprintf("cannot read the tables of the data path: %v", err), Remedy: "run `vrouter doctor` again; if this stays, restart the agent"}}
	}
	return append(workloadFindings(v, t), sizeFinding(reconcile.TableSizes(t, int(a.flowCount.Load()), a.reconciler.Limits)))
}

// sizeFinding reports the tables that are nearly full.
func sizeFinding(sizes []reconcile.TableSize) api.Finding {
	var near []string
	for _, s := range sizes {
		if s.Entries*5 >= int(s.Limit)*4 {
			near = append(near, fmt.Sprintf("%s has %d of at most %d entries", s.Name, s.Entries, s.Limit))
		}
	}
	if len(near) == 0 {
		return api.Finding{Topic: "tables", Level: api.LevelOK, Text: fmt.Sprintf("all %d tables have at most 80 %% of their entries", len(sizes))}
	}
	return api.Finding{Topic: "tables", Level: api.LevelNote, Text: strings.Join(near, ", "), Remedy: "raise limits in the node's configuration; limits.routes also decides about identities and allows"}
}

// workloadFindings compare the MTUs of existing devices with those of the tunnels.
func workloadFindings(v *snapshot, t fib.Tables) []api.Finding {
	var all []api.Finding
	for name, d := range v.devices {
		vif, ok := t.Vifs[uint32(d.Index())]
		if mtu := d.Link.Attrs().MTU; ok && mtu > int(vif.MTU) {
			p, _ := v.want.Port(name)
			if p.Attach.Device != "" {
				all = append(all, api.Finding{Topic: "mtu", Level: api.LevelNote, Text: fmt.Sprintf("device %s of port %s has MTU %d, but tunnels carry at most %d: larger packets are dropped and answered with ICMP \"too big\"", d.Link.Attrs().Name, name, mtu, vif.MTU), Remedy: fmt.Sprintf("ip link set %s mtu %d, and set the same MTU on the workload's end", d.Link.Attrs().Name, vif.MTU)})
			}
		}
	}
	slices.SortFunc(all, func(x, y api.Finding) int { return strings.Compare(x.Text, y.Text) })
	return all
}

// offload is a device feature that reduces the CPU use of the overlay. Its name is
// that of the kernel (net/ethtool/common.c).
type offload struct {
	name string
	of   []model.Encapsulation // encapsulations that need it
	cost string
}

var offloads = []offload{
	{"tx-udp_tnl-segmentation", []model.Encapsulation{model.MPLSoUDP, model.VXLAN}, "the CPU instead of the device splits large TCP packets into segments"},
	{"tx-gre-segmentation", []model.Encapsulation{model.MPLSoGRE}, "the CPU instead of the device splits large TCP packets into segments"},
	{"rx-gro", []model.Encapsulation{model.MPLSoUDP, model.MPLSoGRE, model.VXLAN}, "the stack handles received packets one by one, without merging them"},
}

// offloadFindings report missing offloads of a device for the node's
// encapsulations.
func (a *agent) offloadFindings(v *snapshot, device string) (all []api.Finding) {
	offered := model.DefaultEncapsulations
	if self, ok := v.want.Self(); ok {
		offered = self.Encapsulations
	}
	a.space.Do(func() error { all = OffloadFindings(device, offered); return nil })
	return all
}

// OffloadFindings report missing offloads of a device for encapsulations. Call it on a thread in
// the network namespace of the device.
func OffloadFindings(device string, offered []model.Encapsulation) []api.Finding {
	e, err := ethtool.NewEthtool()
	var has map[string]bool
	if err == nil {
		defer e.Close()
		has, err = e.Features(device)
	}
	if err != nil {
		return []api.Finding{{Topic: "offload", Level: api.LevelNote, Text: fmt.Sprintf("read the offloads of %s: %v", device, err)}}
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
			all = append(all, api.Finding{Topic: "offload", Level: api.LevelNote, Text: fmt.Sprintf("device %s lacks %s: with %s, %s", device, o.name, strings.Join(pays, ", "), o.cost), Remedy: fmt.Sprintf("if the driver supports it: ethtool -K %s %s on", device, o.name)})
		}
	}
	if len(all) == 0 {
		all = []api.Finding{{Topic: "offload", Level: api.LevelOK, Text: device + " segments large TCP packets in all encapsulations of this node, and merges received packets"}}
	}
	return all
}

// pinFinding reports where the pins are, and whether they remain after the agent
// ends.
func (a *agent) pinFinding(v *snapshot) api.Finding {
	dir := a.config.PinsDir()
	switch {
	case v.pins.EndWith != "":
		return api.Finding{Topic: "pins", Level: api.LevelProblem, Text: v.pins.EndWith + ": when the agent ends, the pins and all forwarding end too", Remedy: netdev.EndingRemedy(a.config)}
	case v.pins.Unsure != "":
		return api.Finding{Topic: "pins", Level: api.LevelNote, Text: v.pins.Unsure, Remedy: netdev.EndingRemedy(a.config)}
	case v.pins.Dir != dir:
		return api.Finding{Topic: "pins", Level: api.LevelOK, Text: fmt.Sprintf("pins are in %s in the mount namespace of process 1 (the agent has another one): packets keep flowing without the agent", dir)}
	}
	return api.Finding{Topic: "pins", Level: api.LevelOK, Text: fmt.Sprintf("pins are in %s: packets keep flowing without the agent", dir)}
}

// hostFindings reports settings of the host that affect the overlay's outer packets.
// The sysctls forwarding and rp_filter have no effect on tenant traffic: the
// programs bypass the host's IP stack.
func (a *agent) hostFindings(v *snapshot) []api.Finding {
	var all []api.Finding
	read := func(path string) string {
		var text []byte
		a.space.Do(func() (err error) {
			text, err = os.ReadFile(path)
			return err
		})
		return strings.TrimSpace(string(text))
	}
	for _, f := range v.fabric {
		name := f.Link.Attrs().Name
		if f.Link.Attrs().MasterIndex != 0 {
			all = append(all, api.Finding{Topic: "host", Level: api.LevelNote, Text: fmt.Sprintf("fabric device %s belongs to device %d (a bridge or bond): the programs handle the overlay's packets before that device receives them", name, f.Link.Attrs().MasterIndex)})
		}
		if read(filepath.Join("/proc/sys/net/ipv6/conf", name, "disable_ipv6")) == "1" && hasIPv6(v) {
			all = append(all, api.Finding{Topic: "host", Level: api.LevelProblem, Text: "IPv6 is turned off on fabric device " + name + ", and this node has an IPv6 underlay address", Remedy: "sysctl net.ipv6.conf." + name + ".disable_ipv6=0"})
		}
	}
	if read("/proc/sys/net/core/bpf_jit_enable") == "0" {
		all = append(all, api.Finding{Topic: "host", Level: api.LevelNote, Text: "the eBPF JIT is off: interpreted programs use several times as much CPU", Remedy: "sysctl net.core.bpf_jit_enable=1"})
	}
	if len(all) == 0 {
		all = []api.Finding{{Topic: "host", Level: api.LevelOK, Text: "no host setting affects the overlay"}}
	}
	return all
}

func hasIPv6(v *snapshot) bool {
	self, _ := v.want.Self()
	return slices.ContainsFunc(self.Underlay, func(a netip.Addr) bool { return a.Is6() })
}
