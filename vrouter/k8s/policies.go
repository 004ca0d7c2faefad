package k8s

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/k8s/netpol"
	"windtunnel/vrouter/model"
)

// policies follows the NetworkPolicies of the cluster, and computes the groups of the ports of a node.
type policies struct {
	events  *events
	changed chan struct{} // agent.Options.Regroup
	limit   int           // of identities, and of allowed flows; see fib.Limits

	mu       sync.Mutex
	compiler *netpol.Compiler
	known    map[netpol.Name]types.UID // policies
	ports    []*model.CompactPort      // that the compiler has
	vrfs     map[string]uint32         // of the networks of ports
	dirty    bool                      // the compiler has changes that last lacks
	last     netpol.Result
	inForce  []netpol.Name        // policies of last that select pods of the node
	took     time.Duration        // of the last compilation
	closed   map[string]time.Time // since when the ports of last.Unknown are closed
}

const (
	policyShare = 4               // compilations after changes of pods and policies use at most 1/5 of a CPU
	closedWait  = 5 * time.Second // of a port whose pod is not known, before this is reported
)

func newPolicies(e *events, limit int) *policies {
	return &policies{events: e, limit: limit, changed: make(chan struct{}, 1), compiler: netpol.New(), known: map[netpol.Name]types.UID{}, closed: map[string]time.Time{}}
}

// followPolicies follows the policies until ctx ends. It returns when it knows all objects, so that no
// pod is open until then.
func followPolicies(ctx context.Context, config *rest.Config, e *events, limit int) (*policies, error) {
	core, err := restClient(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	networking, err := restClient(config, "/apis", networkingv1.SchemeGroupVersion, networkingv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	p := newPolicies(e, limit)
	namespaces, err1 := watchAll(ctx, e.log, core, "namespaces", &corev1.Namespace{}, slimNamespace, nil)
	pods, err2 := watchAll(ctx, e.log, core, "pods", &corev1.Pod{}, slimPod, nil)
	all, err3 := watchAll(ctx, e.log, networking, "networkpolicies", &networkingv1.NetworkPolicy{}, slimPolicy, nil)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	fedNamespaces, err1 := feed(p, namespaces, p.setNamespace, func(n *corev1.Namespace) { p.compiler.DeleteNamespace(n.Name) })
	fedPods, err2 := feed(p, pods, p.setPod, func(o *corev1.Pod) { p.compiler.DeletePod(nameOf(o)) })
	fedPolicies, err3 := feed(p, all, p.setPolicy, p.deletePolicy)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	if !cache.WaitForCacheSync(ctx.Done(), fedNamespaces.HasSynced, fedPods.HasSynced, fedPolicies.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return p, nil
}

// feed calls set for each new or changed object, and remove for each deleted object.
func feed[T metav1.Object](p *policies, i cache.SharedInformer, set, remove func(T)) (cache.ResourceEventHandlerRegistration, error) {
	do := func(f func(T), o any) {
		if gone, is := o.(cache.DeletedFinalStateUnknown); is {
			o = gone.Obj
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		f(o.(T))
		p.regroup()
	}
	return i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { do(set, o) },
		UpdateFunc: func(was, is any) {
			if !reflect.DeepEqual(withoutVersion(was), withoutVersion(is)) { // most changes of pods are of their status
				do(set, is)
			}
		},
		DeleteFunc: func(o any) { do(remove, o) },
	})
}

// withoutVersion returns a copy of an object without its version.
func withoutVersion(o any) any {
	c := reflect.New(reflect.TypeOf(o).Elem())
	c.Elem().Set(reflect.ValueOf(o).Elem())
	c.Interface().(metav1.Object).SetResourceVersion("")
	return c.Interface()
}

// regroup notifies the agent. It waits before, so that several changes need one compilation.
func (p *policies) regroup() {
	if p.dirty {
		return
	}
	p.dirty = true
	time.AfterFunc(max(serviceWait, policyShare*p.took), func() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	})
}

func nameOf(o metav1.Object) netpol.Name {
	return netpol.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (p *policies) setNamespace(n *corev1.Namespace) { p.compiler.SetNamespace(n.Name, n.Labels) }

func (p *policies) setPod(o *corev1.Pod) {
	pod := netpol.Pod{Name: nameOf(o), UIDs: []string{string(o.UID), ""}, Labels: o.Labels, HostNetwork: o.Spec.HostNetwork} // "": the runtime gave no UID
	if hash := o.Annotations[configHash]; hash != "" {
		pod.UIDs = append(pod.UIDs, hash)
	}
	for _, c := range o.Spec.Containers {
		for _, port := range c.Ports {
			pod.Ports = append(pod.Ports, netpol.Port{Name: port.Name, Protocol: netpol.Protocol(port.Protocol), Number: uint16(port.ContainerPort)})
		}
	}
	p.compiler.SetPod(pod)
}

func (p *policies) setPolicy(o *networkingv1.NetworkPolicy) {
	p.known[nameOf(o)] = o.UID
	p.compiler.SetPolicy(o)
}

func (p *policies) deletePolicy(o *networkingv1.NetworkPolicy) {
	delete(p.known, nameOf(o))
	p.compiler.DeletePolicy(nameOf(o))
}

// slimNamespace keeps only what setNamespace uses.
func slimNamespace(object any) (any, error) {
	n, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.Name, ResourceVersion: n.ResourceVersion, Labels: n.Labels}}, nil
}

// slimPod keeps only what setPod uses.
func slimPod(object any) (any, error) {
	o, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{ObjectMeta: slimMeta(o.ObjectMeta, "")}
	kept.Labels, kept.Spec.HostNetwork = o.Labels, o.Spec.HostNetwork
	if hash := o.Annotations[configHash]; hash != "" {
		kept.Annotations = map[string]string{configHash: hash}
	}
	containers := slices.Clone(o.Spec.Containers)
	for _, c := range o.Spec.InitContainers {
		if value(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		var named []corev1.ContainerPort
		for _, port := range c.Ports {
			if port.Name != "" {
				named = append(named, corev1.ContainerPort{Name: port.Name, Protocol: port.Protocol, ContainerPort: port.ContainerPort})
			}
		}
		if len(named) > 0 {
			kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Ports: named})
		}
	}
	return kept, nil
}

func slimPolicy(object any) (any, error) {
	o, ok := object.(*networkingv1.NetworkPolicy)
	if !ok {
		return object, nil
	}
	return &networkingv1.NetworkPolicy{ObjectMeta: slimMeta(o.ObjectMeta, ""), Spec: o.Spec}, nil
}

// grouping returns the groups of the node's ports; see agent.Options.
func (p *policies) grouping(s model.Slice) *fib.Grouping {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setPorts(s)
	if !p.dirty {
		return p.last.Grouping
	}
	p.dirty = false
	if len(p.known) == 0 {
		p.last = netpol.Result{}
	} else {
		began := time.Now()
		p.last = p.compiler.Compile()
		p.inForce = p.compiler.InForce()
		p.took = time.Since(began)
	}
	p.report()
	return p.last.Grouping
}

// denial names the policies that deny a flow of a port; see agent.Options.
func (p *policies) denial(port string, d model.Direction, remote netip.Addr, protocol uint8, destination uint16) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Grouping == nil {
		return ""
	}
	egress := d == model.Egress
	if g := p.last.Groups[port]; p.isFull() && (egress && g.Out || !egress && g.In) {
		return "which is closed: the NetworkPolicies need more map entries than the node has room for"
	}
	denied, by := p.compiler.Denial(netpol.Flow{Endpoint: port, Egress: egress, Remote: remote, Protocol: protocol, Port: destination})
	names := lists.Map(by, func(n netpol.Name) string { return n.Namespace + "/" + n.Name })
	switch {
	case !denied:
		return ""
	case len(names) == 0:
		return "which is closed: its pod is not known yet"
	case len(names) == 1:
		return "NetworkPolicy " + names[0] + " does not allow it"
	}
	return fmt.Sprintf("none of %d NetworkPolicies allows it: %s", len(names), phrase.Some(names, 8))
}

// isFull reports whether the node's maps have no room for the last result.
func (p *policies) isFull() bool { return p.last.Grouping != nil && p.last.Entries() > p.limit }

// setPorts gives the compiler the ports of a slice.
func (p *policies) setPorts(s model.Slice) {
	vrfs := make(map[string]uint32, len(s.Networks))
	for _, n := range s.Networks {
		vrfs[n.Name] = n.ID
	}
	before := p.ports
	if !maps.Equal(vrfs, p.vrfs) {
		for _, port := range before {
			p.compiler.DeleteEndpoint(port.Name)
		}
		before, p.dirty = nil, true
	}
	var changed []*model.CompactPort
	model.DiffPorts(before, s.All, func(was, is *model.CompactPort) {
		p.dirty = true
		if was != nil {
			p.compiler.DeleteEndpoint(was.Name)
		}
		if is != nil {
			changed = append(changed, is)
		}
	})
	for _, c := range changed { // after all deletions: a port can move to another node
		port := c.Port()
		p.compiler.SetEndpoint(netpol.Endpoint{
			Name: port.Name, Pod: netpol.Name{Namespace: port.Pod().Namespace, Name: port.Pod().Name}, UID: port.Pod().UID, VRF: vrfs[port.Network], IPs: port.IPs, Local: port.Node == p.events.node,
		})
	}
	p.ports, p.vrfs = s.All, vrfs
}

// report reports the problems of the last result.
func (p *policies) report() {
	var all []problem
	about := func(n netpol.Name) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy", Namespace: n.Namespace, Name: n.Name, UID: p.known[n]}
	}
	for name, texts := range p.last.Problems {
		for _, text := range texts {
			all = append(all, problem{about(name), withoutEffect, text})
		}
	}
	if p.isFull() {
		text := fmt.Sprintf("the NetworkPolicies need more map entries than node %s has room for, so all pods of the node that a policy selects are closed; raise limits.routes in the ConfigMap %s/%s", p.events.node, Namespace, NodeName)
		all = append(all, problem{aboutNode(p.events.node), tablesFull, text})
		for _, name := range p.inForce {
			all = append(all, problem{about(name), tablesFull, text})
		}
	}
	all = append(all, p.reportClosed()...)
	p.events.report("policies", all)
}

// reportClosed returns the problems of ports that have been closed for closedWait because their pods are not known.
// They stay closed: the policies of an unknown pod cannot be found.
func (p *policies) reportClosed() (all []problem) {
	closed := make(map[string]time.Time, len(p.last.Unknown))
	for _, e := range p.last.Unknown {
		since, before := p.closed[e.Name]
		if !before {
			since = time.Now()
			time.AfterFunc(closedWait, func() {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.report()
			})
		}
		if closed[e.Name] = since; time.Since(since) >= closedWait {
			all = append(all, problem{
				corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: types.UID(e.UID)}, podUnknown,
				fmt.Sprintf("the API server has not sent this pod to the agent of node %s yet, so the pod's NetworkPolicies are not known; until then the network of the pod is closed", p.events.node),
			})
		}
	}
	p.closed = closed
	return all
}
