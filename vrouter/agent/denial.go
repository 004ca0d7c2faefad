package agent

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"windtunnel/vrouter/model"
)

// groupDenial is the type of Options.GroupDenial.
type groupDenial func(port string, d model.Direction, remote netip.Addr, protocol uint8, destination uint16) string

// opening is the first packet of a flow, as the rules of a policy see it.
type opening struct {
	source, destination netip.Addr
	protocol            uint8
	port                uint16 // destination port
	ported              bool   // the protocol has ports
}

// openingOf reads a frame. ok is false if a rule cannot judge the packet alone: ICMP errors, later
// fragments, packets with IPv6 extension headers, and frames that are not IP.
func openingOf(frame []byte) (o opening, ok bool) {
	packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	switch ip := packet.NetworkLayer().(type) {
	case *layers.IPv4:
		o.source, _ = netip.AddrFromSlice(ip.SrcIP.To4())
		o.destination, _ = netip.AddrFromSlice(ip.DstIP.To4())
		o.protocol = uint8(ip.Protocol)
		ok = ip.FragOffset == 0
	case *layers.IPv6:
		o.source, _ = netip.AddrFromSlice(ip.SrcIP)
		o.destination, _ = netip.AddrFromSlice(ip.DstIP)
		o.protocol = uint8(ip.NextHeader)
		ok = !slices.Contains([]layers.IPProtocol{layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Fragment, layers.IPProtocolIPv6Destination}, ip.NextHeader)
	}
	for _, l := range packet.Layers() {
		switch l := l.(type) {
		case *layers.TCP:
			o.port, o.ported = uint16(l.DstPort), true
		case *layers.UDP:
			o.port, o.ported = uint16(l.DstPort), true
		case *layers.SCTP:
			o.port, o.ported = uint16(l.DstPort), true
		case *layers.ICMPv4:
			ok = ok && (l.TypeCode.Type() == layers.ICMPv4TypeEchoRequest || l.TypeCode.Type() == layers.ICMPv4TypeEchoReply)
		case *layers.ICMPv6:
			ok = ok && l.TypeCode.Type() >= layers.ICMPv6TypeEchoRequest // smaller types are errors (RFC 4443, section 2.1)
		}
	}
	return o, ok
}

// matches reports whether a rule decides about the packet. It is rule_matches of bpf/policy.h.
func (o opening) matches(r model.Rule, d model.Direction) bool {
	remote := o.source
	if d == model.Egress {
		remote = o.destination
	}
	first, last, err1 := r.PortRange()
	protocol, err2 := r.ProtocolNumber()
	return err1 == nil && err2 == nil && r.Direction == d &&
		(protocol == 0 || protocol == o.protocol) &&
		(!r.Remote.IsValid() || r.Remote.Contains(remote)) &&
		(first == 0 && last == 65535 || o.ported && first <= o.port && o.port <= last)
}

// denial says which rule of a port, or which policies of its group, deny the packet in a direction; "": none does.
// It follows (*compiler).policy in package fib.
func (v *snapshot) denial(p *model.Port, d model.Direction, o opening) string {
	if words := v.ruleDenial(p, d, o); words != "" || v.denied == nil {
		return words
	}
	remote := o.source
	if d == model.Egress {
		remote = o.destination
	}
	network, _ := v.want.Network(p.Network)
	node, _ := v.want.State.Node(p.Node)
	host := v.portAt(p.Network, remote)
	if network.NodeAccess && (slices.Contains(node.Underlay, remote) || host != nil && host.Attach.Host && host.Node == p.Node) {
		return "" // a workload and its own node reach each other
	}
	words := v.denied(p.Name, d, remote, o.protocol, o.port)
	if words == "" {
		return ""
	}
	return fmt.Sprintf("port %s, %s", p.Name, words)
}

// ruleDenial says which rule of a port denies the packet in a direction; "": none does.
func (v *snapshot) ruleDenial(p *model.Port, d model.Direction, o opening) string {
	network, _ := v.want.Network(p.Network)
	names := slices.Concat(p.Policies, network.Policies)
	guarded := false
	switch host := v.portAt(p.Network, o.source); {
	case network.NodeAccess && p.Attach.Host:
		names = p.Policies
	case network.NodeAccess && d == model.Ingress && host != nil && host.Attach.Host && host.Node == p.Node:
		return "" // a node may probe its workloads
	case p.Attach.Host && len(p.Policies) == 0 && d == model.Ingress:
		return fmt.Sprintf("port %s, which connects the node itself and has no policies", p.Name)
	}
	for _, name := range names {
		policy, _ := v.want.State.Policy(name)
		for i, r := range policy.Rules {
			guarded = guarded || r.Direction == d
			switch {
			case !o.matches(r, d):
			case r.Action == model.Allow:
				return ""
			default:
				return fmt.Sprintf("port %s, rule %d of policy %s", p.Name, i+1, name)
			}
		}
	}
	if !guarded {
		return ""
	}
	return fmt.Sprintf("port %s, no %s rule of policy %s allows it", p.Name, d, strings.Join(names, ", "))
}

// portAt returns the port with an address in a network; nil: none has it.
func (v *snapshot) portAt(network string, ip netip.Addr) *model.Port {
	for _, p := range v.want.All {
		if p.Network == network && slices.Contains(p.IPs, ip) {
			port := p.Port()
			return &port
		}
	}
	return nil
}

// receivers returns the ports that can receive packets to an address of a network: the port with the address, or the
// next hops of the static route to the address.
func (v *snapshot) receivers(network string, ip netip.Addr) (all []*model.Port) {
	s, best := v.want.State, model.Route{}
	for _, name := range append([]string{network}, model.Leaks(s.Networks)[network]...) {
		n, _ := s.Network(name)
		subnet, in := n.Subnet(ip)
		if in {
			if p := v.portAt(name, ip); p != nil {
				return []*model.Port{p}
			}
			if subnet.Bits() > best.Prefix.Bits() {
				best = model.Route{Prefix: subnet} // no next hops: packets are dropped, unless a static route has the same prefix
			}
		}
		for _, r := range s.Routes {
			if r.Network == name && r.Prefix.Contains(ip) && (r.Prefix.Bits() > best.Prefix.Bits() || r.Prefix == best.Prefix && best.Network == "") {
				best = r
			}
		}
		if in || best.Prefix.IsSingleIP() {
			break // the routes of the other networks are not imported
		}
	}
	for _, via := range best.Via {
		if hop := v.want.Hops[via.Port]; hop != nil {
			p := hop.Port()
			all = append(all, &p)
		}
	}
	return all
}

// deniedFrame says which port and rule deny a frame that the policy of a vif dropped. entered: the frame
// came from the vif's workload; its receiver may be on this node too.
func (v *snapshot) deniedFrame(vif uint32, entered bool, frame []byte) string {
	p, known := v.want.Port(v.names().vifs[vif])
	o, ok := openingOf(frame)
	switch {
	case !known || !ok:
		return ""
	case !entered:
		return v.denial(&p, model.Ingress, o)
	}
	return v.deniedHere(&p, o)
}

// deniedHere says which port of this node denies a packet that the workload of p sends; "": none does.
func (v *snapshot) deniedHere(p *model.Port, o opening) string {
	if words := v.denial(p, model.Egress, o); words != "" {
		return words
	}
	for _, to := range v.receivers(p.Network, o.destination) {
		if to.Node != p.Node {
			continue
		}
		if words := v.denial(to, model.Ingress, o); words != "" {
			return words
		}
	}
	return ""
}

// deniedThere describes the policy by which the receiver's node drops a packet from port p; "": no policy drops it.
// end is the result of farEnd for the packet. If the packet belongs to an established flow, the receiver's
// node may accept it nevertheless: only that node knows its flows.
func (v *snapshot) deniedThere(p *model.Port, o opening, end string) string {
	all := slices.DeleteFunc(v.receivers(p.Network, o.destination), func(to *model.Port) bool { return end != "node "+to.Node })
	for _, to := range all {
		words := v.denial(to, model.Ingress, o)
		if words == "" {
			continue
		}
		if len(all) > 1 {
			end += ", if it selects port " + to.Name
		}
		return fmt.Sprintf("dropped on %s: policy (%s), unless it answers a flow of %s", end, words, to.Name)
	}
	return ""
}
