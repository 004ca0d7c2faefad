package k8s

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vishvananda/netns"

	"windtunnel/internal/must"
	"windtunnel/internal/netspace"
)

// lookups is the number of lookups by each pod, over each protocol, at each address of the DNS server.
const lookups = 20

// testDNS looks up the name of a service from a pod on each node, at each ClusterIP of the cluster's DNS server. No
// packet may be lost: the resolver would ask again.
func (k *installation) testDNS(t *testing.T) {
	k.StartDNS()
	servers := strings.Fields(k.kubectl("", "-n", "kube-system", "get", "service", "kube-dns", "-o", "jsonpath={.spec.clusterIPs[*]}"))
	want := slices.Sorted(slices.Values(servers))
	for i, p := range k.pods() {
		dial := k.dialerOf(k.Nodes[i].Root + k.space(k.Nodes[i], p.Status.PodIP))
		for _, server := range servers {
			for _, protocol := range []string{"udp", "tcp"} {
				var asked atomic.Int64
				r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
					asked.Add(1)
					return dial(ctx, protocol, net.JoinHostPort(server, "53"))
				}}
				for range lookups {
					got, err := r.LookupHost(t.Context(), "kube-dns.kube-system.svc.cluster.local.")
					if slices.Sort(got); err != nil || !slices.Equal(got, want) {
						k.logPods()
						t.Fatalf("%s asks %s over %s for the addresses of kube-dns: %v, %v, want %v", p.Metadata.Name, server, protocol, got, err, want)
					}
				}
				if n := asked.Load(); n != 2*lookups { // one for each IP version
					t.Errorf("%s asked %s %d times over %s, want %d: an answer was lost", p.Metadata.Name, server, n, protocol, 2*lookups)
				}
			}
		}
	}
}

// dialerOf returns a function that connects from a network namespace.
func (k *installation) dialerOf(path string) func(ctx context.Context, network, address string) (net.Conn, error) {
	ns := must.Get(netns.GetFromPath(path))(k.T)
	k.T.Cleanup(func() { ns.Close() })
	return func(ctx context.Context, network, address string) (c net.Conn, err error) {
		err = netspace.OwnThread(func() error {
			if err := netns.Set(ns); err != nil {
				return err
			}
			c, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return c, err
	}
}
