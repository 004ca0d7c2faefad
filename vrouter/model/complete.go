package model

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"slices"
)

// Complete fills in what a wanted port leaves open: a name, the next free
// address of each subnet of its network, and a MAC that follows from network
// and address, so that a port that comes back has the one it had.
func Complete(s State, p Port) (Port, error) {
	n, ok := s.Network(p.Network)
	if !ok {
		return p, fmt.Errorf("network %q does not exist; there are %v", p.Network, networkNames(s))
	}
	p.Attach = p.Attach.withDefaults()
	var err error
	if len(p.IPs) == 0 {
		if p.IPs, err = freeAddresses(s, n); err != nil {
			return p, err
		}
	}
	if p.Name == "" {
		if p.Name, err = freeName(s, p); err != nil {
			return p, err
		}
	}
	if p.MAC.IsZero() {
		p.MAC = freeMAC(s, n, p)
	}
	return p, nil
}

func networkNames(s State) (names []string) {
	for _, n := range s.Networks {
		names = append(names, n.Name)
	}
	return names
}

func freeAddresses(s State, n Network) ([]netip.Addr, error) {
	taken := map[netip.Addr]bool{}
	for _, p := range s.Ports {
		if p.Network == n.Name {
			for _, a := range p.IPs {
				taken[a] = true
			}
		}
	}
	var free []netip.Addr
	for _, subnet := range n.Subnets {
		a, ok := nextFree(subnet, taken)
		if !ok {
			return nil, fmt.Errorf("network %q: subnet %s has no free address; delete ports, or give it a larger subnet", n.Name, subnet)
		}
		free = append(free, a)
	}
	return free, nil
}

// nextFree is the first address behind the gateway's that nobody has.
func nextFree(p netip.Prefix, taken map[netip.Addr]bool) (netip.Addr, bool) {
	last := broadcastOf(p)
	for a := p.Masked().Addr().Next().Next(); p.Contains(a); a = a.Next() {
		if !taken[a] && a != last {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// broadcastOf is the last address of an IPv4 subnet; zero for IPv6.
func broadcastOf(p netip.Prefix) netip.Addr {
	if p.Addr().Is6() {
		return netip.Addr{}
	}
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	return netip.AddrFrom4(b)
}

func freeName(s State, p Port) (string, error) {
	base := p.Network
	if len(p.IPs) > 0 {
		base += "-" + nameable(p.IPs[0].String())
	}
	name := base
	for i := 2; i < 1000; i++ {
		if _, taken := s.Port(name); !taken {
			return name, nil
		}
		name = fmt.Sprintf("%s-%d", base, i)
	}
	return "", fmt.Errorf("port in network %q: every name like %q is taken; give it a name", p.Network, base)
}

func nameable(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == ':' || b[i] == '.' {
			b[i] = '-'
		}
	}
	return string(b)
}

// freeMAC is locally administered, and nobody's in the network.
func freeMAC(s State, n Network, p Port) MAC {
	for salt := byte(0); ; salt++ {
		h := fnv.New64a()
		h.Write([]byte(n.Name))
		h.Write([]byte{0, salt})
		if len(p.IPs) > 0 {
			h.Write(p.IPs[0].AsSlice())
		} else {
			h.Write([]byte(p.Name))
		}
		v := h.Sum64()
		m := MAC{0x02, byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
		if !slices.ContainsFunc(s.Ports, func(q Port) bool { return q.Network == n.Name && q.MAC == m }) {
			return m
		}
	}
}
