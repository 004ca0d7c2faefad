package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// freezeBed has two networks: red with the ports x and y, one on each node, and crowd
// with a port on the second node. Tests add errors to crowd.
func freezeBed(t *testing.T, config map[string]any) (b *bed, x, y *workload) {
	t.Helper()
	b = newBed(t, options{config: config})
	first := b.nodes[0]
	first.config["store"], first.config["store_listen"], first.config["store_insecure"] = "embedded", first.v4.String()+":2379", true
	b.nodes[1].config["store"] = "etcd+insecure://" + first.v4.String()
	b.nodes[0].config["limits"] = limits(nil)
	t.Cleanup(b.down)
	for _, n := range b.nodes {
		n.start()
	}
	first.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	first.run("network", "create", "crowd", "--subnet", "10.2.0.0/16")
	x, y = b.connected("x", "red", 0), b.connected("y", "red", 1)
	b.connected("crowded", "crowd", 1)
	soon(t, "the ports reach each other", func() error { return datagram(x, y, 4, 64) })
	return b, x, y
}

// works checks that x and y reach each other, and that y reaches a port that is added
// to red now.
func (b *bed) works(when string, x *workload, y *workload, added string) {
	b.t.Helper()
	for _, pair := range [][2]*workload{{x, y}, {y, x}} {
		if err := datagram(pair[0], pair[1], 4, 64); err != nil {
			b.t.Errorf("%s: x and y do not reach each other: %v", when, err)
		}
	}
	z := b.connected(added, "red", 0)
	soon(b.t, when+": y reaches the added port", func() error { return datagram(y, z, 4, 64) })
}

// If a network does not fit into a node's tables, it keeps the entries that it has there.
// Changes of other networks still have effect, also after the agent's restart.
func TestAnOverfullNetworkDoesNotStopTheOthers(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b, x, y := freezeBed(t, map[string]any{"limits": limits(map[string]int{"routes": 16})})
	a, c := b.nodes[0], b.nodes[1]
	for i := range 16 {
		a.run("port", "add", "--network", "crowd", "--name", fmt.Sprintf("c%d", i), "--netns", b.name+"-x", "--interface", fmt.Sprintf("c%d", i))
	}
	soon(t, "`vrouter status` names the network", func() error { return mustContain(c.run("status"), `network "crowd" gets no new ports`) })
	a.run("port", "delete", "c0") // the table has room for one entry
	b.works("with an overfull network", x, y, "z")
	_, err := c.try("port", "add", "--network", "crowd", "--netns", b.name+"-y", "--interface", "eth9")
	must.Fail(t, err, "limit")
	c.kill(syscall.SIGKILL)
	c.start()
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("after the agent's restart: x does not reach y: %v", err)
	}
	a.run("port", "delete", "c1")
	b.works("after the agent's restart", x, y, "z2")
}

// If the routes that a network imports from another one do not fit, it works without them, also after
// the agent's restart.
func TestImportedRoutesThatDoNotFitStopNoNetwork(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b, x, y := freezeBed(t, map[string]any{"limits": limits(map[string]int{"routes": 16})})
	a, c := b.nodes[0], b.nodes[1]
	a.run("network", "create", "many", "--subnet", "10.3.0.0/24", "--export", "64512:1")
	for i := range 16 {
		a.run("port", "add", "--network", "many", "--name", fmt.Sprintf("m%d", i), "--netns", b.name+"-x", "--interface", fmt.Sprintf("m%d", i))
	}
	a.run("network", "set", "red", "--import", "64512:1")
	soon(t, "`vrouter status` names a network and the table", func() error {
		return mustContain(c.run("status"), `on this node: table hosts4`)
	})
	b.works("with too many routes to take", x, y, "z")
	c.kill(syscall.SIGKILL)
	c.start()
	b.works("after the agent's restart", x, y, "z2")
	for i := range 10 {
		a.run("port", "delete", fmt.Sprintf("m%d", i))
	}
	soon(t, "the routes fit", func() error {
		if out := c.run("rt", "list", "--vrf", "red"); !strings.Contains(out, "10.3.0.") || strings.Contains(c.run("status"), "table hosts4") {
			return errors.New(out)
		}
		return nil
	})
}

// An invalid object in the store affects only the objects that depend on it.
func TestAnInvalidObjectDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b, x, y := freezeBed(t, nil)
	c := b.nodes[1]
	s := c.client(t, store.TLS{})
	port := `{"name": "bad", "network": "crowd", "node": "b", "mac": "02:00:00:00:00:99", "ips": ["192.0.2.77"]}`
	_, err := s.Commit(context.Background(), store.Commit{Put: map[string][]byte{
		"switch-ports/b/crowd/bad/02:00:00:00:00:99,192.0.2.77": []byte(port),
		"hosts/b/crowd":            nil,
		"hosts/b/odd":              nil,
		"routes/crowd/10.9.0.0/16": []byte(`{"network": "crowd", "prefix": "10.9.0.0/16", "via": [{"port": "none"}]}`),
		"routes/red/10.8.0.0/16":   []byte(`{"network": "red", "prefix": "10.8.0.0/16", "via": [{"port": "none"}, {"port": "y"}]}`),
		"networks/odd":             []byte(`{"name": "odd", "id": 9000, "subnets": ["10.1.0.0/25"]}`),
		"switch-ports/b/odd/odd-port/02:00:00:00:00:99,10.1.0.9": []byte(strings.NewReplacer("bad", "odd-port", "crowd", "odd", "192.0.2.77", "10.1.0.9").Replace(port)),
	}})
	b.must(err)
	soon(t, "`vrouter status` names the port", func() error { return mustContain(c.run("status"), `port "bad"`) })
	b.works("with invalid objects", x, y, "z")
	c.kill(syscall.SIGKILL)
	c.start()
	b.works("after the agent's restart", x, y, "z2")
	if n := len(rows[model.Port](c, "port", "list")); n != 4 {
		t.Errorf("node b lists %d ports, want 4", n)
	}
}

// Packets to unused addresses of a subnet do not follow the network's default route.
func TestAnUnusedAddressDoesNotFollowTheDefaultRoute(t *testing.T) {
	t.Parallel()
	b, x, _ := freezeBed(t, nil)
	a, c := b.nodes[0], b.nodes[1]
	a.run("route", "add", "red", "0.0.0.0/0", "--port", "y")
	sent := func(to string) (n int) {
		t.Helper()
		count := func() (n int) {
			for _, v := range table(c, (*api.Client).Vifs) {
				if v.Port == "y" {
					n = int(v.TxPackets)
				}
			}
			return n
		}
		before := count()
		x.command("ping", "-c", "3", "-i", "0.2", "-W", "1", to) // nothing answers
		return count() - before
	}
	if n := sent("192.0.2.55"); n < 3 {
		t.Fatalf("%d packets to an address outside the subnet take the default route, want 3", n)
	}
	if n := sent("10.1.0.77"); n != 0 {
		t.Errorf("%d packets to an unused address take the default route, want 0", n)
	}
	if out := a.run("dropstats"); !strings.Contains(out, "discard") {
		t.Errorf("dropstats does not count the packets to the unused address:\n%s", out)
	}
}
