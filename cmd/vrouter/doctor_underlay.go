package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/model"
)

// diagnoseUnderlay checks the underlay devices of a node, in the node's network
// namespace.
func diagnoseUnderlay(c config.Config) []api.Finding {
	done := make(chan []api.Finding, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, in the node's namespace
		done <- checkUnderlay(c)
	}()
	return <-done
}

func checkUnderlay(c config.Config) []api.Finding {
	if err := enter(c.Netns); err != nil {
		return []api.Finding{{Topic: "attach", Level: levelProblem, Text: fmt.Sprintf("enter the network namespace %s: %v", c.Netns, err), Remedy: "create it before the agent starts; see `ip netns list`"}}
	}
	devices, finding := underlayDevices(c)
	if finding != nil {
		return []api.Finding{*finding}
	}
	var findings []api.Finding
	for _, name := range devices {
		findings = append(findings, checkDevice(name)...)
	}
	return append(findings, otherVXLAN(c)...)
}

// otherVXLAN reports other VXLAN devices on the port that this node may use.
func otherVXLAN(c config.Config) []api.Finding {
	port := uint16(model.DefaultVXLANPort)
	if c.State != "" {
		if s, err := readState(c.State, os.Stdin); err == nil {
			port = s.WithDefaults().Settings.VXLANPort
		}
	}
	links, err := netlink.LinkList()
	if err != nil {
		return []api.Finding{{Topic: "attach", Level: levelProblem, Text: fmt.Sprintf("list the devices: %v", err)}}
	}
	var all []api.Finding
	for _, l := range links {
		if v, is := l.(*netlink.Vxlan); is && v.Port == int(port) && v.Name != netdev.GRODevice {
			all = append(all, api.Finding{Topic: "attach", Level: levelNote, Text: fmt.Sprintf("VXLAN device %s uses UDP port %d: if this node and another one offer vxlan, its packets from and to the nodes are dropped", v.Name, port), Remedy: "set settings.vxlan_port to another port, or remove vxlan from the nodes' encapsulations"})
		}
	}
	return all
}

// enter moves this thread into a network namespace, given by name or path.
func enter(name string) error {
	if name == "" {
		return nil
	}
	s, err := netdev.Open(name)
	if err != nil {
		return err
	}
	defer s.Close()
	return netns.Set(s.Ns)
}

// underlayDevices returns the devices that the configuration lists. Without a
// list it returns the devices that have the node's underlay addresses.
func underlayDevices(c config.Config) ([]string, *api.Finding) {
	if len(c.Fabric) > 0 {
		return c.Fabric, nil
	}
	if c.State == "" {
		return nil, &api.Finding{Topic: "mtu", Level: levelNote, Text: "the configuration has neither underlay devices nor a state: MTU and offloads were not checked", Remedy: "list the devices, such as fabric: [eth1]"}
	}
	problem := func(format string, args ...any) ([]string, *api.Finding) {
		return nil, &api.Finding{Topic: "attach", Level: levelProblem, Text: fmt.Sprintf(format, args...), Remedy: "correct the state, or list the devices in the configuration, such as fabric: [eth1]"}
	}
	state, err := readState(c.State, os.Stdin)
	if err != nil {
		return problem("%v", err)
	}
	at := slices.IndexFunc(state.Nodes, func(n model.Node) bool { return n.Name == c.Node })
	if at < 0 {
		return problem("%s has no node %q", c.State, c.Node)
	}
	devices, err := devicesWith(state.Nodes[at])
	switch {
	case err != nil:
		return problem("find the underlay devices: %v", err)
	case len(devices) == 0:
		return problem("no device of this host has an underlay address of node %s (%s)", c.Node, addresses(state.Nodes[at].Underlay))
	}
	return devices, nil
}

// devicesWith returns the devices that have a node's underlay addresses.
func devicesWith(n model.Node) ([]string, error) {
	links, err := netlink.LinkList()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, l := range links {
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(addrs, func(a netlink.Addr) bool {
			return slices.ContainsFunc(n.Underlay, func(u netip.Addr) bool { return a.IP.Equal(u.AsSlice()) })
		}) {
			names = append(names, l.Attrs().Name)
		}
	}
	return names, nil
}

func checkDevice(name string) []api.Finding {
	l, err := netlink.LinkByName(name)
	var missing netlink.LinkNotFoundError
	switch {
	case errors.As(err, &missing):
		return []api.Finding{{Topic: "attach", Level: levelProblem, Text: "there is no underlay device " + name, Remedy: "see `ip link` in the node's namespace"}}
	case err != nil:
		return []api.Finding{{Topic: "attach", Level: levelProblem, Text: fmt.Sprintf("read the underlay device %s: %v", name, err)}}
	}
	findings := []api.Finding{mtuFinding(name, l.Attrs().MTU)}
	if why, remedy := netdev.Unusable(l); why != "" {
		findings = append(findings, api.Finding{Topic: "attach", Level: levelProblem, Text: "the underlay device " + name + " " + why, Remedy: remedy})
	}
	return append(findings, offloadFindings(name)...)
}

// minMTU is the smallest MTU of a link that carries IPv6 (RFC 8200, section 5).
const minMTU = 1280

// mtuFinding reports the MTU that workloads get from a device's MTU.
func mtuFinding(name string, mtu int) api.Finding {
	var words []string
	most := 0 // bytes of the longest headers
	for _, e := range model.DefaultEncapsulations {
		words = append(words, fmt.Sprintf("%d with %s", mtu-fib.Overhead(e, false, false), e))
		most = max(most, fib.Overhead(e, true, false))
	}
	longer := fib.Overhead(model.VXLAN, true, false) - fib.Overhead(model.VXLAN, false, false)
	f := api.Finding{Topic: "mtu", Level: levelOK, Text: fmt.Sprintf("%s has MTU %d: workloads get %s; %d less over an IPv6 underlay", name, mtu, strings.Join(words, ", "), longer)}
	switch {
	case mtu-most < minMTU:
		f.Level = levelProblem
		f.Remedy = fmt.Sprintf("IPv6 needs %d: raise the MTU of the underlay to at least %d", minMTU, minMTU+most)
	case mtu-most < 1500:
		f.Level = levelNote
		f.Remedy = fmt.Sprintf("for workloads with MTU 1500 raise the MTU of the whole underlay to at least %d", 1500+most)
	}
	return f
}

// offloads are device features that make an overlay cheaper. The names are the
// kernel's (net/ethtool/common.c).
var offloads = []struct{ name, without string }{
	{"tx-udp_tnl-segmentation", "the CPU segments superpackets of VXLAN and MPLSoUDP"},
	{"tx-gre-segmentation", "the CPU segments superpackets of MPLSoGRE"},
	{"rx-gro", "received packets pass the stack one by one"},
}

func offloadFindings(name string) []api.Finding {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return []api.Finding{{Topic: "offload", Level: levelNote, Text: fmt.Sprintf("read the offloads of %s: %v", name, err)}}
	}
	defer e.Close()
	has, err := e.Features(name)
	if err != nil {
		return []api.Finding{{Topic: "offload", Level: levelNote, Text: fmt.Sprintf("read the offloads of %s: %v", name, err)}}
	}
	var findings []api.Finding
	for _, o := range offloads {
		if !has[o.name] {
			findings = append(findings, api.Finding{Topic: "offload", Level: levelNote, Text: fmt.Sprintf("%s lacks %s: %s", name, o.name, o.without), Remedy: fmt.Sprintf("if the driver supports it: ethtool -K %s %s on", name, o.name)})
		}
	}
	if len(findings) == 0 {
		findings = []api.Finding{{Topic: "offload", Level: levelOK, Text: name + " segments tunnelled superpackets and merges received packets"}}
	}
	return findings
}
