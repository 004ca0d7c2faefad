package k8s

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"windtunnel/internal/must"
	"windtunnel/vrouter/service"
)

func pointer[T any](v T) *T { return &v }

func clusterService(name, ip string, change func(*corev1.ServiceSpec)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.ServiceSpec{
		ClusterIPs: []string{ip}, Ports: []corev1.ServicePort{{Name: "web", Protocol: corev1.ProtocolTCP, Port: 80}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

// endpointsOf returns an EndpointSlice with the port web. Each endpoint is given as an address and its conditions.
func endpointsOf(name string, kind discoveryv1.AddressType, port int32, all ...[2]string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name + "-x", Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: kind,
		Ports: []discoveryv1.EndpointPort{{Name: pointer("web"), Port: &port, Protocol: pointer(corev1.ProtocolTCP)}, {Name: pointer("other"), Port: pointer(int32(9)), Protocol: pointer(corev1.ProtocolTCP)}},
	}
	for _, e := range all {
		one := discoveryv1.Endpoint{Addresses: []string{e[0]}, NodeName: pointer("b")}
		switch e[1] {
		case "here":
			one.NodeName = pointer("a")
		case "ending":
			one.Conditions = discoveryv1.EndpointConditions{Ready: pointer(false), Serving: pointer(true), Terminating: pointer(true)}
		case "unready":
			one.Conditions = discoveryv1.EndpointConditions{Ready: pointer(false), Serving: pointer(false), Terminating: pointer(false)}
		}
		s.Endpoints = append(s.Endpoints, one)
	}
	return s
}

func TestServicesAreThoseOfTheClusterAsANodeSeesThem(t *testing.T) {
	key := service.Key{Address: netip.MustParseAddr("10.96.0.1"), Port: 80, Protocol: 6}
	at := func(all ...string) (backends []netip.AddrPort) {
		for _, text := range all {
			backends = append(backends, netip.MustParseAddrPort(text))
		}
		return backends
	}
	sctp := func(s *corev1.ServiceSpec) { s.Ports[0].Protocol = corev1.ProtocolSCTP }
	v4 := discoveryv1.AddressTypeIPv4
	for name, c := range map[string]struct {
		change    func(*corev1.ServiceSpec)
		endpoints []*discoveryv1.EndpointSlice
		want      []service.Service
	}{
		"ready endpoints": {nil, []*discoveryv1.EndpointSlice{endpointsOf("s", v4, 8080, [2]string{"10.1.0.9"}, [2]string{"10.1.0.2", "ending"}, [2]string{"10.1.0.3", "unready"}, [2]string{"10.1.0.1"}), endpointsOf("s", v4, 8080, [2]string{"10.1.0.9"})},
			[]service.Service{{Key: key, Backends: at("10.1.0.1:8080", "10.1.0.9:8080")}}},
		"only ending ones": {nil, []*discoveryv1.EndpointSlice{endpointsOf("s", v4, 8080, [2]string{"10.1.0.2", "ending"}, [2]string{"10.1.0.3", "unready"})},
			[]service.Service{{Key: key, Backends: at("10.1.0.2:8080")}}},
		"none": {nil, []*discoveryv1.EndpointSlice{endpointsOf("another", v4, 80, [2]string{"10.1.0.2"})}, []service.Service{{Key: key}}},
		"only IPv6": {func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"fd00:96::1"} },
			[]*discoveryv1.EndpointSlice{endpointsOf("s", v4, 80, [2]string{"10.1.0.2"}), endpointsOf("s", discoveryv1.AddressTypeIPv6, 8080, [2]string{"fd00::1"})},
			[]service.Service{{Key: service.Key{Address: netip.MustParseAddr("fd00:96::1"), Port: 80, Protocol: 6}, Backends: at("[fd00::1]:8080")}}},
		"of another family":        {nil, []*discoveryv1.EndpointSlice{endpointsOf("s", discoveryv1.AddressTypeIPv6, 80, [2]string{"fd00::1"})}, []service.Service{{Key: key}}},
		"without a ClusterIP":      {func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{"None"} }, nil, nil},
		"with an external name":    {func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeExternalName }, nil, nil},
		"SCTP with the same port":  {sctp, nil, []service.Service{{Key: service.Key{Address: key.Address, Port: 80, Protocol: 132}}}},
		"affinity of default time": {func(s *corev1.ServiceSpec) { s.SessionAffinity = corev1.ServiceAffinityClientIP }, nil, []service.Service{{Key: key, Affinity: 3 * time.Hour}}},
		"only local endpoints": {func(s *corev1.ServiceSpec) {
			s.InternalTrafficPolicy = pointer(corev1.ServiceInternalTrafficPolicyLocal)
		}, []*discoveryv1.EndpointSlice{endpointsOf("s", v4, 80, [2]string{"10.1.0.2"}, [2]string{"10.1.0.3", "here"})},
			[]service.Service{{Key: key, Drop: true, Backends: at("10.1.0.3:80")}}},
	} {
		t.Run(name, func(t *testing.T) {
			slim, _ := slimService(clusterService("s", "10.96.0.1", c.change))
			var endpoints []*discoveryv1.EndpointSlice
			for _, e := range c.endpoints {
				o, _ := slimEndpoints("a")(e)
				endpoints = append(endpoints, o.(*discoveryv1.EndpointSlice))
			}
			for i := range c.want {
				c.want[i].Name = "shop/s"
			}
			got, _ := servicesOf([]*corev1.Service{slim.(*corev1.Service)}, endpoints, false)
			must.Equal(t, c.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty())
		})
	}
}

// Without kube-proxy, services also have what clients outside need.
func TestServicesForClientsOutside(t *testing.T) {
	backend := func(all ...string) (to []netip.AddrPort) {
		for _, a := range all {
			to = append(to, netip.MustParseAddrPort(a))
		}
		return to
	}
	address := func(all ...string) (to []netip.Addr) {
		for _, a := range all {
			to = append(to, netip.MustParseAddr(a))
		}
		return to
	}
	both, here := backend("10.1.0.2:80", "10.1.0.3:80"), backend("10.1.0.3:80")
	endpoints, _ := slimEndpoints("a")(endpointsOf("s", discoveryv1.AddressTypeIPv4, 80, [2]string{"10.1.0.2"}, [2]string{"10.1.0.3", "here"}))
	balanced := func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeLoadBalancer, 30080
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}, {IP: "fd00::9"}, {Hostname: "x.test"}, {IP: "192.0.2.8", IPMode: pointer(corev1.LoadBalancerIPModeProxy)}}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Service)
		want   *service.Outside
	}{
		"only a ClusterIP": {func(*corev1.Service) {}, nil},
		"a NodePort": {func(s *corev1.Service) {
			s.Spec.Type, s.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
		}, &service.Outside{NodePort: 30080, Backends: both}},
		"external addresses": {func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.7", "fd00::7"} }, &service.Outside{Addresses: address("192.0.2.7"), Backends: both}},
		"balancers":          {balanced, &service.Outside{NodePort: 30080, Balancers: address("192.0.2.9"), Backends: both}},
		"balancers for some clients": {func(s *corev1.Service) {
			balanced(s)
			s.Spec.LoadBalancerSourceRanges = []string{" 198.51.100.0/24 "}
		}, &service.Outside{NodePort: 30080, Balancers: address("192.0.2.9"), Sources: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}, Backends: both}},
		"only pods of the node": {func(s *corev1.Service) {
			balanced(s)
			s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
		}, &service.Outside{NodePort: 30080, Balancers: address("192.0.2.9"), Local: true, Backends: here, All: both}},
		"its own pods for other pods, all for clients outside": {func(s *corev1.Service) {
			s.Spec.InternalTrafficPolicy, s.Spec.ExternalIPs = pointer(corev1.ServiceInternalTrafficPolicyLocal), []string{"192.0.2.7"}
		}, &service.Outside{Addresses: address("192.0.2.7"), Backends: both}},
	} {
		t.Run(name, func(t *testing.T) {
			s := clusterService("s", "10.96.0.1", nil)
			c.change(s)
			slim, _ := slimService(s)
			got, problems := servicesOf([]*corev1.Service{slim.(*corev1.Service)}, []*discoveryv1.EndpointSlice{endpoints.(*discoveryv1.EndpointSlice)}, true)
			if len(got) != 1 || len(problems) > 0 {
				t.Fatalf("services %+v, problems %+v", got, problems)
			}
			must.Equal(t, c.want, got[0].Outside, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}), cmpopts.EquateEmpty())
		})
	}
}

// If services have the same external address and port, one of them gets it. The kernel translates a port of SCTP.
func TestServicesShareNoAddressOutside(t *testing.T) {
	a := clusterService("a", "10.96.0.1", func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.7", "192.0.2.7", "10.96.0.2"} })
	b := clusterService("b", "10.96.0.2", func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{"192.0.2.7"} })
	c := clusterService("c", "10.96.0.3", func(s *corev1.ServiceSpec) { s.Ports[0].Protocol = corev1.ProtocolSCTP })
	slice := endpointsOf("c", discoveryv1.AddressTypeIPv4, 8080, [2]string{"10.1.0.2"})
	slice.Ports[0].Protocol = pointer(corev1.ProtocolSCTP)
	got, problems := servicesOf([]*corev1.Service{a, b, c}, []*discoveryv1.EndpointSlice{slice}, true)
	if len(got) != 3 || len(problems) > 0 || fmt.Sprint(got[0].Outside.Addresses, got[1].Outside.Addresses) != "[192.0.2.7] []" || got[0].RulesOnly || !got[2].RulesOnly {
		t.Errorf("services %+v, problems %+v", got, problems)
	}
}

// The memory that 5,000 services with 20,000 endpoints take, and the time to compute all of them after a change.
func BenchmarkServices(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var services []*corev1.Service
	var endpoints []*discoveryv1.EndpointSlice
	for i := range 5000 {
		name := fmt.Sprint("service-", i)
		var all [][2]string
		for j := range 4 {
			all = append(all, [2]string{fmt.Sprintf("10.%d.%d.%d", 128+j, i/250, i%250+1)})
		}
		s, _ := slimService(clusterService(name, fmt.Sprintf("10.96.%d.%d", i/250, i%250+1), nil))
		e, _ := slimEndpoints("a")(endpointsOf(name, discoveryv1.AddressTypeIPv4, 8080, all...))
		services, endpoints = append(services, s.(*corev1.Service)), append(endpoints, e.(*discoveryv1.EndpointSlice))
	}
	var all []service.Service
	for b.Loop() {
		all, _ = servicesOf(services, endpoints, false)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	if len(all) != 5000 || len(all[0].Backends) != 4 {
		b.Fatal(len(all))
	}
	runtime.KeepAlive(services)
	runtime.KeepAlive(endpoints)
}
