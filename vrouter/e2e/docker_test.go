package e2e

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
)

// dockerd is a real Docker daemon in a node's namespace, with mounts of its own:
// nothing of it is where the host's Docker would be.
type dockerd struct {
	node   *node
	home   string
	daemon *exec.Cmd
	plugin *exec.Cmd
}

// enter readies the mounts and becomes dockerd. Arguments: home, then dockerd's
// command line.
const enter = `set -e
home=$1; shift
mount -t proc proc /proc
umount -R -l /run/netns 2>/dev/null || :
mkdir -p "$home/lib" "$home/etc" "$home/etc.work" "$home/run/docker/plugins" "$home/bin"
mount --bind "$home/lib" /var/lib
mount -t overlay -o "lowerdir=/etc,upperdir=$home/etc,workdir=$home/etc.work" overlay /etc 2>/dev/null || { cp -a /etc/. "$home/etc/"; mount --bind "$home/etc" /etc; }
mount --rbind "$home/run" /run
cd /
exec "$@"`

// startDocker starts a daemon that finds the plugin beside it.
func startDocker(t *testing.T, n *node) *dockerd {
	t.Helper()
	d := newDocker(t, n)
	d.startPlugin(t)
	d.startDaemon(t)
	d.makeImage(t)
	return d
}

// newDocker readies a daemon, which it does not start.
func newDocker(t *testing.T, n *node) *dockerd {
	t.Helper()
	for _, program := range []string{"dockerd", "docker", "containerd", "runc", "iptables", "unshare"} {
		needs(t, program)
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("busybox is not installed (Debian package: busybox-static)")
	}
	home, err := os.MkdirTemp("", "vr-dk") // short: sockets lie deep in it
	must.Succeed(t, err)
	d := &dockerd{node: n, home: home}
	t.Cleanup(func() { d.stop(); unmountBelow(home); removeCgroups("vr-" + filepath.Base(home)); os.RemoveAll(home) })
	must.Succeed(t, os.MkdirAll(filepath.Join(home, "run/docker/plugins"), 0o700))
	must.Succeed(t, os.MkdirAll(filepath.Join(home, "bin"), 0o700))
	must.Succeed(t, os.Symlink("/bin/true", filepath.Join(home, "bin/modprobe"))) // modules would stay
	must.Succeed(t, os.WriteFile(filepath.Join(home, "daemon.json"), []byte("{}"), 0o600))
	return d
}

// makeImage gives the daemon an image with busybox alone.
func (d *dockerd) makeImage(t *testing.T) {
	t.Helper()
	path := filepath.Join(d.home, "box.tar")
	must.Succeed(t, os.WriteFile(path, boxImage(t), 0o600))
	d.run(t, "import", path, "box")
}

// boxImage is a root file system with busybox alone.
func boxImage(t *testing.T) []byte {
	t.Helper()
	box, err := exec.LookPath("busybox")
	must.Succeed(t, err)
	program, err := os.ReadFile(box)
	must.Succeed(t, err)
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []tar.Header{{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}} {
		must.Succeed(t, w.WriteHeader(&h))
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, w.Close())
	return out.Bytes()
}

func (d *dockerd) host() string { return "unix://" + filepath.Join(d.home, "docker.sock") }

func (d *dockerd) startDaemon(t *testing.T) {
	t.Helper()
	// Of one that was killed; its processes' numbers are others' by now.
	os.Remove(d.home + "/pid")
	os.Remove(d.home + "/exec/containerd/containerd.pid")
	d.daemon = exec.Command("nsenter", "--net=/run/netns/"+d.node.space,
		"unshare", "--mount", "--propagation", "slave", "--pid", "--fork", "--kill-child",
		"sh", "-c", enter, "enter", d.home, "dockerd",
		"--data-root", d.home+"/data", "--exec-root", d.home+"/exec", "--pidfile", d.home+"/pid", "--host", d.host(), "--config-file", d.home+"/daemon.json",
		"--log-level", "warn", "--bridge", "none", "--iptables=true", "--ip6tables=false", "--userland-proxy=false",
		"--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", "vr-"+filepath.Base(d.home))
	d.daemon.Env = append(os.Environ(), "PATH="+d.home+"/bin:"+os.Getenv("PATH"), "container=docker", "DOCKER_IGNORE_BR_NETFILTER_ERROR=1", "XTABLES_LOCKFILE="+d.home+"/xtables.lock")
	must.Succeed(t, startLogged(d.daemon, d.home+"/dockerd.log"))
	soon(t, "dockerd answers", func() error {
		_, err := d.try("version")
		if err != nil {
			return fmt.Errorf("%w\n%s", err, readable(d.home+"/dockerd.log"))
		}
		return nil
	})
}

// startPlugin starts `vrouter docker` in the node's namespace, where the
// devices that it makes belong.
func (d *dockerd) startPlugin(t *testing.T, flags ...string) {
	t.Helper()
	command := append([]string{"--net=/run/netns/" + d.node.space, program, "--socket", d.node.config["socket"].(string),
		"docker", "--plugin-dir", d.home + "/run/docker/plugins", "--state", d.home + "/docker.json"}, flags...)
	d.plugin = exec.Command("nsenter", command...)
	must.Succeed(t, startLogged(d.plugin, d.home+"/plugin.log"))
	soon(t, "the plugin serves", func() error {
		_, err := os.Stat(d.home + "/run/docker/plugins/vrouter.sock")
		return err
	})
}

func (d *dockerd) stopPlugin() {
	d.plugin.Process.Kill()
	d.plugin.Wait()
}

func (d *dockerd) stopDaemon() {
	d.daemon.Process.Signal(syscall.SIGKILL) // unshare's --kill-child ends all of it
	d.daemon.Wait()
}

func (d *dockerd) stop() {
	if d.daemon != nil {
		d.stopDaemon()
	}
	if d.plugin != nil {
		d.stopPlugin()
	}
}

// unmountBelow takes the mounts away that a daemon left in the host's namespace,
// of which there are none unless it escaped.
func unmountBelow(dir string) {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir) {
			syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
}

// removeCgroups deletes the control groups that a daemon made for containers,
// once their processes are gone.
func removeCgroups(name string) {
	for range 40 {
		var left []string
		for _, pattern := range []string{"/sys/fs/cgroup/" + name, "/sys/fs/cgroup/*/" + name} {
			found, _ := filepath.Glob(pattern)
			for _, dir := range found {
				filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
					if err == nil && e.IsDir() {
						left = append(left, path)
					}
					return nil
				})
			}
		}
		if len(left) == 0 {
			return
		}
		for _, dir := range slices.Backward(left) {
			syscall.Rmdir(dir)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (d *dockerd) try(args ...string) (string, error) {
	cmd := exec.Command("docker", append([]string{"--host", d.host()}, args...)...)
	cmd.Env = append(os.Environ(), "DOCKER_CONFIG="+d.home+"/client", "DOCKER_HOST=", "DOCKER_CONTEXT=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("docker %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return strings.TrimSpace(string(out)), nil
}

func (d *dockerd) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := d.try(args...)
	if err != nil {
		t.Fatalf("%v\nplugin: %s\nagent: %s", err, readable(d.home+"/plugin.log"), d.node.log())
	}
	return out
}

// container runs one that sleeps, and returns its addresses.
func (d *dockerd) container(t *testing.T, name string) (four, six string) {
	t.Helper()
	d.run(t, "run", "--detach", "--name", name, "--network", "red", "--pull", "never", "box", "/bin/busybox", "sleep", "1000")
	text := d.run(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.GlobalIPv6Address}}{{end}}", name)
	four, six, _ = strings.Cut(text, " ")
	return four, six
}

func (d *dockerd) ping(container, address string) error {
	_, err := d.try("exec", container, "/bin/busybox", "ping", "-c", "1", "-W", "1", address)
	return err
}

// fetch gets a file of a megabyte from a container on the other node.
func fetch(t *testing.T, from, to *dockerd, server, client, address string) error {
	t.Helper()
	from.run(t, "exec", server, "/bin/busybox", "dd", "if=/dev/urandom", "of=/f", "bs=1024", "count=1024")
	want := from.run(t, "exec", server, "/bin/busybox", "md5sum", "/f")
	from.run(t, "exec", "--detach", server, "/bin/busybox", "sh", "-c", "/bin/busybox nc -l -p 8080 < /f")
	got, err := "", error(nil)
	for range 20 { // until it listens
		if got, err = to.try("exec", client, "/bin/busybox", "sh", "-c", "/bin/busybox sleep 2 | /bin/busybox nc "+address+" 8080 > /f && /bin/busybox md5sum /f"); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s came, %s was sent", got, want)
	}
	return nil
}

// Two daemons on two nodes, with each encapsulation: containers reach each other,
// and keep doing so while plugin, agent and daemon are started anew.
func TestDockersContainersOfTwoNodesShareANetwork(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := fleetBedOf(t, options{config: map[string]any{"lease": "30s", "handover": "1s"}})
	first, second := startDocker(t, b.nodes[0]), startDocker(t, b.nodes[1])
	for _, d := range []*dockerd{first, second} {
		d.run(t, "network", "create", "--driver", "vrouter", "--opt", "tenant=admin", "--opt", "network=red",
			"--ipam-driver", "vrouter", "--ipam-opt", "network=red", "--subnet", "10.1.0.0/16", "red")
	}
	x, _ := first.container(t, "cx")
	y, _ := second.container(t, "cy")
	if x == y || !strings.HasPrefix(x, "10.1.") || !strings.HasPrefix(y, "10.1.") {
		t.Fatalf("the containers have %q and %q", x, y)
	}
	for _, encap := range encaps {
		for _, offered := range []string{"mpls-gre,mpls-udp,vxlan", string(encap)} { // the nodes always have one in common
			for _, n := range b.nodes {
				b.nodes[0].run("node", "set", n.name, "--underlay", n.v4.String(), "--encapsulation", offered)
			}
		}
		b.awaitWays(string(encap))
		soon(t, "the containers reach each other by "+string(encap), func() error { return first.ping("cx", y) })
		if err := fetch(t, second, first, "cy", "cx", y); err != nil {
			t.Errorf("fetch by %s: %v", encap, err)
		}
	}
	if out, err := first.try("network", "rm", "red"); err == nil {
		t.Errorf("a network in use was removed: %s", out)
	}

	second.stopPlugin()
	second.startPlugin(t)
	if err := first.ping("cx", y); err != nil {
		t.Errorf("after the plugin was started anew: %v", err)
	}
	z, _ := second.container(t, "cz")
	soon(t, "a container that was created afterwards is reached", func() error { return first.ping("cx", z) })

	b.nodes[1].kill(syscall.SIGKILL)
	if err := first.ping("cx", y); err != nil {
		t.Errorf("while the agent is away: %v", err)
	}
	b.nodes[1].start()

	second.run(t, "network", "disconnect", "red", "cz")
	soon(t, "a container that was disconnected is not reached", func() error {
		if first.ping("cx", z) == nil {
			return fmt.Errorf("it is")
		}
		return nil
	})
	second.run(t, "network", "connect", "red", "cz")
	second.run(t, "restart", "--time", "0", "cy")
	again := second.run(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", "cy")
	soon(t, "a container that was restarted is reached", func() error { return first.ping("cx", again) })

	second.stopDaemon()
	second.startDaemon(t)
	second.run(t, "start", "cy")
	again = second.run(t, "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", "cy")
	soon(t, "a container is reached after its daemon's restart", func() error { return first.ping("cx", again) })

	for d, names := range map[*dockerd][]string{first: {"cx"}, second: {"cy", "cz"}} {
		d.run(t, append([]string{"rm", "--force"}, names...)...)
		d.run(t, "network", "rm", "red")
	}
	soon(t, "nothing is left in the fleet", func() error {
		ports, networks := answer(b.nodes[0], (*api.Client).State).Ports, answer(b.nodes[0], (*api.Client).Networks)
		if len(ports)+len(networks) > 0 {
			return fmt.Errorf("ports %+v, networks %+v", ports, networks)
		}
		return nil
	})
	t.Run("an address that both daemons choose is refused with the remedy", func(t *testing.T) {
		bothChooseAnAddress(t, first, second)
	})
}

// Without the fleet's address manager two daemons choose the same addresses: the
// second is told what to do. A published port is refused too: no packet would come to it.
func bothChooseAnAddress(t *testing.T, first, second *dockerd) {
	for _, d := range []*dockerd{first, second} {
		d.run(t, "network", "create", "--driver", "vrouter", "--opt", "network=red", "--subnet", "10.1.0.0/16", "red")
	}
	first.run(t, "run", "--detach", "--name", "cx", "--network", "red", "--pull", "never", "box", "/bin/busybox", "sleep", "1000")
	_, err := second.try("run", "--detach", "--name", "cy", "--network", "red", "--pull", "never", "box", "/bin/busybox", "sleep", "1000")
	must.Fail(t, err, "--ipam-driver vrouter")
	_, err = first.try("run", "--detach", "--name", "cz", "--network", "red", "--publish", "8080:80", "--pull", "never", "box", "/bin/busybox", "sleep", "1000")
	must.Fail(t, err, "--publish")
}
