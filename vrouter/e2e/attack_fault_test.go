package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store/storetest"
)

// A command must not wait without end for an agent whose process is stopped.
func aStoppedAgentDoesNotBlockACommand(t *testing.T) {
	b := newBed(t, options{})
	x, y := pair(b, model.L3, false, model.MPLSoUDP)
	n := b.nodes[0]
	must.Succeed(t, n.agent.Process.Signal(syscall.SIGSTOP))
	for _, args := range [][]string{{"status"}, {"vif", "list"}, {"rt", "list"}, {"doctor", "--config", n.configFile()}} {
		began := time.Now()
		_, err := n.try(append([]string{"--timeout", "1s"}, args...)...)
		if took := time.Since(began); took > patience*5*time.Second {
			t.Errorf("vrouter %v took %v", args, took)
		}
		if args[0] != "doctor" && (err == nil || !strings.Contains(err.Error(), "did not answer within 1s")) {
			t.Errorf("vrouter %v: %v", args, err)
		}
	}
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("packets do not flow meanwhile: %v", err)
	}
	must.Succeed(t, n.agent.Process.Signal(syscall.SIGCONT))
	n.run("status")
}

// More ports than one network can replicate to, which came by another node, must
// not keep a node's other networks from changing, nor from being there after a
// start. On the node itself such a port is refused.
func TestACrowdedNetworkDoesNotFreezeTheOthers(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := fleetBed(t, "60s")
	a, other := b.nodes[0], b.nodes[1]
	const most = 128
	b.namespace("crowd")
	b.state = model.State{Nodes: b.nodesOf(false), Networks: []model.Network{
		{Name: "crowd", ID: 1, Forwarding: model.L2}, {Name: "red", ID: 2, Subnets: subnets("10.1.0.0/24")},
	}}
	b.nodes = b.nodes[:1] // that a document is applied on
	b.apply()
	b.nodes = []*node{a, other}
	x, y := b.connected("x", "red", 0), b.connected("y", "red", 1)
	for i := range most + 1 {
		b.state.Ports = append(b.state.Ports, model.Port{
			Name: fmt.Sprintf("c%d", i), Network: "crowd", Node: a.name, MAC: model.MAC{2, 0, 0, 1, byte(i >> 8), byte(i)},
			Attach: model.Attachment{Netns: b.name + "-crowd", Interface: fmt.Sprintf("c%d", i)},
		})
	}
	file := filepath.Join(b.dir, "crowd.json")
	writeJSON(t, file, b.state)
	other.run("apply", "-f", file)
	soon(t, "the crowd is told of", func() error { return mustContain(a.run("status"), "at most 128 fit") })
	z := b.connected("z", "red", 0)
	if err := datagram(z, y, 4, 64); err != nil {
		t.Errorf("a port that was added: %v", err)
	}
	_, err := a.try("port", "add", "--network", "crowd", "--netns", b.name+"-crowd", "--interface", "more")
	must.Fail(t, err, "at most 128 fit")
	a.kill(syscall.SIGKILL)
	a.start()
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("after a start: %v", err)
	}
}

// An embedded store that serves others must know them by their certificates.
func TestAnEmbeddedStoreNeedsCertificatesOfItsClients(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{nodes: 1})
	n := b.nodes[0]
	c := storetest.NewCertificates(t, n.v4.String())
	n.config["store"], n.config["store_listen"] = "embedded", n.v4.String()+":2379"
	n.config["store_tls"] = map[string]string{"cert": c.ServerCert, "key": c.ServerKey}
	b.must(n.launch())
	stop := time.AfterFunc(20*time.Second, func() { n.agent.Process.Kill() }) // an agent that serves the store does not end
	defer stop.Stop()
	if err := n.agent.Wait(); err == nil || !strings.Contains(n.log(), "without ca") {
		t.Errorf("the agent ended with %v:\n%s", err, n.log())
		n.remove("--with-store")
	}
	n.agent = nil
}

// Whoever may write to the fleet's store must not get hold of a node's own
// namespace or devices.
func TestAPortOfTheStoreDoesNotTakeTheNodesOwn(t *testing.T) {
	t.Parallel()
	b := newBed(t, options{config: map[string]any{"fabric": []string{"fab"}}})
	b.state.Nodes = b.nodesOf(false, model.MPLSoUDP)
	b.state.Networks = []model.Network{{Name: "red", ID: 1, Forwarding: model.L2}}
	x := b.workload("x", "red", 0, "10.1.0.10")
	b.state.Networks[0].Subnets = subnets("10.1.0.0/16")
	a := b.nodes[0]
	a.ip("link add mgmt type veth peer name mgmt-peer")
	a.ip("address add 192.0.2.77/24 dev mgmt")
	a.ip("link add br0 type bridge")
	a.ip("link add member type veth peer name member-peer")
	a.ip("link set member master br0")
	fifo := filepath.Join(b.dir, "fifo")
	b.must(unix.Mkfifo(fifo, 0o600))
	evil := []model.Attachment{
		{Netns: "/proc/1/ns/net", Interface: "evil0"}, {Netns: a.space, Interface: "evil0"}, {Device: "mgmt"}, {Device: "member"},
		{Netns: "/proc/self/ns/net", Interface: "evil0"}, {Netns: fifo}, {Netns: "/dev/tty"},
	}
	for i, attachment := range evil {
		b.state.Ports = append(b.state.Ports, model.Port{
			Name: fmt.Sprintf("evil%d", i), Network: "red", Node: a.name, MAC: model.MAC{2, 0, 0, 9, 9, byte(i)}, Attach: attachment,
		})
	}
	b.up()
	status := a.run("status")
	for i := range evil {
		if !strings.Contains(status, fmt.Sprintf("evil%d: ", i)) {
			t.Errorf("port evil%d is not refused:\n%s", i, status)
		}
	}
	if err := in(a.ns, func() error { _, err := net.InterfaceByName("evil0"); return err }); err == nil {
		t.Error("a device of a port is in the node's namespace")
	}
	if _, err := net.InterfaceByName("evil0"); err == nil {
		t.Error("a device of a port is in process 1's namespace")
	}
	for _, v := range table(a, (*api.Client).Vifs) {
		if v.Port != "" && v.Port != x.port.Name { // the first is the fabric
			t.Errorf("vif of %s", v.Port)
		}
	}
	for _, path := range []string{fifo, "/proc/self/ns/net"} {
		if out, err := a.try("port", "add", "--name", "worse", "--network", "red", "--netns", path); err == nil || strings.Contains(a.run("port", "list"), "worse") {
			t.Errorf("a port at %s is not refused, or is left: %s", path, out)
		}
	}
}
