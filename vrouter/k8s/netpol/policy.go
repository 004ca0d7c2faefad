package netpol

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// policy is a NetworkPolicy with its peers.
type policy struct {
	name            Name
	pods            labels.Selector
	ingress, egress bool // directions in which it isolates pods
	rules           []rule
	ingressNames    []portRange // named ports of its ingress rules
	problems        []string    // of its text

	selected int          // number of classes that it selects, without hosts
	hosts    int          // number of classes of the host network that it selects
	has      map[Port]int // number of selected classes with a port, for ingressNames
}

// rule allows flows of one direction between the policy's pods and the rule's peers.
type rule struct {
	egress bool
	all    bool // any peer
	peers  []*peer
	ports  []portRange // none: all ports of all protocols
}

// portRange is the ports from first to last, or a port's name.
type portRange struct {
	protocol    uint8
	name        string
	first, last uint16
}

// peer selects pods by labels, or addresses.
type peer struct {
	text       string
	users      int             // rules that have the peer
	named      int             // egress rules with the peer and a named port
	namespace  string          // of the pods, if namespaces is nil
	namespaces labels.Selector // nil for addresses too
	pods       labels.Selector // nil: the peer is an ipBlock: block without except
	block      netip.Prefix
	except     []netip.Prefix
}

// selects reports whether the policy selects the pods of a class.
func (p *policy) selects(k *class) bool {
	return p.name.Namespace == k.namespace && p.pods.Matches(k.labels)
}

// count adds a class that the policy selects to its counters n times.
func (p *policy) count(k *class, n int) {
	if k.host {
		p.hosts += n
		return
	}
	p.selected += n
	for _, x := range p.ingressNames {
		if len(x.resolve(k.ports)) > 0 {
			p.has[x.port()] += n
		}
	}
}

// allProblems returns the problems of the policy's text and of the pods that it selects.
func (p *policy) allProblems() []string {
	all := slices.Clone(p.problems)
	for i, x := range p.ingressNames {
		if p.selected > 0 && p.has[x.port()] == 0 && !slices.Contains(p.ingressNames[:i], x) {
			all = append(all, fmt.Sprintf("no selected pod has a port with the name %q and the protocol of the rule, so the rule allows nothing", x.name))
		}
	}
	if p.hosts > 0 {
		all = append(all, "it selects pods of the host network, to which policies do not apply")
	}
	return all
}

func (p *peer) selects(k *class, namespaces map[string]labels.Set) bool {
	if p.pods == nil {
		return false
	}
	if l, known := namespaces[k.namespace]; !known || p.namespaces == nil && p.namespace != k.namespace || p.namespaces != nil && !p.namespaces.Matches(l) {
		return false
	}
	return p.pods.Matches(k.labels)
}

// parse compiles a policy, and adds its new peers.
func (c *Compiler) parse(np *networking.NetworkPolicy) *policy {
	p := &policy{name: Name{np.Namespace, np.Name}, has: map[Port]int{}, ingress: len(np.Spec.PolicyTypes) == 0, egress: len(np.Spec.PolicyTypes) == 0 && len(np.Spec.Egress) > 0}
	for _, t := range np.Spec.PolicyTypes {
		p.ingress = p.ingress || t == networking.PolicyTypeIngress
		p.egress = p.egress || t == networking.PolicyTypeEgress
	}
	p.pods = p.selector(&np.Spec.PodSelector)
	if p.ingress {
		for _, r := range np.Spec.Ingress {
			p.rules = append(p.rules, c.rule(p, false, r.From, r.Ports))
		}
	}
	if p.egress {
		for _, r := range np.Spec.Egress {
			p.rules = append(p.rules, c.rule(p, true, r.To, r.Ports))
		}
	}
	for _, r := range p.rules {
		c.countNames(r, 1)
		for _, x := range r.ports {
			if !r.egress && x.name != "" {
				p.ingressNames = append(p.ingressNames, x)
			}
		}
	}
	return p
}

func (c *Compiler) rule(p *policy, egress bool, peers []networking.NetworkPolicyPeer, ports []networking.NetworkPolicyPort) rule {
	r := rule{egress: egress, all: len(peers) == 0}
	for _, x := range peers {
		if parsed, err := p.peer(x); err != nil {
			p.problems = append(p.problems, err.Error())
		} else {
			r.peers = append(r.peers, c.add(parsed))
		}
	}
	for _, x := range ports {
		if parsed, err := parsePorts(x); err != nil {
			p.problems = append(p.problems, err.Error())
		} else {
			r.ports = append(r.ports, parsed)
		}
	}
	if len(ports) > 0 && len(r.ports) == 0 {
		r.all, r.peers = false, nil // no port is valid: the rule allows nothing
	}
	return r
}

// selector parses a selector. For one that is not valid, it returns a selector that selects nothing.
func (p *policy) selector(s *meta.LabelSelector) labels.Selector {
	parsed, err := meta.LabelSelectorAsSelector(s)
	if err != nil {
		p.problems = append(p.problems, "the selector is not valid, so it selects nothing: "+err.Error())
		return labels.Nothing()
	}
	return parsed
}

func (p *policy) peer(x networking.NetworkPolicyPeer) (*peer, error) {
	if x.IPBlock == nil {
		of := &peer{namespace: p.name.Namespace, pods: labels.Everything()}
		if x.PodSelector != nil {
			of.pods = p.selector(x.PodSelector)
		}
		if x.NamespaceSelector != nil {
			of.namespace, of.namespaces = "", p.selector(x.NamespaceSelector)
			of.text = fmt.Sprintf("pods %q of namespaces %q", of.pods, of.namespaces)
		} else {
			of.text = fmt.Sprintf("pods %q of %s", of.pods, of.namespace)
		}
		return of, nil
	}
	of := &peer{}
	for i, text := range append([]string{x.IPBlock.CIDR}, x.IPBlock.Except...) {
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("an ipBlock has no effect: %w", err)
		}
		if i == 0 {
			of.block = block.Masked()
		} else {
			of.except = append(of.except, block.Masked())
		}
	}
	of.text = fmt.Sprintf("%v except %v", of.block, of.except)
	return of, nil
}

// add returns the peer that is equal to p, if the compiler has one; else it adds p.
func (c *Compiler) add(p *peer) *peer {
	if known := c.peers[p.text]; known != nil {
		known.users++
		return known
	}
	p.users = 1
	c.peers[p.text] = p
	if p.pods == nil {
		c.regions.add(p)
	}
	for _, k := range c.classes {
		if p.selects(k, c.namespaces) {
			k.peers[p], k.text = true, ""
		}
	}
	return p
}

var protocols = map[core.Protocol]uint8{core.ProtocolTCP: unix.IPPROTO_TCP, core.ProtocolUDP: unix.IPPROTO_UDP, core.ProtocolSCTP: unix.IPPROTO_SCTP}

// Protocol returns the number of a protocol; 0: it is not known. The empty protocol is TCP.
func Protocol(p core.Protocol) uint8 {
	if p == "" {
		p = core.ProtocolTCP
	}
	return protocols[p]
}

func parsePorts(x networking.NetworkPolicyPort) (portRange, error) {
	r := portRange{protocol: unix.IPPROTO_TCP, last: 65535}
	if x.Protocol != nil {
		r.protocol = Protocol(*x.Protocol)
	}
	if r.protocol == 0 {
		return r, fmt.Errorf("a port with protocol %s has no effect: a policy can have TCP, UDP and SCTP", *x.Protocol)
	}
	if x.Port == nil {
		return r, nil
	}
	if x.Port.Type == intstr.String {
		r.name = x.Port.StrVal
		return r, nil
	}
	first, last := int(x.Port.IntVal), int(x.Port.IntVal)
	if x.EndPort != nil {
		last = int(*x.EndPort)
	}
	if first < 1 || last > 65535 || first > last {
		return r, fmt.Errorf("the ports %d to %d have no effect: they must be from 1 to 65535, lowest first", first, last)
	}
	r.first, r.last = uint16(first), uint16(last)
	return r, nil
}

// port returns the name and the protocol of a named port.
func (x portRange) port() Port { return Port{Name: x.name, Protocol: x.protocol} }

// resolve returns the ranges of port numbers that x means for a pod with these named ports.
func (x portRange) resolve(ports []Port) (all []portRange) {
	if x.name == "" {
		return []portRange{x}
	}
	for _, p := range ports {
		if p.Name == x.name && p.Protocol == x.protocol {
			all = append(all, portRange{protocol: x.protocol, first: p.Number, last: p.Number})
		}
	}
	return all
}
