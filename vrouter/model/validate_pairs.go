package model

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// reach has the address families and the encapsulations of a node as bit sets.
// Two nodes can reach each other if they share a family and an encapsulation.
type reach struct{ families, encapsulations uint8 }

func reachOf(n *Node) (r reach) {
	for _, a := range n.Underlay {
		if a.Is4() {
			r.families |= 1
		} else {
			r.families |= 2
		}
	}
	for _, e := range n.Encapsulations {
		if i := slices.Index(DefaultEncapsulations, e); i >= 0 {
			r.encapsulations |= 1 << i
		}
	}
	return r
}

// checkPairs refuses networks with ports on nodes that cannot reach each other. Of
// nodes with equal reach it checks only the first.
func (v *validation) checkPairs() {
	reaches := make(map[string]reach, len(v.nodes))
	for name, n := range v.nodes {
		reaches[name] = reachOf(n)
	}
	first := map[networkKey[reach]]*Node{}
	found := map[string][]*Node{}
	for i := range v.s.Ports {
		p := &v.s.Ports[i]
		n := v.nodes[p.Node]
		if n == nil || v.networks[p.Network] == nil {
			continue
		}
		key := networkKey[reach]{p.Network, reaches[p.Node]}
		if first[key] == nil {
			first[key] = n
			found[p.Network] = append(found[p.Network], n)
		}
	}
	for _, n := range v.s.Networks {
		v.checkPairsOf(n.Name, found[n.Name])
	}
}

func (v *validation) checkPairsOf(network string, nodes []*Node) {
	for i, b := range nodes {
		for _, a := range nodes[:i] {
			x, y := reachOf(a), reachOf(b)
			switch {
			case x.families&y.families == 0 && x.families != 0 && y.families != 0:
				v.fail("network", network, "has ports on node %q, whose underlay is %s, and on node %q, whose is %s; give both an address of one family", a.Name, families(a), b.Name, families(b))
			case x.encapsulations&y.encapsulations == 0 && x.encapsulations != 0 && y.encapsulations != 0:
				v.fail("network", network, "has ports on node %q, which offers %s, and on node %q, which offers %s; configure an encapsulation that both offer", a.Name, offers(a), b.Name, offers(b))
			}
		}
	}
}

func families(n *Node) string {
	if slices.ContainsFunc(n.Underlay, netip.Addr.Is4) {
		return "IPv4"
	}
	return "IPv6"
}

func offers(n *Node) string {
	return strings.Trim(fmt.Sprint(n.Encapsulations), "[]")
}
