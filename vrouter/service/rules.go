package service

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// RulesTable is the name of the tables of Rules, one for each IP version.
const RulesTable = "vrouter-services"

// workloadDevices matches the devices by which packets of the node's workloads enter its kernel.
const workloadDevices = `"vrh-*"`

// rulesHeader creates the table with the chains, sets and maps that every node needs. IP stands for ip or ip6.
//
// The chains of type nat translate the first packet of a connection. Their priority of -101 puts them before the chains
// of other programs (-100). The chain nat-postrouting replaces the source address of packets with the mark, and clears the
// mark. A packet to a service without backends is not translated, so the chains of type filter can drop or reject it.
const rulesHeader = `table IP TABLE
delete table IP TABLE
table IP TABLE {
	comment "vrouter writes this table"
	map services { type ADDRESS . inet_proto . inet_service : verdict; }
	map node-ports { type inet_proto . inet_service : verdict; }
	map refused { type ADDRESS . inet_proto . inet_service : verdict; }
	map refused-node-ports { type inet_proto . inet_service : verdict; }
	set cluster-addresses { type ADDRESS; }
	chain replace-source { meta mark set meta mark or 0x4000; }
	chain answer-unreachable {
		meta l4proto tcp reject with tcp reset
		reject
	}
	chain translate {
		IP daddr . meta l4proto . th dport vmap @services
		IP daddr != LOOPBACK fib daddr type local meta l4proto . th dport vmap @node-ports
	}
	chain refuse {
		ct state != new return
		IP daddr . meta l4proto . th dport vmap @refused
		IP daddr != LOOPBACK fib daddr type local meta l4proto . th dport vmap @refused-node-ports
		IP daddr @cluster-addresses goto answer-unreachable
	}
	chain nat-prerouting { type nat hook prerouting priority -101; jump translate; }
	chain nat-output { type nat hook output priority -101; jump translate; }
	chain nat-postrouting {
		type nat hook postrouting priority 99
		meta mark and 0x4000 == 0 return
		meta mark set meta mark xor 0x4000
		masquerade fully-random
	}
	chain filter-input { type filter hook input priority -110; jump refuse; }
	chain filter-forward { type filter hook forward priority -110; jump refuse; }
	chain filter-output { type filter hook output priority -90; jump refuse; }
}
`

// Rules returns the nft commands that replace the rules of the services `from` by the rules of the services `to`, for one
// IP version. By these rules the node's kernel translates packets from the node itself and from outside. Both lists are
// sorted by key, and each service has a name. The result is empty if no rule changes. If `to` is empty, the table is deleted.
func Rules(v6 bool, from, to []Service) string {
	f := ruleFamily{"ip", "ipv4_addr", "127.0.0.0/8", nil}
	if v6 {
		f = ruleFamily{"ip6", "ipv6_addr", "::1", nil}
	}
	other := func(s Service) bool { return s.Address.Is4() == v6 }
	from, to = slices.DeleteFunc(slices.Clone(from), other), slices.DeleteFunc(slices.Clone(to), other)
	switch {
	case len(from) == 0 && len(to) == 0:
		return ""
	case len(to) == 0:
		return fmt.Sprintf("delete table %s %s\n", f.ip, RulesTable)
	case len(from) == 0:
		f.lines = append(f.lines, strings.NewReplacer("IP", f.ip, "TABLE", RulesTable, "ADDRESS", f.address, "LOOPBACK", f.loopback).Replace(rulesHeader))
	}
	is, wanted := newRuleset(), newRuleset()
	for len(from) > 0 || len(to) > 0 { // merge the sorted lists
		order := 0
		switch {
		case len(from) == 0:
			order = 1
		case len(to) == 0:
			order = -1
		default:
			order = from[0].Key.Compare(to[0].Key)
		}
		differs := order != 0 || !from[0].SameRules(to[0])
		if order <= 0 {
			is.addAddress(from[0])
			if differs {
				is.add(f, from[0])
			}
			from = from[1:]
		}
		if order >= 0 {
			wanted.addAddress(to[0])
			if differs {
				wanted.add(f, to[0])
			}
			to = to[1:]
		}
	}
	f.change(is, wanted)
	return strings.Join(f.lines, "")
}

// SameRules reports whether two services have the same rules.
func (s Service) SameRules(o Service) bool {
	return s.Equal(o) && s.Name == o.Name && reflect.DeepEqual(s.Outside, o.Outside)
}

// ruleFamily has nft's names for an IP version, and the commands written so far.
type ruleFamily struct {
	ip, address, loopback string
	lines                 []string
}

func (f *ruleFamily) command(format string, args ...any) {
	f.lines = append(f.lines, fmt.Sprintf(format, args...)+"\n")
}

// ruleset are the sets, chains and elements of services.
type ruleset struct {
	sets     map[string]int      // name → timeout of the elements in seconds; the name contains it
	chains   map[string][]string // name → rules
	elements map[string]string   // "MAP { KEY" → " : verdict", and "SET { KEY" → ""
}

func newRuleset() ruleset {
	return ruleset{map[string]int{}, map[string][]string{}, map[string]string{}}
}

// change adds the commands that turn the ruleset `is` into `wanted`. nft runs all commands or none.
func (f *ruleFamily) change(is, wanted ruleset) {
	const at = " " + RulesTable + " "
	for _, name := range slices.Sorted(maps.Keys(wanted.sets)) {
		if _, has := is.sets[name]; !has {
			f.command("add set %s%s%s { type %s; flags dynamic,timeout; timeout %ds; }", f.ip, at, name, f.address, wanted.sets[name])
		}
	}
	var changed, gone []string
	for _, name := range slices.Sorted(maps.Keys(wanted.chains)) {
		if !slices.Equal(is.chains[name], wanted.chains[name]) || is.chains[name] == nil {
			changed = append(changed, name)
			f.command("add chain %s%s%s", f.ip, at, name)
			f.command("flush chain %s%s%s", f.ip, at, name)
		}
	}
	for _, name := range changed {
		for _, r := range wanted.chains[name] {
			f.command("add rule %s%s%s %s", f.ip, at, name, r)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is.elements)) {
		if verdict, stays := wanted.elements[key]; !stays || verdict != is.elements[key] {
			f.command("delete element %s%s%s%s }", f.ip, at, key, is.elements[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.elements)) {
		if verdict, has := is.elements[key]; !has || verdict != wanted.elements[key] {
			f.command("add element %s%s%s%s }", f.ip, at, key, wanted.elements[key])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is.chains)) {
		if wanted.chains[name] == nil {
			gone = append(gone, name)
			f.command("flush chain %s%s%s", f.ip, at, name)
		}
	}
	for _, name := range gone {
		f.command("delete chain %s%s%s", f.ip, at, name)
	}
	for _, name := range slices.Sorted(maps.Keys(is.sets)) {
		if _, stays := wanted.sets[name]; !stays {
			f.command("delete set %s%s%s", f.ip, at, name)
		}
	}
}

// addAddress adds the ClusterIP of a service. Several services can share it.
func (r ruleset) addAddress(s Service) {
	r.elements["cluster-addresses { "+s.Address.String()] = ""
}

// add adds the rules of a service.
func (r ruleset) add(f ruleFamily, s Service) {
	protocol := map[uint8]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp", unix.IPPROTO_SCTP: "sctp"}[s.Protocol]
	name := fmt.Sprintf("%s/%s/%d", s.Name, protocol, s.Port)
	balance := func(to []netip.AddrPort) []string { return r.balance(f, s, name, protocol, to) }
	at := func(a netip.Addr) string { return fmt.Sprintf("%s . %s . %d", a, protocol, s.Port) }

	inside := "service-" + name
	r.chains[inside] = append([]string{fmt.Sprintf("iifname != %s jump replace-source", workloadDevices)}, balance(s.Backends)...)
	r.serve("services", "refused", at(s.Address), inside, s.Drop, len(s.Backends) == 0)
	o := s.Outside
	if o == nil {
		return
	}
	outside := "outside-" + name
	none := len(o.Backends) == 0
	if o.Local {
		node := "node-" + name
		r.chains[node] = balance(o.All)
		r.chains[outside] = append([]string{fmt.Sprintf("iifname %s goto %s", workloadDevices, node), "fib saddr type local jump replace-source", "fib saddr type local goto " + node}, balance(o.Backends)...)
	} else {
		r.chains[outside] = append([]string{"jump replace-source"}, balance(o.Backends)...)
	}
	if o.NodePort != 0 {
		r.serve("node-ports", "refused-node-ports", fmt.Sprintf("%s . %d", protocol, o.NodePort), outside, o.Local, none)
	}
	for _, a := range o.Addresses {
		r.serve("services", "refused", at(a), outside, o.Local, none)
	}
	if len(o.Sources) > 0 && len(o.Balancers) > 0 {
		balancer := "balancer-" + name
		for _, p := range o.Sources {
			if p.Addr().Is4() == s.Address.Is4() {
				r.chains[balancer] = append(r.chains[balancer], fmt.Sprintf("%s saddr %s goto %s", f.ip, p.Masked(), outside))
			}
		}
		r.chains[balancer] = append(r.chains[balancer], "drop")
		outside = balancer
	}
	for _, a := range o.Balancers {
		r.serve("services", "refused", at(a), outside, o.Local, none)
	}
}

// serve sends packets to an address and port to a chain. If the service has no backends, the packets that the chain does not
// translate are dropped (drop) or rejected.
func (r ruleset) serve(served, refused, key, chain string, drop, none bool) {
	r.elements[served+" { "+key] = " : goto " + chain
	if none && drop {
		r.elements[refused+" { "+key] = " : drop"
	} else if none {
		r.elements[refused+" { "+key] = " : goto answer-unreachable"
	}
}

// balance returns the rules that send a connection to a random backend. With affinity, the backend is that of the
// client's last connection.
func (r ruleset) balance(f ruleFamily, s Service, name, protocol string, backends []netip.AddrPort) (rules []string) {
	if len(backends) == 0 {
		return nil
	}
	var all []string
	for i, b := range backends {
		if s.Affinity == 0 {
			all = append(all, fmt.Sprintf("%d : %s . %d", i, b.Addr(), b.Port()))
			continue
		}
		seconds := int(s.Affinity.Seconds())
		id := fmt.Sprintf("%s/%s/%d", name, strings.ReplaceAll(b.Addr().String(), ":", "_"), b.Port())
		clients, chain := fmt.Sprintf("clients-%d/%s", seconds, id), "backend-"+id
		r.sets[clients] = seconds
		r.chains[chain] = []string{fmt.Sprintf("update @%s { %s saddr }", clients, f.ip), fmt.Sprintf("meta l4proto %s dnat %s to %s", protocol, f.ip, b)}
		rules = append(rules, fmt.Sprintf("%s saddr @%s goto %s", f.ip, clients, chain))
		all = append(all, fmt.Sprintf("%d : goto %s", i, chain))
	}
	choice := fmt.Sprintf("numgen random mod %d", len(all))
	if s.Affinity > 0 {
		return append(rules, fmt.Sprintf("%s vmap { %s }", choice, strings.Join(all, ", ")))
	}
	return []string{fmt.Sprintf("meta l4proto %s dnat %s to %s map { %s }", protocol, f.ip, choice, strings.Join(all, ", "))}
}
