package netpol

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"windtunnel/internal/must"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
)

// world has copies of the objects that a test has given to a compiler.
type world struct {
	namespaces map[string]labels.Set
	pods       map[Name]Pod
	endpoints  map[string]Endpoint
	policies   map[Name]*networking.NetworkPolicy
}

// flow is the first packet of a flow.
type flow struct {
	protocol uint8
	port     uint16 // of the destination
}

// allowed evaluates the policies for a flow between a pod and a remote address, as the specification of
// NetworkPolicy says: a pod is isolated in a direction if a policy for this direction selects it. To or from an
// isolated pod, a flow passes only if a rule of these policies allows it.
func (w *world) allowed(local Endpoint, egress bool, remote netip.Addr, f flow) bool {
	pod, known := w.pods[local.Pod]
	if _, has := w.namespaces[local.Pod.Namespace]; !known || !has || pod.UIDs[0] != local.UID {
		return false
	}
	isolated := false
	for name, np := range w.policies {
		if name.Namespace != pod.Namespace || !matches(&np.Spec.PodSelector, pod.Labels) {
			continue
		}
		if egress && slices.Contains(np.Spec.PolicyTypes, networking.PolicyTypeEgress) {
			isolated = true
			for _, r := range np.Spec.Egress {
				if w.peersHave(name.Namespace, r.To, local.VRF, remote) && w.portsHave(r.Ports, w.podAt(local.VRF, remote), f) {
					return true
				}
			}
		}
		if !egress && slices.Contains(np.Spec.PolicyTypes, networking.PolicyTypeIngress) {
			isolated = true
			for _, r := range np.Spec.Ingress {
				if w.peersHave(name.Namespace, r.From, local.VRF, remote) && w.portsHave(r.Ports, &pod, f) {
					return true
				}
			}
		}
	}
	return !isolated
}

func matches(s *meta.LabelSelector, l labels.Set) bool {
	for k, v := range s.MatchLabels {
		if has, ok := l[k]; !ok || has != v {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		v, has := l[e.Key]
		switch e.Operator {
		case meta.LabelSelectorOpExists:
			if !has {
				return false
			}
		case meta.LabelSelectorOpDoesNotExist:
			if has {
				return false
			}
		case meta.LabelSelectorOpIn:
			if !has || !slices.Contains(e.Values, v) {
				return false
			}
		case meta.LabelSelectorOpNotIn:
			if has && slices.Contains(e.Values, v) {
				return false
			}
		}
	}
	return true
}

// podAt returns the pod that has an address; nil: none.
func (w *world) podAt(vrf uint32, a netip.Addr) *Pod {
	for _, e := range w.endpoints {
		if p, known := w.pods[e.Pod]; known && e.VRF == vrf && p.UIDs[0] == e.UID && slices.Contains(e.IPs, a) {
			if _, has := w.namespaces[p.Namespace]; has {
				return &p
			}
		}
	}
	return nil
}

func (w *world) peersHave(namespace string, peers []networking.NetworkPolicyPeer, vrf uint32, a netip.Addr) bool {
	if len(peers) == 0 {
		return true
	}
	for _, x := range peers {
		if b := x.IPBlock; b != nil {
			if netip.MustParsePrefix(b.CIDR).Contains(a) && !slices.ContainsFunc(b.Except, func(e string) bool { return netip.MustParsePrefix(e).Contains(a) }) {
				return true
			}
			continue
		}
		pod := w.podAt(vrf, a)
		if pod == nil || x.PodSelector != nil && !matches(x.PodSelector, pod.Labels) {
			continue
		}
		if x.NamespaceSelector == nil && pod.Namespace == namespace || x.NamespaceSelector != nil && matches(x.NamespaceSelector, w.namespaces[pod.Namespace]) {
			return true
		}
	}
	return false
}

// portsHave reports whether one of the ports is the destination port of a flow. destination is the pod there; nil:
// there is none.
func (w *world) portsHave(ports []networking.NetworkPolicyPort, destination *Pod, f flow) bool {
	if len(ports) == 0 {
		return true
	}
	for _, x := range ports {
		protocol := map[core.Protocol]uint8{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP, "SCTP": unix.IPPROTO_SCTP}[core.ProtocolTCP]
		if x.Protocol != nil {
			protocol = map[core.Protocol]uint8{"TCP": unix.IPPROTO_TCP, "UDP": unix.IPPROTO_UDP, "SCTP": unix.IPPROTO_SCTP}[*x.Protocol]
		}
		switch {
		case protocol != f.protocol:
		case x.Port == nil:
			return true
		case x.Port.Type == intstr.String:
			if destination != nil && slices.Contains(destination.Ports, Port{Name: x.Port.StrVal, Protocol: protocol, Number: f.port}) {
				return true
			}
		case x.EndPort != nil:
			if int32(f.port) >= x.Port.IntVal && int32(f.port) <= *x.EndPort {
				return true
			}
		case int32(f.port) == x.Port.IntVal:
			return true
		}
	}
	return false
}

// lookUp returns the verdict as the programs of the data path look it up.
func lookUp(r *Result, local Endpoint, egress bool, remote netip.Addr, f flow) bool {
	g := r.Groups[local.Name]
	if egress && !g.Out || !egress && !g.In {
		return true
	}
	var identity layout.Identity
	for bits := 0; bits <= remote.BitLen(); bits++ {
		p, _ := remote.Prefix(bits)
		if n, has := r.Identities[fib.RouteKey{VRF: local.VRF, Prefix: p}]; has {
			identity = n
		}
	}
	for _, id := range []uint32{identity.Pods, identity.Block, 0} {
		if r.Allows[fib.Allow{Group: g.Number, Identity: id, Egress: egress}] {
			return true
		}
		for bits := range 17 {
			a := fib.Allow{Group: g.Number, Identity: id, Egress: egress, Protocol: f.protocol, PortBits: uint8(bits), Port: f.port &^ uint16(0xffff>>bits)}
			if r.Allows[a] {
				return true
			}
		}
	}
	return false
}

type random struct{ *rand.Rand }

func pick[T any](r random, of ...T) T { return of[r.IntN(len(of))] }

func (r random) labels() labels.Set {
	all := labels.Set{}
	for _, k := range []string{"app", "tier"} {
		if r.IntN(3) > 0 {
			all[k] = pick(r, "a", "b", "c")
		}
	}
	return all
}

func (r random) selector() *meta.LabelSelector {
	s := &meta.LabelSelector{}
	switch r.IntN(4) {
	case 0:
	case 1, 2:
		s.MatchLabels = r.labels()
	default:
		e := meta.LabelSelectorRequirement{Key: pick(r, "app", "tier"), Operator: pick(r, meta.LabelSelectorOpIn, meta.LabelSelectorOpNotIn, meta.LabelSelectorOpExists, meta.LabelSelectorOpDoesNotExist)}
		if e.Operator == meta.LabelSelectorOpIn || e.Operator == meta.LabelSelectorOpNotIn {
			e.Values = []string{pick(r, "a", "b"), "c"}
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}

func (r random) peers() (all []networking.NetworkPolicyPeer) {
	for range r.IntN(3) {
		var x networking.NetworkPolicyPeer
		switch r.IntN(4) {
		case 0:
			x.PodSelector = r.selector()
		case 1:
			x.NamespaceSelector = r.selector()
		case 2:
			x.PodSelector, x.NamespaceSelector = r.selector(), r.selector()
		default:
			x.IPBlock = &networking.IPBlock{CIDR: pick(r, "10.0.0.0/8", "10.0.0.0/29", "0.0.0.0/0", "10.0.0.4/30", "192.0.2.0/24", "fd00::/64", "::/0")}
			if x.IPBlock.CIDR == "10.0.0.0/8" {
				x.IPBlock.Except = []string{pick(r, "10.0.0.2/31", "10.0.0.0/30", "10.1.0.0/16")}
			}
		}
		all = append(all, x)
	}
	return all
}

func (r random) ports() (all []networking.NetworkPolicyPort) {
	for range r.IntN(3) {
		var x networking.NetworkPolicyPort
		if r.IntN(3) > 0 {
			protocol := pick(r, core.ProtocolTCP, core.ProtocolUDP, core.ProtocolSCTP)
			x.Protocol = &protocol
		}
		switch port := intstr.FromInt32(pick[int32](r, 80, 81, 90, 1)); r.IntN(4) {
		case 0:
			x.Port = &port
		case 1:
			last := port.IntVal + pick[int32](r, 0, 1, 9, 1000, 65535-90)
			x.Port, x.EndPort = &port, &last
		case 2:
			name := intstr.FromString(pick(r, "http", "dns"))
			x.Port = &name
		}
		all = append(all, x)
	}
	return all
}

func (r random) policy(n Name) *networking.NetworkPolicy {
	np := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}
	np.Spec.PodSelector = *r.selector()
	np.Spec.PolicyTypes = pick(r, []networking.PolicyType{"Ingress"}, []networking.PolicyType{"Egress"}, []networking.PolicyType{"Ingress", "Egress"})
	for range r.IntN(3) {
		np.Spec.Ingress = append(np.Spec.Ingress, networking.NetworkPolicyIngressRule{From: r.peers(), Ports: r.ports()})
		np.Spec.Egress = append(np.Spec.Egress, networking.NetworkPolicyEgressRule{To: r.peers(), Ports: r.ports()})
	}
	return np
}

// change changes one object, in the world and in the compiler.
func (w *world) change(r random, c *Compiler) {
	namespace := pick(r, "red", "green", "blue")
	n := Name{namespace, fmt.Sprint("n", r.IntN(4))}
	switch r.IntN(12) {
	case 0:
		delete(w.namespaces, namespace)
		c.DeleteNamespace(namespace)
	case 1, 2:
		w.namespaces[namespace] = r.labels()
		c.SetNamespace(namespace, w.namespaces[namespace])
	case 3:
		delete(w.pods, n)
		c.DeletePod(n)
	case 4, 5, 6:
		p := Pod{Name: n, UIDs: []string{pick(r, "1", "1", "1", "2")}, Labels: r.labels()}
		for _, name := range []string{"http", "dns"} {
			if r.IntN(2) == 0 {
				p.Ports = append(p.Ports, Port{name, pick[uint8](r, unix.IPPROTO_TCP, unix.IPPROTO_UDP), pick[uint16](r, 80, 85, 1000)})
			}
		}
		w.pods[n] = p
		c.SetPod(Pod{n, p.UIDs, maps.Clone(p.Labels), slices.Clone(p.Ports), false})
	case 7:
		delete(w.policies, n)
		c.DeletePolicy(n)
	case 8, 9:
		w.policies[n] = r.policy(n)
		c.SetPolicy(w.policies[n].DeepCopy())
	case 10:
		name := fmt.Sprint("port", r.IntN(16))
		delete(w.endpoints, name)
		c.DeleteEndpoint(name)
	default:
		// The address depends on the port's number alone, because two ports must not have the same address.
		i := r.IntN(16)
		e := Endpoint{Name: fmt.Sprint("port", i), Pod: n, UID: "1", VRF: pick[uint32](r, 1, 1, 2), IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), netip.AddrFrom16([16]byte{0xfd, 15: byte(i)})}, Local: r.IntN(2) == 0}
		for _, other := range w.endpoints {
			if other.Name != e.Name && other.Pod == e.Pod {
				return
			}
		}
		w.endpoints[e.Name] = e
		c.SetEndpoint(e)
	}
}

// TestVerdictsAreThoseOfTheSpecification changes random objects one by one, and compares all
// verdicts with a plain evaluation of the policies.
func TestVerdictsAreThoseOfTheSpecification(t *testing.T) {
	remotes := []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fd00:1::1")}
	for i := range 16 {
		remotes = append(remotes, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), netip.AddrFrom16([16]byte{0xfd, 15: byte(i)}))
	}
	var flows []flow
	for _, protocol := range []uint8{unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_SCTP} {
		for _, port := range []uint16{1, 79, 80, 81, 85, 90, 99, 1000, 1091, 65535} {
			flows = append(flows, flow{protocol, port})
		}
	}
	flows = append(flows, flow{unix.IPPROTO_ICMP, 0})
	verdicts := map[bool]int{}
	for seed := range uint64(must.Rounds(16)) {
		r := random{rand.New(rand.NewPCG(seed, 1))}
		c := New()
		w := &world{map[string]labels.Set{}, map[Name]Pod{}, map[string]Endpoint{}, map[Name]*networking.NetworkPolicy{}}
		for step := range 160 {
			w.change(r, c)
			if step%8 != 7 {
				continue
			}
			got := c.Compile()
			for _, e := range w.endpoints {
				if !e.Local {
					continue
				}
				for _, egress := range []bool{true, false} {
					for _, remote := range remotes {
						for _, f := range flows {
							want := w.allowed(e, egress, remote, f)
							verdicts[want]++
							if is := lookUp(&got, e, egress, remote, f); is != want {
								t.Fatalf("seed %d, step %d: pod %v, egress %v, remote %v, protocol %d, port %d: %v, want %v", seed, step, e.Pod, egress, remote, f.protocol, f.port, is, want)
							}
							if denied, by := c.Denial(Flow{e.Name, egress, remote, f.protocol, f.port}); denied == want || !denied && len(by) > 0 {
								t.Fatalf("seed %d, step %d: pod %v, egress %v, remote %v, protocol %d, port %d: denied %v by %v, want allowed %v", seed, step, e.Pod, egress, remote, f.protocol, f.port, denied, by, want)
							}
						}
					}
				}
			}
		}
	}
	if all := verdicts[true] + verdicts[false]; 10*verdicts[true] < all || 10*verdicts[false] < all {
		t.Errorf("%v verdicts, want at least a tenth of each", verdicts)
	}
}

// Numbers must not depend on the order of events: another process reads the same maps.
func TestAnotherCompilerHasTheSameResult(t *testing.T) {
	entries := 0
	for seed := range uint64(30) {
		r := random{rand.New(rand.NewPCG(seed, 7))}
		c := New()
		w := &world{map[string]labels.Set{}, map[Name]Pod{}, map[string]Endpoint{}, map[Name]*networking.NetworkPolicy{}}
		for range 300 {
			w.change(r, c)
			c.Compile()
		}
		other := New()
		for _, e := range w.endpoints {
			other.SetEndpoint(e)
		}
		for _, np := range w.policies {
			other.SetPolicy(np)
		}
		for _, p := range w.pods {
			other.SetPod(p)
		}
		for name, l := range w.namespaces {
			other.SetNamespace(name, l)
		}
		got, want := other.Compile(), c.Compile()
		if !maps.Equal(got.Identities, want.Identities) || !maps.Equal(got.Allows, want.Allows) || !maps.Equal(got.Groups, want.Groups) || got.Revision != want.Revision {
			t.Errorf("seed %d: the new compiler has %d identities and %d entries, the first one %d and %d; want the same result", seed, len(got.Identities), len(got.Allows), len(want.Identities), len(want.Allows))
		}
		entries += len(got.Allows)
		for n := range w.policies {
			other.DeletePolicy(n)
		}
		if after := other.Compile(); len(after.Allows) > 0 || len(other.peers) > 0 || len(other.regions.blocks) > 0 || len(other.egressed) > 0 {
			t.Errorf("seed %d: without policies %d entries, %d peers, %d blocks and %d named ports are left", seed, len(after.Allows), len(other.peers), len(other.regions.blocks), len(other.egressed))
		}
	}
	if entries == 0 {
		t.Error("no seed has an entry")
	}
}

func TestAPortNameThatNoSelectedPodHasIsAProblem(t *testing.T) {
	c := New()
	c.SetNamespace("red", nil)
	c.SetPod(Pod{Name: Name{"red", "web"}, UIDs: []string{"1"}, Ports: []Port{{"http", unix.IPPROTO_TCP, 80}}})
	np := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: "red", Name: "p"}}
	name := intstr.FromString("htpp")
	np.Spec.Ingress = []networking.NetworkPolicyIngressRule{{Ports: []networking.NetworkPolicyPort{{Port: &name}}}}
	c.SetPolicy(np)
	want := `no selected pod has a port with the name "htpp" and the protocol of the rule, so the rule allows nothing`
	if got := c.Compile().Problems[Name{"red", "p"}]; !slices.Equal(got, []string{want}) {
		t.Errorf("problems %q, want %q", got, want)
	}
	name = intstr.FromString("http")
	c.SetPolicy(np)
	if got := c.Compile().Problems; len(got) > 0 {
		t.Errorf("problems %q after the correction", got)
	}
}

// The policies of before a change have no tables any more, so a denial is known only after Compile.
func TestNoDenialIsKnownBetweenAChangeAndCompile(t *testing.T) {
	c := New()
	c.SetNamespace("red", nil)
	c.SetPod(Pod{Name: Name{"red", "web"}, UIDs: []string{"1"}})
	c.SetEndpoint(Endpoint{Name: "port", Pod: Name{"red", "web"}, UID: "1", VRF: 1, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Local: true})
	c.Compile()
	np := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: "red", Name: "p"}}
	c.SetPolicy(np)
	flow := Flow{Endpoint: "port", Remote: netip.MustParseAddr("10.0.0.2"), Protocol: unix.IPPROTO_TCP, Port: 80}
	for _, want := range []bool{false, true} {
		if denied, by := c.Denial(flow); denied != want || want != slices.Equal(by, []Name{{"red", "p"}}) {
			t.Errorf("denied %v by %v, want %v", denied, by, want)
		}
		c.Compile()
	}
}

// A part that is not valid allows nothing, and is a problem. The API server refuses most of them.
func TestAPartThatIsNotValidAllowsNothing(t *testing.T) {
	port, last, protocol := intstr.FromInt32(90), int32(80), core.Protocol("ICMP")
	for want, rule := range map[string]networking.NetworkPolicyIngressRule{
		"the ports 90 to 80 have no effect: they must be from 1 to 65535, lowest first": {Ports: []networking.NetworkPolicyPort{{Port: &port, EndPort: &last}}},
		"a port with protocol ICMP has no effect: a policy can have TCP, UDP and SCTP":  {Ports: []networking.NetworkPolicyPort{{Protocol: &protocol}}},
		`an ipBlock has no effect: netip.ParsePrefix("10.0.0.1"): no '/'`:               {From: []networking.NetworkPolicyPeer{{IPBlock: &networking.IPBlock{CIDR: "10.0.0.1"}}}},
	} {
		c := New()
		c.SetNamespace("red", nil)
		c.SetPod(Pod{Name: Name{"red", "web"}, UIDs: []string{"1"}})
		c.SetEndpoint(Endpoint{Name: "port", Pod: Name{"red", "web"}, UID: "1", VRF: 1, IPs: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Local: true})
		c.SetPolicy(&networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: "red", Name: "p"}, Spec: networking.NetworkPolicySpec{Ingress: []networking.NetworkPolicyIngressRule{rule}}})
		r := c.Compile()
		if got := r.Problems[Name{"red", "p"}]; !slices.Equal(got, []string{want}) {
			t.Errorf("problems %q, want %q", got, want)
		}
		if len(r.Allows) > 0 || !r.Groups["port"].In {
			t.Errorf("%s: the group is %+v, and %v is allowed", want, r.Groups["port"], r.Allows)
		}
	}
}

func TestAPolicyOfPodsOfTheHostNetworkIsAProblem(t *testing.T) {
	c := New()
	c.SetNamespace("red", nil)
	http := intstr.FromString("http")
	np := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: "red", Name: "p"}}
	np.Spec.Ingress = []networking.NetworkPolicyIngressRule{{Ports: []networking.NetworkPolicyPort{{Port: &http}}}}
	c.SetPolicy(np)
	ports := []Port{{"http", unix.IPPROTO_TCP, 80}}
	const host = "it selects pods of the host network, to which policies do not apply"
	for i, step := range []struct {
		change func()
		want   []string
	}{
		{func() { c.SetPod(Pod{Name: Name{"red", "host"}, Ports: ports, HostNetwork: true}) }, []string{host}},
		{func() { c.SetPod(Pod{Name: Name{"red", "web"}}) }, []string{`no selected pod has a port with the name "http" and the protocol of the rule, so the rule allows nothing`, host}},
		{func() { c.SetPod(Pod{Name: Name{"red", "web"}, Ports: ports}) }, []string{host}},
		{func() { c.DeletePod(Name{"red", "host"}) }, nil},
	} {
		step.change()
		if got := c.Compile().Problems[Name{"red", "p"}]; !slices.Equal(got, step.want) {
			t.Errorf("step %d: problems %q, want %q", i, got, step.want)
		}
	}
}

// benchmarkPod is a pod of largeCluster.
func benchmarkPod(i int, app string) Pod {
	return Pod{Name: Name{fmt.Sprint("ns", i%50), fmt.Sprint("pod", i)}, UIDs: []string{"1"}, Labels: labels.Set{"app": app, "pod-name": fmt.Sprint("pod", i/4)}, Ports: []Port{{"http", unix.IPPROTO_TCP, 8080}}}
}

// benchmarkPort is the port of a pod of largeCluster. 100 ports are on this node.
func benchmarkPort(i int) Endpoint {
	return Endpoint{Name: fmt.Sprint("port", i), Pod: benchmarkPod(i, "").Name, UID: "1", VRF: 1, IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})}, Local: i < 100}
}

// largeCluster has 500 policies and 10,000 pods in 50 namespaces.
func largeCluster() *Compiler {
	c := New()
	for i := range 50 {
		c.SetNamespace(fmt.Sprint("ns", i), labels.Set{"team": fmt.Sprint(i % 10)})
	}
	for i := range 10_000 {
		c.SetPod(benchmarkPod(i, fmt.Sprint("app", i/50%20)))
		c.SetEndpoint(benchmarkPort(i))
	}
	http := intstr.FromString("http")
	for i := range 500 {
		np := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: fmt.Sprint("ns", i%50), Name: fmt.Sprint("p", i)}}
		np.Spec.PodSelector.MatchLabels = labels.Set{"app": fmt.Sprint("app", i/50)}
		np.Spec.PolicyTypes = []networking.PolicyType{"Ingress", "Egress"}
		np.Spec.Ingress = []networking.NetworkPolicyIngressRule{{
			From: []networking.NetworkPolicyPeer{
				{PodSelector: &meta.LabelSelector{MatchLabels: labels.Set{"app": fmt.Sprint("app", i%20)}}},
				{NamespaceSelector: &meta.LabelSelector{MatchLabels: labels.Set{"team": fmt.Sprint(i % 10)}}, PodSelector: &meta.LabelSelector{MatchLabels: labels.Set{"app": fmt.Sprint("app", i%7)}}},
			},
			Ports: []networking.NetworkPolicyPort{{Port: &http}},
		}}
		np.Spec.Egress = []networking.NetworkPolicyEgressRule{{To: []networking.NetworkPolicyPeer{{IPBlock: &networking.IPBlock{CIDR: "10.0.0.0/8", Except: []string{fmt.Sprintf("10.0.%d.0/24", i%250)}}}}}}
		c.SetPolicy(np)
	}
	c.Compile()
	return c
}

// The benchmarks measure the time from a change of one object to the complete result.
func benchmarkChange(b *testing.B, change func(c *Compiler, i int)) {
	c := largeCluster()
	var r Result
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		change(c, i)
		r = c.Compile()
	}
	b.ReportMetric(float64(len(r.Identities)), "identities")
	b.ReportMetric(float64(len(r.Allows)), "entries")
}

func BenchmarkLabelChange(b *testing.B) {
	benchmarkChange(b, func(c *Compiler, i int) { c.SetPod(benchmarkPod(17, fmt.Sprint("app", i%20))) })
}

func BenchmarkPortChange(b *testing.B) {
	benchmarkChange(b, func(c *Compiler, i int) {
		if p := benchmarkPort(17); i%2 == 0 {
			c.DeleteEndpoint(p.Name)
		} else {
			c.SetEndpoint(p)
		}
	})
}

func BenchmarkPolicyChange(b *testing.B) {
	np := &networking.NetworkPolicy{ObjectMeta: meta.ObjectMeta{Namespace: "ns1", Name: "p"}}
	benchmarkChange(b, func(c *Compiler, i int) {
		np.Spec.PodSelector.MatchLabels = labels.Set{"app": fmt.Sprint("app", i%20)}
		c.SetPolicy(np)
	})
}
