package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// scrape reads an agent's metrics: name{labels} → value.
func scrape(t *testing.T, r *running) map[string]float64 {
	t.Helper()
	text := must.Get(r.client.Metrics(context.Background()))(t)
	return samplesOf(t, text)
}

func samplesOf(t *testing.T, text string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		n, err := strconv.ParseFloat(strings.TrimSpace(line[i+1:]), 64)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if _, twice := all[line[:i]]; twice {
			t.Errorf("%s stands there twice", line[:i])
		}
		all[line[:i]] = n
	}
	return all
}

// meshed is two networks, one that routes and one that bridges, without IPv6:
// no workload says a word that the test did not send.
func meshed(f *agenttest.TwoNodes, w map[string]*netdev.Space) model.State {
	s := f.State(w, model.MPLSoUDP)
	s.Networks[0].Subnets = s.Networks[0].Subnets[:1]
	s.Networks = append(s.Networks, model.Network{Name: "blue", ID: 9, Forwarding: model.L2})
	for i := range s.Ports {
		s.Ports[i].IPs = s.Ports[i].IPs[:1]
		blue := s.Ports[i]
		blue.Name, blue.Network, blue.MAC, blue.IPs = "blue-"+blue.Name, "blue", model.MAC{2, 0, 0, 0, 9, byte(i)}, nil
		blue.Attach.Interface = "eth1"
		s.Ports = append(s.Ports, blue)
	}
	return s
}

// TestEveryCounterCountsWhatWasSent sends so many frames of every kind and
// compares.
func TestEveryCounterCountsWhatWasSent(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	w := map[string]*netdev.Space{"a1": agenttest.NewSpace(t, "wa1"), "b1": agenttest.NewSpace(t, "wb1"), "a2": agenttest.NewSpace(t, "wa2")}
	for _, s := range w {
		silent(t, s)
	}
	a, b := start(t, f.Config("a")), start(t, f.Config("b"))
	s := meshed(f, w)
	for _, r := range []*running{a, b} {
		must.Get(r.client.PutState(context.Background(), s))(t)
	}
	a1, blue := s.Ports[0].MAC, s.Ports[3].MAC
	sink(t, w["b1"])
	sink(t, w["a2"])
	// The neighbours of the fabric resolve with the first packets.
	must.Succeed(t, exchange(w["a1"], w["b1"], "10.7.0.11"))
	beforeA, beforeB := settled(t, a), settled(t, b)

	inject(t, w["a1"], "eth0", 7, datagram(t, a1, model.RouterMAC, "10.7.0.10", "10.7.0.11", 100))                     // packets to the other node
	inject(t, w["a1"], "eth0", 5, datagram(t, a1, model.RouterMAC, "10.7.0.10", "10.7.0.12", 200))                     // packets to a port of the same node
	inject(t, w["a1"], "eth0", 3, ping(t, a1, "10.7.0.10", "10.7.0.1"))                                                // requests to the gateway
	inject(t, w["a1"], "eth0", 4, datagram(t, a1, model.RouterMAC, "10.7.0.10", "192.0.2.1", 30))                      // packets without a route
	inject(t, w["a1"], "eth0", 2, datagram(t, a1, model.RouterMAC, "10.7.0.99", "10.7.0.11", 30))                      // packets with a spoofed source
	inject(t, w["a1"], "eth1", 6, datagram(t, blue, broadcast, "192.0.2.7", "255.255.255.255", 50))                    // broadcasts to both other ports
	must.Succeed(t, f.B.Do(func() error { return fromFabric("172.31.0.1:6635", []byte{0xff, 0xff, 0x01, 64, 0x45}) })) // a process on node b, which must not send tunnel packets

	const payload, local, echoed, small, flooded = 142, 242, 60, 72, 92
	compare(t, a, beforeA, map[string]float64{
		`vrouter_vif_packets_total{direction="rx",network="red",port="a1"}`:                 7 + 5 + 3 + 4 + 2,
		`vrouter_vif_packets_total{direction="rx",network="blue",port="blue-a1"}`:           6,
		`vrouter_vif_bytes_total{direction="rx",network="blue",port="blue-a1"}`:             6 * flooded,
		`vrouter_vif_bytes_total{direction="rx",network="red",port="a1"}`:                   7*payload + 5*local + 3*echoed + (4+2)*small,
		`vrouter_vif_packets_total{direction="tx",network="red",port="a2"}`:                 5,
		`vrouter_vif_bytes_total{direction="tx",network="red",port="a2"}`:                   5 * local,
		`vrouter_vif_packets_total{direction="tx",network="blue",port="blue-a2"}`:           6,
		`vrouter_vif_packets_total{direction="tx",network="blue",port="blue-a1"}`:           0,
		`vrouter_vrf_packets_total{direction="tx",encapsulation="mpls-udp",network="red"}`:  7,
		`vrouter_vrf_bytes_total{direction="tx",encapsulation="mpls-udp",network="red"}`:    7 * payload,
		`vrouter_vrf_bytes_total{direction="tx",encapsulation="mpls-udp",network="blue"}`:   6 * flooded,
		`vrouter_vrf_packets_total{direction="tx",encapsulation="local",network="red"}`:     5,
		`vrouter_vrf_bytes_total{direction="tx",encapsulation="local",network="red"}`:       5 * local,
		`vrouter_vrf_packets_total{direction="rx",encapsulation="mpls-udp",network="red"}`:  0,
		`vrouter_vrf_packets_total{direction="tx",encapsulation="mpls-udp",network="blue"}`: 6,
		`vrouter_drops_total{port="a1",reason="no_route"}`:                                  4,
		`vrouter_drops_total{port="a1",reason="spoofed_ip"}`:                                2,
		`vrouter_frames_total{outcome="forwarded"}`:                                         7 + 5 + 6, // a copy for a tunnel enters once more, as a frame
		`vrouter_frames_total{outcome="answered"}`:                                          3,
		`vrouter_frames_total{outcome="dropped"}`:                                           4 + 2,
		`vrouter_frames_total{outcome="replicated"}`:                                        6,
		`vrouter_frames_total{outcome="replicas"}`:                                          6,
		`vrouter_frames_total{outcome="decapped"}`:                                          0,
	})
	compare(t, b, beforeB, map[string]float64{
		`vrouter_drops_total{port="",reason="forged_tunnel"}`:                              1,
		`vrouter_frames_total{outcome="decapped"}`:                                         7, // flooded frames are decapsulated in tc
		`vrouter_vif_packets_total{direction="tx",network="red",port="b1"}`:                7,
		`vrouter_vif_bytes_total{direction="tx",network="red",port="b1"}`:                  7 * payload,
		`vrouter_vif_packets_total{direction="tx",network="blue",port="blue-b1"}`:          6,
		`vrouter_vif_packets_total{direction="rx",network="red",port="b1"}`:                0,
		`vrouter_vrf_packets_total{direction="rx",encapsulation="mpls-udp",network="red"}`: 7,
		`vrouter_vrf_bytes_total{direction="rx",encapsulation="mpls-udp",network="red"}`:   7 * payload,
		`vrouter_frames_total{outcome="dropped"}`:                                          1,
	})
	for _, r := range []*running{a, b} {
		now := settled(t, r)
		became := 0.0
		for _, o := range []string{"passed", "forwarded", "answered", "replicated", "dropped"} {
			became += now[`vrouter_frames_total{outcome="`+o+`"}`]
		}
		if received := now[`vrouter_frames_total{outcome="received"}`]; received != became {
			t.Errorf("node %s received %v frames, %v became of them", r.config.Node, received, became)
		}
	}
}

// settled are an agent's counters once no packet is under way any more.
func settled(t *testing.T, r *running) (now map[string]float64) {
	t.Helper()
	must.Eventually(t, "no packet under way", func() error {
		before := now
		now = scrape(t, r)
		for name, n := range now {
			if strings.Contains(name, "_total") && before[name] != n {
				return &unexpected{name, n}
			}
		}
		return nil
	})
	return now
}

// compare waits until the counters have grown by the wanted numbers. On a busy machine, packets can wait in the kernel's queues
// for some time before they are counted.
func compare(t *testing.T, r *running, before, want map[string]float64) {
	t.Helper()
	must.Eventually(t, "the counters of node "+r.config.Node, func() (err error) {
		now := settled(t, r)
		for name, n := range want {
			if value, ok := now[name]; !ok && n > 0 {
				err = errors.Join(err, fmt.Errorf("there is no %s", name))
			} else if got := value - before[name]; got != n {
				err = errors.Join(err, fmt.Errorf("%s counted %v, want %v", name, got, n))
			}
		}
		return err
	})
}

// silent keeps a namespace's devices from speaking IPv6 by themselves.
func silent(t *testing.T, s *netdev.Space) {
	t.Helper()
	must.Succeed(t, s.Sysctls("ipv6", "default", netdev.Setting{Key: "disable_ipv6", Value: "1"}))
}

// fromFabric sends a datagram as another node would.
func fromFabric(to string, payload []byte) error {
	c, err := net.Dial("udp", to)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Write(payload)
	return err
}

// TestGaugesHaveTableSizesAndHealth compares them with what the API lists.
func TestGaugesHaveTableSizesAndHealth(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	w := map[string]*netdev.Space{"a1": agenttest.NewSpace(t, "wa1"), "a2": agenttest.NewSpace(t, "wa2")}
	c := f.Config("a")
	c.Limits.Routes, c.Metrics = 3000, freeAddress()
	group := fib.Group{Number: 5, In: true}
	grouping := &fib.Grouping{Revision: 1, Groups: map[string]fib.Group{"a1": group, "a2": group}, Sets: fib.Sets{
		Identities: map[fib.RouteKey]layout.Identity{{VRF: 7, Prefix: netip.MustParsePrefix("10.7.0.12/32")}: {Pods: 6}},
		Allows:     map[fib.Allow]bool{{Group: 5}: true, {Group: 5, Identity: 6}: true},
	}}
	a := startWith(t, c, Options{Grouping: func(model.Slice) *fib.Grouping { return grouping }})
	s := f.State(w)
	s.Policies = []model.Policy{{Name: "web", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Allow, Protocol: "tcp"}}}}
	s.Ports[1].Policies = []string{"web"}
	must.Get(a.client.PutState(context.Background(), s))(t)
	must.Succeed(t, exchange(w["a1"], w["a2"], "10.7.0.12"))
	got := scrape(t, a)
	for name, want := range map[string]float64{
		`vrouter_table_entries{table="vifs"}`:       2,
		`vrouter_table_entries{table="hosts4"}`:     float64(hostsIn(t, a, true)),
		`vrouter_table_entries{table="hosts6"}`:     float64(hostsIn(t, a, false)),
		`vrouter_table_limit{table="hosts4"}`:       3000,
		`vrouter_table_limit{table="hosts6"}`:       3000,
		`vrouter_table_limit{table="flows"}`:        4096,
		`vrouter_table_entries{table="identities"}`: 1,
		`vrouter_table_limit{table="identities"}`:   1500,
		`vrouter_table_entries{table="allows"}`:     2,
		`vrouter_table_limit{table="allows"}`:       1500,
		`vrouter_table_entries{table="groups"}`:     1,
		`vrouter_flows`:                             float64(flowsOf(t, a)),
		`vrouter_table_entries{table="flows"}`:      float64(flowsOf(t, a)),
		`vrouter_problems`:                          0,
		`vrouter_repairs_total`:                     0,
		`vrouter_scrape_ok`:                         1,
		`vrouter_store_up`:                          1,
		`vrouter_store_waiting_ports`:               0,
		`vrouter_nodes{state="there"}`:              2,
		`vrouter_nodes{state="gone"}`:               0,
		`vrouter_info{node="a",version="test"}`:     1,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got[`vrouter_flows`] == 0 || got[`vrouter_table_entries{table="hosts4"}`] < 3 {
		t.Errorf("flows %v, host routes %v: want some", got[`vrouter_flows`], got[`vrouter_table_entries{table="hosts4"}`])
	}
	status := must.Get(a.client.Status(context.Background()))(t)
	if at := got["vrouter_synced_timestamp_seconds"]; at < float64(status.Started.Unix()) || at > float64(status.Synced.UnixMilli())/1000 {
		t.Errorf("synced at %v, started %v, then synced %v", at, status.Started, status.Synced)
	}

	agenttest.DeleteSpace(w["a2"].Name)
	must.Eventually(t, "a problem in the metrics", func() error {
		return expect(scrape(t, a), `vrouter_problems`, func(n float64) bool { return n > 0 })
	})

	body, status2 := get(t, "http://"+c.Metrics+"/metrics")
	if over := samplesOf(t, body); status2 != http.StatusOK || over[`vrouter_info{node="a",version="test"}`] != 1 || len(over) < len(got) {
		t.Errorf("over TCP: status %d, %d samples, want 200 and %d", status2, len(over), len(got))
	}
	if _, status := get(t, "http://"+c.Metrics+"/v1/state"); status != http.StatusNotFound {
		t.Errorf("the API is served over TCP: status %d", status)
	}
}

// TestMetricsAreNamedAsPrometheusAdvises holds for all that can be collected.
func TestMetricsAreNamedAsPrometheusAdvises(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	must.Get(a.client.PutState(context.Background(), f.State(nil)))(t)
	text := must.Get(a.client.Metrics(context.Background()))(t)
	problems := must.Get(promlint.New(strings.NewReader(text)).Lint())(t)
	for _, p := range problems {
		t.Errorf("promlint: metric %s: %s", p.Metric, p.Text)
	}
	if n := strings.Count(text, "# TYPE vrouter_"); n < 8 {
		t.Errorf("%d metrics were looked at", n)
	}
}

func expect(all map[string]float64, name string, is func(float64) bool) error {
	if n := all[name]; !is(n) {
		return &unexpected{name, n}
	}
	return nil
}

type unexpected struct {
	name string
	n    float64
}

func (u *unexpected) Error() string { return u.name + " is " + strconv.FormatFloat(u.n, 'g', -1, 64) }

// hostsIn counts the host routes of a family that the API lists.
func hostsIn(t *testing.T, r *running, four bool) (n int) {
	t.Helper()
	rows := must.Get(r.client.Routes(context.Background(), 0))(t)
	for _, row := range rows {
		if row.Destination.IsSingleIP() && row.Destination.Addr().Is4() == four {
			n++
		}
	}
	return n
}

func flowsOf(t *testing.T, r *running) int {
	t.Helper()
	rows := must.Get(r.client.Flows(context.Background(), 0))(t)
	return len(rows)
}

// freeAddress is a port of an address of the loopback device that no other process uses. A port that the kernel chooses for
// 127.0.0.1 can be in use again before the agent listens, because other packages' tests run in the same namespace.
func freeAddress() string {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + rand.N(254)), byte(rand.N(256)), byte(1 + rand.N(254))}), 9464).String()
}

func get(t *testing.T, url string) (body string, status int) {
	t.Helper()
	response := must.Get(http.Get(url))(t)
	defer response.Body.Close()
	text := must.Get(io.ReadAll(response.Body))(t)
	return string(text), response.StatusCode
}
