package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
)

// startSwarmHost starts a daemon that runs the plugin itself: a swarm takes no
// other kind.
func startSwarmHost(t *testing.T, n *node) *dockerd {
	t.Helper()
	d := newDocker(t, n)
	d.startDaemon(t)
	d.makeImage(t)
	dir := filepath.Join(d.home, "package")
	n.run("docker", "package", dir)
	d.run(t, "plugin", "create", "vrouter", dir)
	socket := n.config["socket"].(string)
	d.run(t, "plugin", "set", "vrouter", "run.source="+filepath.Dir(socket), "state.source="+d.home,
		"args=--socket /run/vrouter/"+filepath.Base(socket)+" --state /var/lib/vrouter/docker.json")
	d.run(t, "plugin", "enable", "vrouter")
	return d
}

// A swarm's manager makes the network and chooses the addresses; its hosts have
// containers and a service's tasks in it.
func TestASwarmsHostsShareANetwork(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := fleetBed(t, "30s")
	manager, worker := startSwarmHost(t, b.nodes[0]), startSwarmHost(t, b.nodes[1])
	at := b.nodes[0].v4.String()
	manager.run(t, "swarm", "init", "--advertise-addr", at, "--data-path-port", "4790")
	token := manager.run(t, "swarm", "join-token", "--quiet", "worker")
	worker.run(t, "swarm", "join", "--token", token, "--advertise-addr", b.nodes[1].v4.String(), at+":2377")

	manager.run(t, "network", "create", "--driver", "vrouter:latest", "--attachable", "--opt", "network=red",
		"--ipam-driver", "vrouter:latest", "--ipam-opt", "network=red", "--subnet", "10.1.0.0/16", "red")
	x, _ := manager.container(t, "cx")
	y, _ := worker.container(t, "cy")
	if x == y || !strings.HasPrefix(x, "10.1.") || !strings.HasPrefix(y, "10.1.") {
		t.Fatalf("the containers have %q and %q", x, y)
	}
	soon(t, "the containers reach each other", func() error { return manager.ping("cx", y) })

	manager.run(t, "service", "create", "--name", "web", "--network", "red", "--replicas", "4", "--endpoint-mode", "dnsrr", "--stop-signal", "SIGKILL",
		"--detach", "--no-resolve-image", "box", "/bin/busybox", "sleep", "1000")
	seen := map[string]bool{x: true, y: true}
	for _, d := range []*dockerd{manager, worker} {
		var tasks []string
		soon(t, "each host has two of the tasks", func() error {
			tasks = strings.Fields(d.run(t, "ps", "--quiet", "--filter", "label=com.docker.swarm.service.name=web"))
			if len(tasks) != 2 {
				state, _ := manager.try("service", "ps", "--no-trunc", "web")
				return fmt.Errorf("%d tasks\n%s", len(tasks), state)
			}
			return nil
		})
		for _, task := range tasks {
			a := d.run(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", task)
			if seen[a] {
				t.Errorf("%s was given twice", a)
			}
			seen[a] = true
			soon(t, "a task is reached from both hosts", func() error {
				if err := manager.ping("cx", a); err != nil {
					return err
				}
				return worker.ping("cy", a)
			})
		}
	}

	manager.run(t, "service", "rm", "web")
	manager.run(t, "rm", "--force", "cx")
	worker.run(t, "rm", "--force", "cy")
	soon(t, "the network can be removed", func() error {
		_, err := manager.try("network", "rm", "red")
		return err
	})
	soon(t, "nothing is left in the fleet", func() error {
		ports, networks := answer(b.nodes[0], (*api.Client).State).Ports, answer(b.nodes[0], (*api.Client).Networks)
		if len(ports)+len(networks) > 0 {
			return fmt.Errorf("ports %+v, networks %+v", ports, networks)
		}
		return nil
	})
}
