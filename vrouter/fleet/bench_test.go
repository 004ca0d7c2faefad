package fleet

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
	"windtunnel/vrouter/store/storetest"
)

// The cost of a store and its copy with 100,000 ports: time to apply them to an
// empty state, time to apply them again, and memory.
func BenchmarkApply(b *testing.B) {
	const ports = 100_000
	s := small()
	s.Networks[0].Subnets = prefixes("10.0.0.0/8")
	for i := range ports {
		s.Ports = append(s.Ports, model.Port{
			Name: fmt.Sprint("p", i), Network: "red", Node: "b", MAC: model.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)},
			IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(1 + i>>16), byte(i >> 8), byte(i)})},
		})
	}
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.StopTimer()
			before := heapMB()
			f := openFile(b)
			b.StartTimer()
			apply(b, f, s)
			b.StopTimer()
			b.ReportMetric(heapMB()-before, "heap-MB")
			runtime.KeepAlive(f)
			b.StartTimer()
		}
	})
	b.Run("same", func(b *testing.B) {
		f := openFile(b)
		apply(b, f, s)
		b.ReportAllocs()
		for b.Loop() {
			apply(b, f, s)
		}
	})
	b.Run("one-more", func(b *testing.B) {
		f := openFile(b)
		apply(b, f, s)
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n++
			add(b, f, port(fmt.Sprint("x", n), fmt.Sprintf("10.200.%d.%d", n>>8, n&255)))
		}
	})
	b.Run("one-more-allocated", func(b *testing.B) {
		f := openFile(b)
		apply(b, f, s)
		n := 0
		for b.Loop() {
			n++
			add(b, f, port(fmt.Sprint("x", n)))
		}
	})
	for what, change := range map[string]func(f *Fleet, n int) error{
		"node": func(f *Fleet, n int) error {
			return f.PutNode(ctx(b), model.Node{Name: "c", Underlay: addresses(fmt.Sprint("192.0.2.", 3+n%200))})
		},
		"policy": func(f *Fleet, n int) error {
			return f.PutPolicy(ctx(b), model.Policy{Name: "web", Rules: s.Policies[0].Rules[:n%2]})
		},
		"route": func(f *Fleet, n int) error {
			return f.PutRoute(ctx(b), model.Route{Network: "red", Prefix: prefixes(fmt.Sprintf("172.16.%d.0/24", n%200))[0], Via: []model.Via{{Port: "p7"}}})
		},
		"other-network": func(f *Fleet, n int) error {
			_, err := f.UpdateNetwork(ctx(b), "blue", func(n *model.Network) error { n.VNI ^= 1 << 10; return nil })
			return err
		},
	} {
		b.Run(what, func(b *testing.B) {
			f := openFile(b)
			s := s
			s.Networks = append(slices.Clone(s.Networks), model.Network{Name: "blue", ID: 2, Subnets: prefixes("172.20.0.0/16")})
			apply(b, f, s)
			n := 0
			for b.Loop() {
				n++
				must.Succeed(b, change(f, n))
			}
		})
	}
}

func heapMB() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / (1 << 20)
}

// The time to apply 20,000 ports to etcd. Each commit has at most 100 keys.
func BenchmarkApplyToEtcd(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		f := follow(b, openEtcd(b, storetest.Start(b, 1, nil)))
		apply(b, f, small())
		b.StartTimer()
		must.Succeed(b, f.Apply(b.Context(), largeFleet(200, 100)))
	}
}

// The memory of a copy with 100,000 ports in one network: ports with addresses only, and ports of pods.
func BenchmarkCopy(b *testing.B) {
	const ports = 100_000
	plain := func(n int) model.Port {
		return model.Port{
			Name: fmt.Sprint("p", n), Network: "red", Node: "b", MAC: model.MAC{2, 1, 0, byte(n >> 16), byte(n >> 8), byte(n)},
			IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(1 + n>>16), byte(n >> 8), byte(n)})},
		}
	}
	pod := func(n int) model.Port {
		p := plain(n)
		p.Name, p.Attach = fmt.Sprintf("k8s-%032x", n), model.Attachment{Netns: fmt.Sprintf("/var/run/netns/cni-%036x", n), Interface: "eth0"}
		p.Origin, p.Owner = model.CNI, fmt.Sprintf("%064x", n)
		p.OfPod = &model.Pod{Namespace: "default", Name: fmt.Sprintf("web-7c9f-%05d", n), UID: fmt.Sprintf("%036x", n)}
		return p
	}
	for kind, port := range map[string]func(n int) model.Port{"plain": plain, "pods": pod} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				before := heapMB()
				i := store.Image{Revision: 1, Entries: []store.Entry{{Key: "hosts/b/red", Revision: 1}}}
				for n := range ports {
					p := port(n)
					i.Entries = append(i.Entries, store.Entry{Key: portKey(p), Value: encode(p), Revision: 1})
				}
				v, err := newView(i)
				if err != nil || len(v.ports) != ports {
					b.Fatalf("the copy has %d ports, %v; want %d", len(v.ports), err, ports)
				}
				i = store.Image{}
				b.ReportMetric(heapMB()-before, "heap-MB")
				runtime.KeepAlive(v)
			}
		})
	}
}

// BenchmarkUpdateNetwork measures how long an agent takes to change a network, with 100,000 ports in etcd. A network of
// another tenant has the same subnets.
func BenchmarkUpdateNetwork(b *testing.B) {
	c := storetest.Start(b, 1, nil)
	nodes, _ := setting(b, scaleVariable, 1000)
	s := largeFleet(nodes, 100)
	s.Networks[1].Tenant, s.Networks[1].Subnets = "other", s.Networks[2].Subnets
	s.Ports = slices.DeleteFunc(s.Ports, func(p model.Port) bool { return p.Network == "n1" })
	for _, p := range s.Ports {
		if p.Network == "n2" {
			p.Network, p.Name = "n1", "other-"+p.Name
			s.Ports = append(s.Ports, p)
		}
	}
	writing, end := context.WithTimeout(b.Context(), 5*time.Minute)
	defer end()
	must.Succeed(b, follow(b, openEtcd(b, c)).Apply(writing, s))
	f := followWith(b, openEtcd(b, c), Options{Node: nodeName(0)})
	must.Succeed(b, f.Reach(ctx(b)))
	update := func(b *testing.B, network string) {
		for b.Loop() {
			must.Get(f.UpdateNetwork(writing, network, func(n *model.Network) error { n.VNI ^= 1 << 20; return nil }))(b)
		}
	}
	b.Run("alone", func(b *testing.B) { update(b, "n0") })
	b.Run("overlaps", func(b *testing.B) { update(b, "n2") })
	host := model.Port{Name: "host", Network: "n2", Node: nodeName(0), Attach: model.Attachment{Host: true}}
	add(b, f, host)
	b.Run("overlaps-with-host-port", func(b *testing.B) { update(b, "n2") })
}
