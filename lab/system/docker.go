package system

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
)

// dockerd is the Docker daemon of one node. It is a normal daemon with a separate
// containerd, and keeps all its files in the node's home. It shares nothing with
// another Docker daemon of the machine; see docker_enter.sh.
type dockerd struct {
	node *Node
	home string
}

const (
	dockerDaemon  = "dockerd" // also the name of its log
	dockerNetwork = "windtunnel"
	dockerEnds    = 2 * time.Second
	// dockerImage has no files. Its containers mount the windtunnel program as keeper from the
	// node's home, where docker_enter.sh mounts it.
	dockerImage = "windtunnel-keep"
	keeper      = "/windtunnel"
)

//go:embed docker_enter.sh
var dockerEnter string

// dockerPrograms returns the programs that every system with Docker needs. Docker
// 20.10 is the oldest tested version.
func dockerPrograms() []program.Program {
	return []program.Program{
		{Name: "dockerd", Version: []string{"dockerd", "--version"}, Least: "20.10"},
		{Name: "docker", Version: []string{"docker", "--version"}, Least: "20.10"},
		{Name: "containerd", Version: []string{"containerd", "--version"}},
		{Name: "runc", Version: []string{"runc", "--version"}},
		iptablesProgram,
		{Name: "unshare", Build: "apt-get install util-linux", Version: []string{"unshare", "--version"}, Least: "2.32"}, // --kill-child
	}
}

func dockerOf(n *Node) dockerd { return dockerd{n, space.Home(n.Name)} }

func (d dockerd) file(name string) string { return filepath.Join(d.home, name) }

// up starts the daemon and imports the containers' image.
func (d dockerd) up() error {
	if _, err := d.node.home(); err != nil {
		return err
	}
	if err := d.files(); err != nil {
		return fmt.Errorf("write the files of dockerd: %w", err)
	}
	err := d.node.start(daemon{name: dockerDaemon, argv: d.argv(), env: append(d.env(), fmt.Sprintf("keeper=/proc/%d/exe", os.Getpid())), ready: func() error {
		_, err := d.run("version", "--format", "{{.Server.Version}}")
		return err
	}})
	if err != nil {
		return err
	}
	_, err = d.run("import", "--change", fmt.Sprintf("ENTRYPOINT [%q, %q]", keeper, KeepCommand), d.file("empty.tar"), dockerImage)
	return err
}

func (d dockerd) files() error {
	nothing, err := truePath()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(d.file("empty.tar"), make([]byte, 1024), 0o600),
		os.WriteFile(d.file("daemon.json"), []byte("{}\n"), 0o600),
		os.MkdirAll(d.file("bin"), 0o700),
		os.Symlink(nothing, d.file("bin/modprobe")),
	)
}

// truePath returns the path of a program that does nothing and succeeds.
func truePath() (string, error) {
	for _, path := range []string{"/bin/true", "/usr/bin/true"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("the program `true` is not installed; install the package coreutils")
}

// argv returns the command line of the daemon. The daemon runs in separate PID and
// mount namespaces; docker_enter.sh prepares the file system there. The daemon is
// the first process of its PID namespace. When it ends, the kernel kills all other
// processes of the namespace, so no shim or container outlives the daemon.
func (d dockerd) argv() []string {
	return []string{
		"unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child",
		"sh", "-c", dockerEnter, "docker_enter.sh", d.home,
		"dockerd",
		"--data-root", d.file("data"), "--exec-root", d.file("exec"), "--pidfile", d.file("dockerd.pid"),
		"--host", d.host(), "--config-file", d.file("daemon.json"), "--log-level", "warn",
		"--bridge", "none", "--iptables=true", "--ip6tables=false", "--userland-proxy=false",
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", space.Cgroup(d.node.Name),
	}
}

func (d dockerd) host() string { return "unix://" + d.file("docker.sock") }

// env returns environment variables that keep the daemon and the client away from
// the files of the user and of the host.
func (d dockerd) env() []string {
	return []string{
		// The directory bin has a modprobe that does nothing. Modules that dockerd
		// loads would stay loaded, and br_netfilter would send the frames of the
		// host's bridges through iptables. The kernel loads the modules that it needs
		// by itself.
		"PATH=" + d.file("bin") + ":" + os.Getenv("PATH"),
		"DOCKER_IGNORE_BR_NETFILTER_ERROR=1", // otherwise Docker 28 and newer require br_netfilter
		// With this setting dockerd loads no AppArmor profile into the kernel.
		"container=docker",
		"DOCKER_CONFIG=" + d.file("client"), // the user's configuration may have contexts and proxies
		"DOCKER_HOST=", "DOCKER_CONTEXT=",
		"XTABLES_LOCKFILE=" + d.file("xtables.lock"),
	}
}

// run runs the docker client and returns its standard output. It ignores the
// client's warnings, such as a new version's warning about an old option.
func (d dockerd) run(args ...string) (string, error) {
	out, err := d.node.commandWith(d.env(), append([]string{"docker", "--host", d.host()}, args...)...)
	return strings.TrimSpace(out), err
}

// container starts the endpoint's container. The endpoint then uses the network
// namespace that Docker created for the container.
func (d dockerd) container(e Endpoint, options ...string) error {
	argv := []string{
		"run", "--detach", "--name", e.Name, "--log-driver", "none", "--pull", "never",
		"--network", dockerNetwork, "--ip", e.V4.Addr().String(),
		// Without this option Docker mounts sysfs read-only. A network namespace has
		// only one sysfs (fs/sysfs/mount.c), so the lab could not write rps_cpus there.
		"--tmpfs", "/sys", "--volume", d.file("windtunnel") + ":" + keeper + ":ro",
	}
	if _, err := d.run(append(append(argv, options...), dockerImage)...); err != nil {
		return fmt.Errorf("start container %s: %w%s", e.Name, err, d.node.lastOutput(dockerDaemon))
	}
	pid, err := d.run("inspect", "--format", "{{.State.Pid}}", e.Name)
	if err != nil {
		return err
	}
	if n, err := strconv.Atoi(pid); err != nil || n <= 0 {
		return fmt.Errorf("container %s ended at once: its process is %q%s", e.Name, pid, d.node.lastOutput(dockerDaemon))
	}
	root, err := d.root()
	if err != nil {
		return err
	}
	if err := e.Space.Adopt(filepath.Join(root, "proc", pid, "ns/net")); err != nil {
		return fmt.Errorf("enter container %s: %w", e.Name, err)
	}
	return d.ready(e)
}

// startSpare starts the spare container, if the node has one, outside the network.
func (d dockerd) startSpare() error {
	if d.node.Spare.Name == "" {
		return nil
	}
	if err := d.container(d.node.Spare); err != nil {
		return err
	}
	return dockerDisconnect(d.node, d.node.Spare)
}

// dockerPorts is the change of ports of systems with Docker. Docker gives the container's device another name each
// time, and the lab does not configure it.
var dockerPorts = joins(func(n *Node, e Endpoint) error {
	_, err := dockerOf(n).run("network", "connect", "--ip", e.V4.Addr().String(), dockerNetwork, e.Name)
	return err
}, dockerDisconnect)

func dockerDisconnect(n *Node, e Endpoint) error {
	_, err := dockerOf(n).run("network", "disconnect", dockerNetwork, e.Name)
	return err
}

// ready configures a container's namespace in the same way as a namespace that the
// lab created; see bringUp.
func (d dockerd) ready(e Endpoint) error {
	if err := e.Space.Workloads(); err != nil {
		return err
	}
	if err := e.Space.DeviceSysctl("ipv6", EndpointDevice, "accept_ra", "0"); err != nil {
		return err
	}
	if err := steer(d.node, e.Space, EndpointDevice, 1); err != nil {
		return err
	}
	return e.Space.Reconnect(EndpointDevice, e.V4)
}

// root returns a path by which this process reaches the daemon's root directory. The
// daemon has separate PID and mount namespaces, so its paths and PIDs are not valid
// outside.
func (d dockerd) root() (string, error) {
	pid, err := d.pid()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/proc/%d/root", pid), nil
}

// pid returns the daemon's PID in the PID namespace of this process. The daemon is
// the only child of unshare(1), which waits for it.
func (d dockerd) pid() (int, error) {
	r := d.running()
	if r == nil || r.HasEnded() {
		return 0, fmt.Errorf("dockerd of node %s does not run%s", d.node.Name, d.node.lastOutput(dockerDaemon))
	}
	text, err := os.ReadFile(d.file("dockerd.outer"))
	if err != nil {
		return 0, fmt.Errorf("find dockerd of node %s: %w", d.node.Name, err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("find dockerd of node %s: %w", d.node.Name, err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err == nil && !strings.Contains(string(stat), fmt.Sprintf("\nPPid:\t%d\n", r.PID())) {
		err = fmt.Errorf("process %d is another program", pid)
	}
	if err != nil {
		return 0, fmt.Errorf("find dockerd of node %s: %w", d.node.Name, err)
	}
	return pid, nil
}

func (d dockerd) running() *running {
	i := slices.IndexFunc(d.node.daemons, func(r *running) bool { return r.name == dockerDaemon })
	if i < 0 {
		return nil
	}
	return d.node.daemons[i]
}

// down kills the daemon and removes its containers, files, control groups, devices
// and rules. An orderly end of the daemon takes seconds, and the lab keeps nothing
// of the daemon.
func (d dockerd) down() error {
	var errs []error
	if pid, err := d.pid(); err == nil {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, fmt.Errorf("end dockerd: %w", err))
		}
		// unshare(1) ends after all processes of the PID namespace.
		select {
		case <-d.running().Ended:
		case <-time.After(dockerEnds):
		}
	}
	started := d.running() != nil
	if started {
		errs = append(errs, removeRules(d.node, d.env()))
	}
	errs = append(errs, d.node.stopDaemons(), space.DeleteCgroups(d.node.Name))
	if started {
		errs = append(errs, d.removeDevices())
	}
	return errors.Join(errs...)
}

// removeDevices deletes the devices that Docker leaves in the node's namespace.
func (d dockerd) removeDevices() error {
	links, err := d.node.Space.Links.LinkList()
	if err != nil {
		return fmt.Errorf("list the devices of node %s: %w", d.node.Name, err)
	}
	var errs []error
	for _, l := range links {
		name := l.Attrs().Name
		dockers := strings.HasPrefix(name, "docker") || strings.HasPrefix(name, "veth") || strings.HasPrefix(name, "vx-") || strings.HasPrefix(name, vrouterDockerPair) || name == bridgeDevice
		if dockers && !slices.Contains(d.node.Fabric, name) {
			errs = append(errs, d.node.Space.Remove(name))
		}
	}
	return errors.Join(errs...)
}

var iptablesProgram = program.Program{Name: "iptables", Version: []string{"iptables", "--version"}}

// noRules is a shell script that deletes all iptables rules and chains. With empty chains the
// kernel would still track every packet. It ignores tables that the kernel does not have.
const noRules = `for table in filter nat mangle raw; do
	for chain in PREROUTING INPUT FORWARD OUTPUT POSTROUTING; do iptables -w 2 -t $table -P $chain ACCEPT 2>/dev/null || :; done
	iptables -w 2 -t $table -F 2>/dev/null && iptables -w 2 -t $table -X || :
done`

// removeRules deletes all iptables rules in the node's namespace. iptables runs with the
// environment variables env in addition to those of this process.
func removeRules(n *Node, env []string) error {
	if _, err := n.commandWith(env, "sh", "-c", noRules); err != nil {
		return fmt.Errorf("delete the iptables rules in network namespace %s: %w", n.Name, err)
	}
	return nil
}
