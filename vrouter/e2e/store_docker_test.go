package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// If the store checks roles, Docker on a node can run containers in existing networks of the
// fleet. It cannot create or delete networks of the fleet.
func TestDockerOnANodeDoesNotChangeNetworks(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b, files := rolesBed(t, 2, "10s")
	a, c := b.nodes[0], b.nodes[1]
	b.alive(a, "a", "b")
	if out, err := c.admin(files("admin"), "init"); err != nil {
		t.Fatal(err, out)
	}
	d := startDocker(t, c)
	create := []string{"network", "create", "--driver", "vrouter", "--opt", "network=red", "--ipam-driver", "vrouter", "--ipam-opt", "network=red", "--subnet", "10.1.0.0/24", "red"}
	if out, err := d.try(create...); err == nil || !strings.Contains(out, "operator's certificate") {
		t.Errorf("Docker on node b creates a network of the fleet: %v, %s", err, out)
	}
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	x := b.connected("x", "red", 0)
	d.run(t, create...)
	address, _ := d.container(t, "box")
	if !strings.HasPrefix(address, "10.1.0.") || address == x.ip(4).String() {
		t.Fatalf("the container has address %q", address)
	}
	soon(t, "the container reaches node a", func() error { return d.ping("box", x.ip(4).String()) })
	d.run(t, "rm", "--force", "box")
	a.run("port", "delete", "x")
	if out, err := d.try("network", "rm", "red"); err != nil && !strings.Contains(out, "operator's certificate") {
		t.Error(err)
	}
	if left := answer(a, (*api.Client).Networks); len(left) != 1 {
		t.Errorf("after Docker deleted its network: the fleet has the networks %+v, want red", left)
	}
	soon(t, "no port of the container remains", func() error {
		if ports := rows[model.Port](a, "port", "list"); len(ports) != 0 {
			return fmt.Errorf("ports %+v", ports)
		}
		return nil
	})
}

// `vrouter apply` works only on a node whose agent has an operator's certificate. It keeps the
// ports that other nodes added.
func TestOnlyAnOperatorsCertificateAppliesDocuments(t *testing.T) {
	t.Parallel()
	b, files := rolesBed(t, 3, "3s")
	a, c, d := b.nodes[0], b.nodes[1], b.nodes[2]
	b.alive(a, "a", "b", "c")
	admin := files("admin")
	for _, args := range [][]string{{"init"}, {"grant", "operator", "c"}} {
		if out, err := c.admin(admin, args...); err != nil {
			t.Fatal(err, out)
		}
	}
	s := model.State{Networks: []model.Network{{Name: "red", ID: 1, Subnets: subnets("10.1.0.0/24")}}}
	for _, n := range answer(a, (*api.Client).Nodes) {
		s.Nodes = append(s.Nodes, model.Node{Name: n.Name, Underlay: n.Underlay})
	}
	file := filepath.Join(b.dir, "document.yaml")
	writeJSON(t, file, s)
	_, err := c.try("apply", "-f", file)
	must.Fail(t, err, "operator's certificate")
	d.run("apply", "-f", file)
	x, y := b.connected("x", "red", 0), b.connected("y", "red", 1)
	soon(t, "x reaches y", func() error { return datagram(x, y, 4, 64) })
	s.Policies = []model.Policy{{Name: "closed", Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny}}}}
	writeJSON(t, file, s)
	d.run("apply", "-f", file)
	if err := datagram(x, y, 4, 64); err != nil {
		t.Errorf("after a second document, x does not reach y: %v", err)
	}
}

// A revoked node cannot write its alive key again. So an operator can delete the node and its
// ports while the agent of the node still runs.
func TestARevokedNodeIsDeletedWhileItsAgentRuns(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b, files := rolesBed(t, 2, "3s")
	a, c := b.nodes[0], b.nodes[1]
	b.alive(a, "a", "b")
	a.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	admin := files("admin")
	if out, err := c.admin(admin, "init"); err != nil {
		t.Fatal(err, out)
	}
	if out, err := a.admin(admin, "grant", "node", "root"); err == nil || !strings.Contains(out, "administrator") {
		t.Errorf("the user root, etcd's administrator, got the role of a node: %v, %s", err, out)
	}
	b.connected("y", "red", 1)
	if _, err := a.try("node", "delete", "b", "--ports"); err == nil {
		t.Fatal("a node with an agent was deleted")
	}
	if out, err := a.admin(admin, "revoke", "b"); err != nil {
		t.Fatal(err, out)
	}
	time.Sleep(3 * time.Second) // longer than the interval at which an agent checks its alive key
	a.run("node", "delete", "b", "--ports")
	if left := rows[model.Port](a, "port", "list"); len(left) != 0 {
		t.Errorf("after the node was deleted, its ports remain: %+v", left)
	}
	if _, err := c.client(t, files("b")).Commit(context.Background(), store.Commit{Put: map[string][]byte{"alive/b": []byte("{}")}}); err == nil {
		t.Error("a revoked node can write its alive key")
	}
}
