package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// What an agent costs that knows 100,000 remote ports: how long it takes to
// apply them, its memory at the largest, and how soon a new port forwards.
func BenchmarkAgentWithManyRoutes(b *testing.B) {
	const ports = 100_000
	for b.Loop() {
		d := newBed(b, options{config: map[string]any{"repair_interval": "500ms", "limits": map[string]any{"routes": 2 * ports}}})
		d.state.Nodes = d.nodesOf(false, model.MPLSoUDP)
		d.state.Networks = []model.Network{{Name: "red", ID: 1, Subnets: subnets("10.0.0.0/8")}, {Name: "blue", ID: 2, Subnets: subnets("11.0.0.0/8")}}
		x, y := d.workload("x", "red", 0, "10.255.0.1"), d.workload("y", "blue", 0, "11.255.0.1")
		d.nodes = d.nodes[:1]
		d.up()
		for i := range ports {
			d.state.Ports = append(d.state.Ports, model.Port{
				Name: fmt.Sprint("p", i), Network: "red", Node: "b", MAC: model.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)},
				IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, byte(1 + i>>16), byte(i >> 8), byte(i)})},
			})
		}
		began := time.Now()
		d.apply()
		b.ReportMetric(time.Since(began).Seconds(), "apply-s")
		d.portAdds(b, x, "")
		d.portAdds(b, y, "-other-network")
		time.Sleep(10 * time.Second) // until then the agent has returned the memory that the change needed, also on a busy machine
		status, _ := processOf(b, d.nodes[0])
		b.ReportMetric(float64(status.VmHWM)/(1<<20), "agent-peak-MB")
		b.ReportMetric(float64(status.VmRSS)/(1<<20), "agent-MB")
		b.ReportMetric(float64(status.RssAnon)/(1<<20), "agent-anonymous-MB")
	}
}

// How soon a new port forwards on a node of ordinary size.
func BenchmarkAgentAddsAPort(b *testing.B) {
	for b.Loop() {
		d := newBed(b, options{})
		d.state.Nodes = d.nodesOf(false, model.MPLSoUDP)
		d.state.Networks = []model.Network{{Name: "red", ID: 1, Subnets: subnets("10.0.0.0/8")}}
		x := d.workload("x", "red", 0, "10.255.0.1")
		d.up()
		d.portAdds(b, x, "")
	}
}

// portAdds reports medians of adding a port to the network of another workload, in
// milliseconds: the time until the agent's answer, and the time from the command's start
// until a packet of the new workload has reached the other workload and its answer is back.
func (b *bed) portAdds(to *testing.B, other *workload, suffix string) {
	var took, whole []float64
	for i := range 9 {
		name := other.port.Network + strconv.Itoa(i)
		ns := b.namespace(name)
		subnet := other.ip(4).As4()
		began := time.Now()
		out := b.nodes[0].run("port", "add", "--network", other.port.Network, "--netns", b.name+"-"+name, "--ip", fmt.Sprintf("%d.254.0.%d", subnet[0], i+1), "-o", "json")
		var p api.Port
		decode(b.t, out, &p)
		w := &workload{bed: b, port: p.Port, ns: ns}
		must.Succeed(to, datagram(w, other, 4, 64))
		whole = append(whole, time.Since(began).Seconds()*1000)
		took = append(took, p.Took.Seconds()*1000)
	}
	slices.Sort(took)
	slices.Sort(whole)
	to.ReportMetric(took[len(took)/2], "port-add"+suffix+"-ms")
	to.ReportMetric(whole[len(whole)/2], "first-packet"+suffix+"-ms")
}
