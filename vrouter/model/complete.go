package model

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
)

// Complete fills in what a wanted port leaves open: an address of each family
// that its network has a subnet of, a name, and a MAC that follows from network
// and address, so that a port that comes back has the one it had. The port is
// not validated otherwise. A network without a free address is an error.
func Complete(s State, p Port) (Port, error) {
	n, ok := s.Network(p.Network)
	if !ok {
		return p, fmt.Errorf("port %q: network: there is no network %q; %s", p.Name, p.Network, meantOf("networks", p.Network, networkNames(s)))
	}
	p.Attach = p.Attach.withDefaults()
	taken := takenIn(s, n.Name)
	var err error
	if len(p.IPs) == 0 {
		if p.IPs, err = taken.free(n); err != nil {
			return p, err
		}
	}
	if p.Name == "" {
		p.Name = freeName(s, p)
	}
	if p.MAC.IsZero() {
		p.MAC = taken.freeMAC(p)
	}
	return p, nil
}

func networkNames(s State) (names []string) {
	for _, n := range s.Networks {
		names = append(names, n.Name)
	}
	return names
}

// taken is what a new port of a network cannot have.
type taken struct {
	addresses map[netip.Addr]bool
	macs      map[MAC]bool
}

// takenIn are the ports' addresses, those that routes lead elsewhere, and the
// stations behind gateways.
func takenIn(s State, network string) taken {
	t := taken{map[netip.Addr]bool{}, map[MAC]bool{RouterMAC: true}}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Network == network {
			t.macs[p.MAC] = true
			for _, a := range p.IPs {
				t.addresses[a] = true
			}
		}
	}
	host := func(p netip.Prefix) {
		if p.IsSingleIP() {
			t.addresses[p.Addr()] = true
		}
	}
	for _, r := range s.Routes {
		if r.Network == network {
			host(r.Prefix)
		}
	}
	for _, g := range s.Gateways {
		gn, _ := g.Network(network)
		for _, p := range gn.Prefixes {
			host(p)
		}
		for _, m := range gn.MACs {
			t.macs[m] = true
		}
	}
	return t
}

// free is an address of each family: from the first subnet that has one.
func (t taken) free(n Network) (free []netip.Addr, err error) {
	for _, family := range []struct {
		name string
		is   func(netip.Addr) bool
	}{{"IPv4", netip.Addr.Is4}, {"IPv6", netip.Addr.Is6}} {
		var full []string
		found := false
		for _, subnet := range n.Subnets {
			if found || !family.is(subnet.Addr()) {
				continue
			}
			a, ok := t.next(subnet)
			if ok {
				free, found = append(free, a), true
				continue
			}
			full = append(full, subnet.String())
		}
		if !found && len(full) > 0 {
			return nil, fmt.Errorf("network %q: subnets: no %s address is free in %s; delete ports, or add a subnet", n.Name, family.name, strings.Join(full, ", "))
		}
	}
	return free, nil
}

// next is the first address of a subnet that nobody has. The gateway's is the
// router's also where the network does not route: it may once. It ends after
// as many steps as there are addresses taken.
func (t taken) next(p netip.Prefix) (netip.Addr, bool) {
	last := BroadcastAddress(p)
	for a := GatewayAddress(p).Next(); p.Contains(a); a = a.Next() {
		if !t.addresses[a] && a != last {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// freeName follows from network and address; a number parts those that would
// be the same.
func freeName(s State, p Port) string {
	names := make(map[string]bool, len(s.Ports))
	for i := range s.Ports {
		names[s.Ports[i].Name] = true
	}
	base := p.Network
	if len(p.IPs) > 0 {
		base += "-" + strings.NewReplacer(":", "-", ".", "-").Replace(p.IPs[0].StringExpanded())
	}
	for i := 1; ; i++ {
		suffix := ""
		if i > 1 || len(p.IPs) == 0 {
			suffix = fmt.Sprintf("-%d", i)
		}
		name := base[max(0, len(base)+len(suffix)-mostName):] + suffix
		name = strings.TrimLeft(name, "-._")
		if !names[name] {
			return name
		}
	}
}

// freeMAC is locally administered (IEEE 802-2014, 8.4), and nobody's in the
// network.
func (t taken) freeMAC(p Port) MAC {
	seed := []byte(p.Name)
	if len(p.IPs) > 0 {
		seed = p.IPs[0].AsSlice()
	}
	for salt := uint32(0); ; salt++ {
		h := fnv.New64a()
		h.Write([]byte(p.Network))
		h.Write(binary.BigEndian.AppendUint32([]byte{0}, salt))
		h.Write(seed)
		v := h.Sum64()
		if m := (MAC{0x02, byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}); !t.macs[m] {
			return m
		}
	}
}
