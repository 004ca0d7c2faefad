package e2e

import (
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// The agent is killed, restarted, and replaced with other limits (new maps)
// while a TCP stream and 10,000 datagrams a second pass: none is lost.
func noPacketIsLostWhileTheAgentIsKilledAndRestarted(t *testing.T) {
	for _, xdp := range []string{"auto", "off"} {
		t.Run("xdp="+xdp, func(t *testing.T) {
			b := newBed(t, options{config: map[string]any{"xdp": xdp, "repair_interval": "500ms"}})
			x, y := pair(b, model.L3, false, model.MPLSoUDP)
			must.Succeed(t, datagram(x, y, 4, 64)) // neighbours resolved
			traffic := load(t, x, y)
			for _, n := range b.nodes {
				time.Sleep(200 * time.Millisecond)
				n.kill(syscall.SIGKILL)
				time.Sleep(300 * time.Millisecond)
				n.start()
				time.Sleep(700 * time.Millisecond) // a repair pass and more
				n.kill(syscall.SIGTERM)
				n.config["limits"] = limits(map[string]int{"routes": 1000, "flows": 5000})
				n.start()
				time.Sleep(700 * time.Millisecond)
			}
			traffic.lost(t)
		})
	}
}

func TestAnAddedPortForwardsAtOnceAndADeletedOneLeavesNothing(t *testing.T) {
	t.Parallel()
	b := sharedBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	z := b.namespace("z")
	_ = z
	out := b.nodes[0].run("port", "add", "--network", "red", "--netns", b.name+"-z", "-o", "json")
	var p api.Port
	decode(t, out, &p)
	if len(p.IPs) != 2 || p.MTU != 1468 || p.MAC.IsZero() || len(p.Gateways) != 2 {
		t.Fatalf("the new port is %+v, want two addresses, two gateways, a MAC and the MTU 1468", p)
	}
	w := &workload{bed: b, port: p.Port, ns: z}
	checkTransfer(w, x, 4, 1<<20) // on the same node
	t.Logf("added in %v", p.Took)
	// The other node learns of it by its state.
	p.Origin = model.Applied // else the port would stay there when a later state lacks it
	b.state.Ports = append(b.state.Ports, p.Port)
	writeJSON(t, b.dir+"/more.yaml", b.state)
	b.nodes[1].run("apply", "-f", b.dir+"/more.yaml")
	checkTransfer(w, y, 6, 1<<20)
	b.nodes[0].run("port", "delete", p.Name)
	if _, err := b.handle(z).LinkByName("eth0"); err == nil {
		t.Error("the workload's device is left")
	}
}
