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
			got, _ := servicesOf([]*corev1.Service{slim.(*corev1.Service)}, endpoints)
			must.Equal(t, c.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}), cmpopts.EquateEmpty())
		})
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
		all, _ = servicesOf(services, endpoints)
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
