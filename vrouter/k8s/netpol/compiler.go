// Package netpol compiles Kubernetes NetworkPolicies into two tables that the data path looks up: the identities
// of addresses, and the flows that are allowed. It has no I/O.
//
// Two pods have the same identity if the same peers (the from and to of rules) select them. The policies that
// select a pod are its group. A flow is allowed if the tables have an entry for its group, its direction, the
// identity of its other end, its protocol and its port.
package netpol

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"windtunnel/vrouter/fib"
)

// Name is the name of a pod or a policy.
type Name struct{ Namespace, Name string }

// Pod is a pod of the cluster.
type Pod struct {
	Name
	UIDs        []string // that name the pod; a port with another UID belongs to an earlier pod
	Labels      labels.Set
	Ports       []Port // with names
	HostNetwork bool   // the pod has no port of the overlay
}

// Port is a named port of a pod.
type Port struct {
	Name     string
	Protocol uint8
	Number   uint16
}

// Endpoint is a port of the overlay.
type Endpoint struct {
	Name  string
	Pod   Name
	UID   string // of the pod
	VRF   uint32
	IPs   []netip.Addr
	Local bool // on this node
}

// Compiler has the cluster's objects. A change of an object is compared only with the objects that can select it,
// or that it can select. It is not safe for concurrent use.
type Compiler struct {
	namespaces map[string]labels.Set
	pods       map[Name]*pod
	classes    map[string]*class
	policies   map[Name]*policy
	peers      map[string]*peer // by text
	endpoints  map[string]*endpoint
	ofPods     map[Name]map[string]bool // names of endpoints
	local      map[uint32]int           // number of local endpoints, by VRF
	regions    regions
	egressed   map[Port]int // number of egress rules, by the name and protocol of a port

	numbers numbers
	last    *fib.Grouping   // of the last result
	tables  *tables         // of the last result; nil: Compile makes new ones
	changed map[string]bool // names of endpoints that differ from those in tables
}

// class is the set of pods of a namespace that have the same labels and named ports.
type class struct {
	namespace string
	labels    labels.Set
	ports     []Port
	host      bool // Pod.HostNetwork
	pods      int
	peers     map[*peer]bool
	text      string // texts of peers, joined; "": not computed
	policies  map[*policy]bool

	tables     *tables // that have identities
	identities map[*region]*identity
}

type pod struct {
	*class
	uids []string
}

type endpoint struct {
	Endpoint
	regions []*region // of its addresses
	version int       // of Compiler.regions
}

// New returns an empty compiler.
func New() *Compiler {
	return &Compiler{
		namespaces: map[string]labels.Set{}, pods: map[Name]*pod{}, classes: map[string]*class{}, policies: map[Name]*policy{},
		peers: map[string]*peer{}, endpoints: map[string]*endpoint{}, ofPods: map[Name]map[string]bool{}, local: map[uint32]int{}, egressed: map[Port]int{}, changed: map[string]bool{}, numbers: newNumbers(),
	}
}

// SetNamespace adds or changes a namespace.
func (c *Compiler) SetNamespace(name string, l labels.Set) {
	if old, known := c.namespaces[name]; known && maps.Equal(old, l) {
		return
	}
	c.namespaces[name] = l
	c.matchNamespace(name)
}

// DeleteNamespace removes a namespace.
func (c *Compiler) DeleteNamespace(name string) {
	delete(c.namespaces, name)
	c.matchNamespace(name)
}

func (c *Compiler) matchNamespace(name string) {
	for _, k := range c.classes {
		if k.namespace == name {
			c.match(k)
			c.tables = nil
		}
	}
}

// SetPod adds or changes a pod.
func (c *Compiler) SetPod(p Pod) {
	key := classKey(p)
	k := c.classes[key]
	if k == nil {
		k = &class{namespace: p.Namespace, labels: p.Labels, ports: p.Ports, host: p.HostNetwork}
		c.classes[key] = k
		c.match(k)
	}
	k.pods++
	c.DeletePod(p.Name)
	c.pods[p.Name] = &pod{k, p.UIDs}
	c.change(p.Name)
}

// DeletePod removes a pod.
func (c *Compiler) DeletePod(n Name) {
	p := c.pods[n]
	if p == nil {
		return
	}
	delete(c.pods, n)
	c.change(n)
	if p.class.pods--; p.class.pods == 0 {
		c.count(p.class, -1)
		delete(c.classes, classKey(Pod{Name: Name{Namespace: p.namespace}, Labels: p.labels, Ports: p.ports, HostNetwork: p.host}))
	}
}

// change notes that the endpoints of a pod must be computed again.
func (c *Compiler) change(n Name) {
	for e := range c.ofPods[n] {
		c.changed[e] = true
	}
}

func classKey(p Pod) string {
	var b strings.Builder
	b.WriteString(p.Namespace)
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		b.WriteString("\x00" + k + "=" + p.Labels[k])
	}
	slices.SortFunc(p.Ports, func(a, b Port) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
	for _, p := range p.Ports {
		b.WriteString("\x00:" + p.text())
	}
	if p.HostNetwork {
		b.WriteString("\x00host")
	}
	return b.String()
}

func (p Port) text() string {
	return p.Name + "/" + strconv.Itoa(int(p.Protocol)) + "/" + strconv.Itoa(int(p.Number))
}

// SetEndpoint adds or changes a port of the overlay.
func (c *Compiler) SetEndpoint(e Endpoint) {
	c.DeleteEndpoint(e.Name)
	c.endpoints[e.Name] = &endpoint{Endpoint: e, version: -1}
	if c.ofPods[e.Pod] == nil {
		c.ofPods[e.Pod] = map[string]bool{}
	}
	c.ofPods[e.Pod][e.Name] = true
	c.changed[e.Name] = true
	c.countLocal(e, 1)
}

// DeleteEndpoint removes a port of the overlay.
func (c *Compiler) DeleteEndpoint(name string) {
	e := c.endpoints[name]
	if e == nil {
		return
	}
	delete(c.endpoints, name)
	if delete(c.ofPods[e.Pod], name); len(c.ofPods[e.Pod]) == 0 {
		delete(c.ofPods, e.Pod)
	}
	c.changed[name] = true
	c.countLocal(e.Endpoint, -1)
}

// countLocal adds n to the number of local endpoints of a VRF. The tables have only VRFs with local endpoints.
func (c *Compiler) countLocal(e Endpoint, n int) {
	if !e.Local {
		return
	}
	before := c.local[e.VRF]
	if c.local[e.VRF] += n; before == 0 || c.local[e.VRF] == 0 {
		c.tables = nil
	}
}

// SetPolicy adds or changes a policy.
func (c *Compiler) SetPolicy(np *networking.NetworkPolicy) {
	name := Name{np.Namespace, np.Name}
	old := c.policies[name]
	p := c.parse(np)
	c.policies[name] = p
	for _, k := range c.classes {
		if p.selects(k) {
			k.policies[p] = true
			p.count(k, 1)
		}
	}
	c.release(old)
	c.tables = nil
}

// DeletePolicy removes a policy.
func (c *Compiler) DeletePolicy(n Name) {
	old := c.policies[n]
	delete(c.policies, n)
	c.release(old)
	c.tables = nil
}

// release removes the references of a policy that is replaced or deleted, and peers without references.
func (c *Compiler) release(p *policy) {
	if p == nil {
		return
	}
	for _, k := range c.classes {
		delete(k.policies, p)
	}
	for _, r := range p.rules {
		c.countNames(r, -1)
		for _, x := range r.peers {
			if x.users--; x.users > 0 {
				continue
			}
			delete(c.peers, x.text)
			c.regions.remove(x)
			for _, k := range c.classes {
				if k.peers[x] {
					delete(k.peers, x)
					k.text = ""
				}
			}
		}
	}
}

// countNames adds n to the reference counts of the rule's named ports.
func (c *Compiler) countNames(r rule, n int) {
	for _, x := range r.ports {
		if port := x.port(); r.egress && x.name != "" {
			if c.egressed[port] += n; c.egressed[port] == 0 {
				delete(c.egressed, port)
			}
			for _, p := range r.peers {
				if p.named += n; p.pods == nil {
					c.regions.changed()
				}
			}
		}
	}
}

// match finds the peers and policies that select a class.
func (c *Compiler) match(k *class) {
	c.count(k, -1)
	k.peers, k.text, k.policies = map[*peer]bool{}, "", map[*policy]bool{}
	for _, p := range c.peers {
		if p.selects(k, c.namespaces) {
			k.peers[p] = true
		}
	}
	for _, p := range c.policies {
		if p.selects(k) {
			k.policies[p] = true
		}
	}
	c.count(k, 1)
}

// count adds a class to the counters of its policies n times.
func (c *Compiler) count(k *class, n int) {
	for p := range k.policies {
		p.count(k, n)
	}
}

// class returns the class of an endpoint's pod; nil: the pod is not known.
func (c *Compiler) class(e *endpoint) *class {
	p := c.pods[e.Pod]
	if p == nil || !slices.Contains(p.uids, e.UID) {
		return nil
	}
	if _, known := c.namespaces[p.namespace]; !known {
		return nil
	}
	return p.class
}
