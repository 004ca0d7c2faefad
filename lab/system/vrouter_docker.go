package system

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// VRouterDocker is vrouter with Docker. Each node runs a vrouter agent and vrouter's
// plugin for Docker. The first node has the fleet's store. `docker run` connects
// containers to the virtual network.
type VRouterDocker struct{}

const (
	vrouterStorePort  = 2379
	vrouterPlugin     = "plugin" // also the name of its log
	vrouterAgent      = "agent"
	vrouterDockerPair = "vr-d" // prefix of the plugin's devices on the node
)

// overlay is the encapsulation that the nodes offer.
func (VRouterDocker) overlay() VRouter { return VRouter{Encap: "mpls-udp"} }

func (VRouterDocker) Name() string { return "vrouter-docker" }
func (s VRouterDocker) About() About {
	return About{
		Description: "Docker containers on a vrouter network by its Docker plugin, MPLS over UDP; tools run in the containers' network namespaces",
		Overhead:    s.overlay().About().Overhead,
		SetUp:       2500 * time.Millisecond, // the start of Docker, vrouter and their containers
	}
}
func (VRouterDocker) Needs() ([]string, []program.Program) {
	return []string{"veth", "bpf", "vrouter"}, dockerPrograms()
}

func (s VRouterDocker) Attach(n *Node) error {
	if len(n.Endpoints) == 0 && n.Index > 0 {
		return nil
	}
	path, err := program.Beside(vrouterProgram)
	if err != nil {
		return err
	}
	if err := s.agent(n, path); err != nil {
		return err
	}
	if len(n.Endpoints) == 0 { // this node only has the store
		return nil
	}
	d := dockerOf(n)
	if err := d.up(); err != nil {
		return err
	}
	if err := s.plugin(d, path); err != nil {
		return err
	}
	v4, v6 := n.Endpoints[0].V4.Masked(), n.Endpoints[0].V6.Masked()
	_, err = d.run("network", "create", "--driver", vrouterProgram, "--opt", "network=lab",
		"--ipam-driver", vrouterProgram, "--ipam-opt", "network=lab",
		"--subnet", v4.String(), "--ipv6", "--subnet", v6.String(), dockerNetwork)
	if err != nil {
		return fmt.Errorf("%w%s%s", err, n.lastOutput(vrouterPlugin), n.lastOutput(dockerDaemon))
	}
	if err := d.dualStack(); err != nil {
		return fmt.Errorf("%w%s", err, n.lastOutput(vrouterPlugin))
	}
	return nil
}

// agent starts the node's agent and waits until it has read the fleet's store.
func (s VRouterDocker) agent(n *Node, program string) error {
	home, err := n.home()
	if err != nil {
		return err
	}
	config := vrouterConfig{
		Node: n.Name, Socket: vrouterSocket(n), StateDir: filepath.Join(home, "state"), RunDir: home, Fabric: n.Fabric,
		Underlay: n.Underlay[n.Index : n.Index+1], Encapsulations: []string{s.overlay().Encap},
	}
	store := netip.AddrPortFrom(n.Underlay[0], vrouterStorePort).String()
	if n.Index == 0 {
		config.Store, config.StoreListen, config.StoreInsecure = "embedded", store, true
	} else {
		config.Store = "etcd+insecure://" + store
	}
	path := filepath.Join(home, "node.yaml")
	if err := writeJSON(path, config); err != nil {
		return fmt.Errorf("write vrouter's configuration: %w", err)
	}
	return n.start(daemon{
		name: vrouterAgent, argv: []string{program, "agent", "--config", path}, env: noProxy,
		ready: func() error {
			return vrouterRun(program, "--socket", vrouterSocket(n), "network", "list")
		},
	})
}

// plugin starts vrouter's plugin for Docker. dockerd finds the plugin's socket,
// because dockerd's /run is a directory in the node's home.
func (VRouterDocker) plugin(d dockerd, program string) error {
	dir := d.file("run/docker/plugins")
	return d.node.start(daemon{
		name: vrouterPlugin, argv: []string{
			program, "--socket", vrouterSocket(d.node), "docker", "--plugin-dir", dir, "--state", d.file("docker.json"),
		},
		ready: func() error {
			_, err := os.Stat(filepath.Join(dir, vrouterProgram+".sock"))
			return err
		},
	})
}

// Detach first ends the agent. Otherwise an agent could need the store after the
// first node has removed it.
func (VRouterDocker) Detach(n *Node) error {
	var errs []error
	for _, r := range n.daemons {
		if r.name == vrouterAgent {
			errs = append(errs, r.stop())
		}
	}
	config := filepath.Join(space.Home(n.Name), "node.yaml")
	if _, err := os.Stat(config); err == nil {
		path, err := program.Beside(vrouterProgram)
		if err == nil {
			err = vrouterRun(path, "remove", "--with-store", "--config", config)
		}
		errs = append(errs, err)
	}
	return errors.Join(append(errs, dockerOf(n).down())...)
}

// Changes implements Changer.
func (VRouterDocker) Changes() map[suite.Change]Change {
	return map[suite.Change]Change{suite.ChangePorts: dockerPorts}
}

func (VRouterDocker) Devices(n *Node) []Device {
	return hops(n, n.foundVif)
}
