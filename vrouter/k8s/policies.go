package k8s

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/k8s/netpol"
	"windtunnel/vrouter/model"
)

// policies follows the NetworkPolicies of the cluster, and computes the groups of a node's ports.
type policies struct {
	node    string
	log     *slog.Logger
	changed chan struct{} // agent.Options.Regroup

	mu       sync.Mutex
	compiler *netpol.Compiler
	known    map[netpol.Name]bool // policies
	ports    []*model.Port        // that the compiler has
	vrfs     map[string]uint32    // of the networks of ports
	dirty    bool                 // the compiler has changes that last lacks
	last     *fib.Grouping
	took     time.Duration // of the last compilation
	said     netpol.Result // the result whose problems were logged last
}

// policyShare: compilations after changes of pods and policies use at most 1/5 of a CPU.
const policyShare = 4

func newPolicies(node string, log *slog.Logger) *policies {
	return &policies{node: node, log: log, changed: make(chan struct{}, 1), compiler: netpol.New(), known: map[netpol.Name]bool{}}
}

// followPolicies follows the policies until ctx ends. It returns when it knows all objects, so that no
// pod is open until then.
func followPolicies(ctx context.Context, config *rest.Config, node string, log *slog.Logger) (*policies, error) {
	core, err := restClient(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	networking, err := restClient(config, "/apis", networkingv1.SchemeGroupVersion, networkingv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	p := newPolicies(node, log)
	namespaces, err1 := watchAll(ctx, log, core, "namespaces", &corev1.Namespace{}, slimNamespace, nil)
	pods, err2 := watchAll(ctx, log, core, "pods", &corev1.Pod{}, slimPod, nil)
	all, err3 := watchAll(ctx, log, networking, "networkpolicies", &networkingv1.NetworkPolicy{}, slimPolicy, nil)
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
	pod := netpol.Pod{Name: nameOf(o), UIDs: []string{string(o.UID), ""}, Labels: o.Labels} // "": the runtime gave no UID
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
	p.known[nameOf(o)] = true
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
	kept.UID, kept.Labels = o.UID, o.Labels
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
		return p.last
	}
	p.dirty = false
	if len(p.known) == 0 {
		p.last = nil
		return nil
	}
	began := time.Now()
	r := p.compiler.Compile()
	p.took = time.Since(began)
	p.report(r)
	if l := p.last; l == nil || !maps.Equal(l.Groups, r.Groups) || !maps.Equal(l.Identities, r.Identities) || !maps.Equal(l.Allows, r.Allows) {
		p.last = &r.Grouping
	}
	return p.last
}

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
	var changed []*model.Port
	model.DiffPorts(before, s.All, func(was, is *model.Port) {
		p.dirty = true
		if was != nil {
			p.compiler.DeleteEndpoint(was.Name)
		}
		if is != nil {
			changed = append(changed, is)
		}
	})
	for _, port := range changed { // after all deletions: a port can move to another node
		p.compiler.SetEndpoint(netpol.Endpoint{
			Name: port.Name, Pod: netpol.Name{Namespace: port.Pod.Namespace, Name: port.Pod.Name}, UID: port.Pod.UID, VRF: vrfs[port.Network], IPs: port.IPs, Local: port.Node == p.node,
		})
	}
	p.ports, p.vrfs = s.All, vrfs
}

// report logs the problems of a result that the result before did not have.
func (p *policies) report(r netpol.Result) {
	for name, all := range r.Problems {
		if !slices.Equal(all, p.said.Problems[name]) {
			p.log.Warn("a part of a NetworkPolicy has no effect", "policy", name.Namespace+"/"+name.Name, "problem", strings.Join(all, "; "))
		}
	}
	for _, port := range r.Unknown {
		if !slices.Contains(p.said.Unknown, port) {
			p.log.Info("the API server has not named the pod of a port yet, so the port is closed", "port", port)
		}
	}
	p.said = netpol.Result{Problems: r.Problems, Unknown: r.Unknown}
}
