package k8s

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"windtunnel/internal/lists"
	"windtunnel/vrouter/k8s/netpol"
	"windtunnel/vrouter/service"
)

// serviceWait is the time to wait after a change, so that several changes are written together.
const serviceWait = 20 * time.Millisecond

// followServices returns a function that follows the services of the cluster for the node of e; see
// agent.Options. With outside, the services also have what hosts outside need to reach them.
func followServices(config *rest.Config, e *events, outside bool) (func(ctx context.Context, set func([]service.Service) error), error) {
	services, err := restClient(config, "/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
	if err != nil {
		return nil, err
	}
	slices, err := restClient(config, "/apis", discoveryv1.SchemeGroupVersion, discoveryv1.AddToScheme)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, set func([]service.Service) error) {
		health := healthServers{port: healthPort}
		defer health.close()
		changed := make(chan struct{}, 1)
		all, err := watchAll(ctx, e.log, services, "services", &corev1.Service{}, slimService, changed)
		endpoints, err2 := watchAll(ctx, e.log, slices, "endpointslices", &discoveryv1.EndpointSlice{}, slimEndpoints(e.node), changed)
		if err := errors.Join(err, err2); err != nil {
			e.log.Error("cannot follow the services of the cluster; workloads keep the services that they have", "error", err)
			return
		}
		if !cache.WaitForCacheSync(ctx.Done(), all.HasSynced, endpoints.HasSynced) {
			return
		}
		for ctx.Err() == nil {
			var again <-chan time.Time
			known, problems := servicesOf(listed[*corev1.Service](all), listed[*discoveryv1.EndpointSlice](endpoints), outside)
			failed := set(known)
			if err := failed; err != nil {
				e.log.Warn("cannot write the cluster's services to the data path; trying again", "error", err)
				again = time.After(lookPause)
				problems = append(problems, problem{aboutNode(e.node), servicesNotSet, "cannot write the cluster's services to the data path, so this node does not see changes of services; see the log of the agent's pod"})
			}
			if outside {
				if err := health.keep(known, failed == nil); err != nil {
					e.log.Warn("cannot do all the work of kube-proxy; trying again", "error", err)
					again = time.After(lookPause)
				}
			}
			e.report("services", problems)
			select {
			case <-changed:
			case <-again:
			case <-ctx.Done():
			}
			time.Sleep(serviceWait)
		}
	}, nil
}

// restClient returns a client of one group of the API.
func restClient(config *rest.Config, path string, version schema.GroupVersion, add func(*runtime.Scheme) error) (*rest.RESTClient, error) {
	scheme := runtime.NewScheme()
	if err := add(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, version)
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion, c.NegotiatedSerializer = path, &version, serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(c)
}

// watchAll keeps the objects of a resource of all namespaces, and reports changes.
func watchAll(ctx context.Context, log *slog.Logger, c *rest.RESTClient, resource string, example runtime.Object, slim cache.TransformFunc, changed chan<- struct{}) (cache.SharedInformer, error) {
	return watchList(ctx, log, cache.NewListWatchFromClient(c, resource, metav1.NamespaceAll, fields.Everything()), resource, example, slim, changed)
}

// watchList keeps the objects of a list, and reports changes.
func watchList(ctx context.Context, log *slog.Logger, list cache.ListerWatcher, what string, example runtime.Object, slim cache.TransformFunc, changed chan<- struct{}) (cache.SharedInformer, error) {
	informer := cache.NewSharedInformer(list, example, 0)
	wake := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { wake() }, UpdateFunc: func(_, _ any) { wake() }, DeleteFunc: func(any) { wake() }})
	err = errors.Join(err, informer.SetTransform(slim), informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			log.Warn("cannot follow the "+what+" of the cluster; trying again", "error", err)
		}
	}))
	go informer.RunWithContext(ctx)
	return informer, err
}

func listed[T any](i cache.SharedInformer) []T {
	return lists.Map(i.GetStore().List(), func(o any) T { return o.(T) })
}

func slimMeta(m metav1.ObjectMeta, label string) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion}
	if value, has := m.Labels[label]; has {
		kept.Labels = map[string]string{label: value}
	}
	return kept
}

// otherProxy is a label of services that another program than kube-proxy implements.
const otherProxy = "service.kubernetes.io/service-proxy-name"

// slimService keeps only what servicesOf uses.
func slimService(object any) (any, error) {
	s, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	return &corev1.Service{ObjectMeta: slimMeta(s.ObjectMeta, otherProxy), Status: corev1.ServiceStatus{LoadBalancer: s.Status.LoadBalancer}, Spec: corev1.ServiceSpec{
		Type: s.Spec.Type, ClusterIPs: s.Spec.ClusterIPs, Ports: s.Spec.Ports, SessionAffinity: s.Spec.SessionAffinity,
		SessionAffinityConfig: s.Spec.SessionAffinityConfig, InternalTrafficPolicy: s.Spec.InternalTrafficPolicy,
		ExternalTrafficPolicy: s.Spec.ExternalTrafficPolicy, ExternalIPs: s.Spec.ExternalIPs, LoadBalancerSourceRanges: s.Spec.LoadBalancerSourceRanges,
		HealthCheckNodePort: s.Spec.HealthCheckNodePort,
	}}, nil
}

func slimEndpoints(node string) cache.TransformFunc {
	return func(object any) (any, error) {
		s, ok := object.(*discoveryv1.EndpointSlice)
		if !ok {
			return object, nil
		}
		kept := &discoveryv1.EndpointSlice{ObjectMeta: slimMeta(s.ObjectMeta, discoveryv1.LabelServiceName), AddressType: s.AddressType, Ports: s.Ports}
		for _, e := range s.Endpoints {
			one := discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions}
			if e.NodeName != nil && *e.NodeName == node {
				one.NodeName = &node
			}
			kept.Endpoints = append(kept.Endpoints, one)
		}
		return kept, nil
	}
}

// servicesOf returns the services for the data path, sorted by key. With outside, they are also for the rules of the node's
// kernel. problems has the reasons why other services are left out.
func servicesOf(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice, outside bool) (all []service.Service, problems []problem) {
	of := map[[2]string][]*discoveryv1.EndpointSlice{}
	for _, e := range endpoints {
		key := [2]string{e.Namespace, e.Labels[discoveryv1.LabelServiceName]}
		of[key] = append(of[key], e)
	}
	for _, s := range services {
		if _, other := s.Labels[otherProxy]; other || s.Spec.Type == corev1.ServiceTypeExternalName {
			continue
		}
		local := value(s.Spec.InternalTrafficPolicy) == corev1.ServiceInternalTrafficPolicyLocal
		for _, ip := range s.Spec.ClusterIPs {
			address, err := netip.ParseAddr(ip)
			if err != nil {
				continue // "None": headless
			}
			for _, p := range s.Spec.Ports {
				one := service.Service{
					Key:  service.Key{Address: address, Port: uint16(p.Port), Protocol: netpol.Protocol(p.Protocol)},
					Name: s.Namespace + "/" + s.Name, Affinity: affinityOf(s), Drop: local,
				}
				one.Backends = backendsOf(one.Key, p, of[[2]string{s.Namespace, s.Name}], local)
				if outside {
					one.Outside = outsideOf(s, one.Key, p, of[[2]string{s.Namespace, s.Name}])
					one.RulesOnly = changesPortOfSCTP(one)
				}
				switch {
				case one.Protocol == 0:
				case changesPortOfSCTP(one) && !outside:
					problems = append(problems, problem{
						corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: s.Namespace, Name: s.Name, UID: s.UID}, notTranslated,
						fmt.Sprintf("vrouter does not change ports of SCTP: set targetPort of the port %d to the same number, or use kube-proxy or --kube-proxy-replacement for it", p.Port),
					})
				default:
					all = append(all, one)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b service.Service) int { return a.Key.Compare(b.Key) })
	all = slices.CompactFunc(all, func(a, b service.Service) bool { return a.Key == b.Key })
	if outside {
		removeClashes(all)
	}
	return all, problems
}

// outsideOf returns the addresses and ports at which clients outside the pods' networks reach a port of a service; nil: none.
func outsideOf(s *corev1.Service, key service.Key, p corev1.ServicePort, endpoints []*discoveryv1.EndpointSlice) *service.Outside {
	o := &service.Outside{Local: s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal}
	if s.Spec.Type != corev1.ServiceTypeClusterIP {
		o.NodePort = uint16(p.NodePort)
	}
	add := func(to *[]netip.Addr, ip string) {
		if a, err := netip.ParseAddr(ip); err == nil && a.Is4() == key.Address.Is4() {
			*to = append(*to, a)
		}
	}
	for _, ip := range s.Spec.ExternalIPs {
		add(&o.Addresses, ip)
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		for _, in := range s.Status.LoadBalancer.Ingress {
			if value(in.IPMode) != corev1.LoadBalancerIPModeProxy {
				add(&o.Balancers, in.IP)
			}
		}
	}
	if o.NodePort == 0 && len(o.Addresses)+len(o.Balancers) == 0 {
		return nil
	}
	for _, text := range s.Spec.LoadBalancerSourceRanges {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			o.Sources = append(o.Sources, p)
		}
	}
	o.Backends = backendsOf(key, p, endpoints, o.Local)
	if o.Local {
		o.All = backendsOf(key, p, endpoints, false)
		if o.HealthPort = uint16(s.Spec.HealthCheckNodePort); o.HealthPort != 0 {
			ready, _ := endpointsFor(key, p, endpoints, true)
			o.Ready = len(ready)
		}
	}
	return o
}

// removeClashes lets only the first of several services with the same address or NodePort keep it.
func removeClashes(all []service.Service) {
	taken, ports := map[service.Key]bool{}, map[service.Key]bool{}
	for _, s := range all {
		taken[s.Key] = true
	}
	for _, s := range all {
		if s.Outside == nil {
			continue
		}
		clash := func(a netip.Addr) bool {
			key := service.Key{Address: a, Port: s.Port, Protocol: s.Protocol}
			is := taken[key]
			taken[key] = true
			return is
		}
		s.Outside.Addresses = slices.DeleteFunc(s.Outside.Addresses, clash)
		s.Outside.Balancers = slices.DeleteFunc(s.Outside.Balancers, clash)
		key := service.Key{Address: unspecified(s.Address), Port: s.Outside.NodePort, Protocol: s.Protocol}
		if ports[key] {
			s.Outside.NodePort = 0
		}
		ports[key] = true
	}
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func affinityOf(s *corev1.Service) time.Duration {
	if s.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return 0
	}
	seconds := int32(corev1.DefaultClientIPServiceAffinitySeconds)
	if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	return time.Duration(seconds) * time.Second
}

// changesPortOfSCTP reports whether a service of SCTP has another port than its backends. The data path cannot
// translate it, because SCTP's checksum covers the ports. kube-proxy serves it.
func changesPortOfSCTP(s service.Service) bool {
	return s.Protocol == netpol.Protocol(corev1.ProtocolSCTP) && slices.ContainsFunc(s.Backends, func(b netip.AddrPort) bool { return b.Port() != s.Port })
}

// backendsOf returns the ready endpoints of a port, sorted. If there are none, it returns the endpoints that are
// terminating but still serving, as kube-proxy does.
func backendsOf(key service.Key, p corev1.ServicePort, endpoints []*discoveryv1.EndpointSlice, local bool) []netip.AddrPort {
	ready, ending := endpointsFor(key, p, endpoints, local)
	if len(ready) == 0 {
		return ending
	}
	return ready
}

// endpointsFor returns the endpoints of a port that are ready, and those that are terminating but still serving, sorted.
func endpointsFor(key service.Key, p corev1.ServicePort, endpoints []*discoveryv1.EndpointSlice, local bool) (ready, ending []netip.AddrPort) {
	family := discoveryv1.AddressTypeIPv6
	if key.Address.Is4() {
		family = discoveryv1.AddressTypeIPv4
	}
	for _, slice := range endpoints {
		if slice.AddressType != family {
			continue
		}
		for _, port := range slice.Ports {
			if port.Port == nil || value(port.Name) != p.Name || port.Protocol != nil && *port.Protocol != p.Protocol {
				continue
			}
			for _, e := range slice.Endpoints {
				into := &ready
				if e.Conditions.Ready != nil && !*e.Conditions.Ready {
					into = &ending
				}
				if local && e.NodeName == nil || len(e.Addresses) == 0 || into == &ending && !(value(e.Conditions.Serving) && value(e.Conditions.Terminating)) {
					continue
				}
				if a, err := netip.ParseAddr(e.Addresses[0]); err == nil {
					*into = append(*into, netip.AddrPortFrom(a, uint16(*port.Port)))
				}
			}
		}
	}
	slices.SortFunc(ready, netip.AddrPort.Compare)
	slices.SortFunc(ending, netip.AddrPort.Compare)
	return slices.Compact(ready), slices.Compact(ending)
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
