package testcluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// nodeVariable makes the test binary the first process of a node of the test cluster. Its
// value is a folder with the node's files.
const nodeVariable = "WT_TEST_CLUSTER_NODE"

// RunNode does the work of process 1 of a node, if this process is one. It then does not return.
func RunNode() {
	folder := os.Getenv(nodeVariable)
	if folder == "" {
		return
	}
	if err := runNode(folder, os.Getenv("WT_TEST_PROGRAMS")); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runNode is process 1 of a node: it has network, mount, UTS, IPC and PID namespaces of its
// own. It starts containerd, kubelet and, unless the test forbids it, kube-proxy, and ends when its input ends. The
// kernel then ends all processes of the node.
func runNode(folder, bin string) error {
	if err := mountNode(folder, bin); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(filepath.Base(folder))); err != nil {
		return err
	}
	// The node's programs share a group, as those of a real node share system.slice. Without it, each of their threads
	// would get as much CPU time as all pods together.
	system := "/sys/fs/cgroup/cpu" + os.Getenv("WT_TEST_CGROUP") + "/system"
	if err := os.MkdirAll(system, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(system+"/cgroup.procs", []byte("0"), 0o644); err != nil {
		return err
	}
	os.Unsetenv(nodeVariable)
	os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if _, err := launch(folder, "containerd", "--config", folder+"/containerd.toml"); err != nil {
		return err
	}
	go reap()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat("/run/containerd/containerd.sock"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return errors.New("containerd makes no socket")
		}
	}
	proxy := "/sys/fs/cgroup/cpuacct" + os.Getenv("WT_TEST_CGROUP") + "/kube-proxy" // as systemd makes it
	if err := os.MkdirAll(proxy, 0o755); err != nil {
		return err
	}
	images, err := filepath.Glob(folder + "/../*.image")
	if err != nil {
		return err
	}
	for _, image := range images {
		if _, err := launch(folder, "ctr", "--namespace", "k8s.io", "images", "import", image); err != nil {
			return err
		}
		time.Sleep(time.Second) // the import is short; the kubelet repeats what comes too early
	}
	for _, argv := range [][]string{
		{"kubelet", "--config", folder + "/kubelet.yaml", "--kubeconfig", folder + "/../kubeconfig", "--hostname-override", filepath.Base(folder), "--node-ip", os.Getenv("WT_TEST_ADDRESS"), "--v=1"},
		{"kube-proxy", "--kubeconfig", folder + "/../kubeconfig", "--hostname-override", filepath.Base(folder), "--proxy-mode", "iptables", "--cluster-cidr", os.Getenv("WT_TEST_PODS"),
			"--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"},
	} {
		if argv[0] == "kube-proxy" && os.Getenv("WT_TEST_KUBE_PROXY") == "false" {
			continue
		}
		p, err := launch(folder, argv[0], argv[1:]...)
		if err != nil {
			return err
		}
		if argv[0] == "kube-proxy" {
			if err := os.WriteFile(proxy+"/cgroup.procs", []byte(strconv.Itoa(p.Pid)), 0o644); err != nil {
				return err
			}
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// pluginFolder has the CNI plugins of a node.
const pluginFolder = "/opt/cni/bin"

// mountNode gives the node file systems of its own where its programs write.
func mountNode(folder, bin string) error {
	etc := folder + "/etc"
	for _, dir := range []string{etc + "/upper/cni/net.d", etc + "/work", folder + "/opt/upper", folder + "/opt/work"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	switch conflist, err := os.ReadFile(folder + "/cni.conflist"); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if err := os.WriteFile(etc+"/upper/cni/net.d/10-test.conflist", conflist, 0o644); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		options              string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"proc", "/proc", "proc", 0, ""},
		{"overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir=" + etc + "/upper,workdir=" + etc + "/work"},
		{"tmpfs", "/run", "tmpfs", 0, ""},
		{"tmpfs", "/var/lib", "tmpfs", 0, ""},
		{"tmpfs", "/var/log", "tmpfs", 0, ""},
		{"tmpfs", "/opt", "tmpfs", 0, ""},
		{"overlay", pluginFolder, "overlay", 0, "lowerdir=" + bin + ",upperdir=" + folder + "/opt/upper,workdir=" + folder + "/opt/work"},
		{"", "/", "", unix.MS_REC | unix.MS_SHARED, ""},
	} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// launch starts a program, whose output goes to a file. Process 1 reaps it.
func launch(folder, name string, args ...string) (*os.Process, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	none, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer none.Close()
	return os.StartProcess(path, append([]string{name}, args...), &os.ProcAttr{Env: os.Environ(), Files: []*os.File{none, log, log}})
}

// reap reaps all processes that end on the node.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, 0, nil)
		if err != nil && pid <= 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// startNode starts a node in its network namespace.
func (k *Cluster) startNode(n *Node) {
	t := k.T
	t.Helper()
	folder := k.Path(n.Name)
	must.Succeed(t, os.MkdirAll(folder, 0o755))
	level := "info"
	if k.options.Trace {
		level = "debug"
	}
	files := map[string]string{
		"containerd.toml": strings.NewReplacer("IMAGE", SandboxImage, "LEVEL", level).Replace(containerdConfig),
		"kubelet.yaml":    fmt.Sprintf(kubeletConfig, k.everyAddress(), n.cgroup, k.both(dnsAddress, dnsAddress6)),
	}
	if k.options.CNI != nil {
		files["cni.conflist"] = k.options.CNI(n.index)
	}
	for name, text := range files {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644))
	}
	k.makeCgroups(n)
	self, err := os.Executable()
	must.Succeed(t, err)
	cmd := k.CommandIn(n.Namespace, self)
	cmd.Env = append(os.Environ(), nodeVariable+"="+folder, "WT_TEST_PROGRAMS="+k.Bin, "WT_TEST_ADDRESS="+n.Address, "WT_TEST_PODS="+k.both(PodNetwork, PodNetwork6), "WT_TEST_CGROUP="+n.cgroup, fmt.Sprint("WT_TEST_KUBE_PROXY=", !k.options.NoKubeProxy))
	log, err := os.Create(folder + "/node.log")
	must.Succeed(t, err)
	defer log.Close()
	cmd.Stderr, cmd.Stdout = log, log
	stdin, err := cmd.StdinPipe()
	must.Succeed(t, err)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID}
	must.Succeed(t, cmd.Start())
	n.Root = fmt.Sprintf("/proc/%d/root", cmd.Process.Pid)
	n.stop = sync.OnceFunc(func() {
		stdin.Close()
		_ = cmd.Process.Kill() // process 1 of the node: the kernel ends the others
		_ = cmd.Wait()
		n.removeCgroups(k.whole)
	})
	k.whole.Cleanup(n.stop)
}

// Processes returns the processes of a node whose command line begins with argv. The path of the
// program is ignored.
func (k *Cluster) Processes(n *Node, argv ...string) (pids []string) {
	all, err := filepath.Glob(n.Root + "/proc/[0-9]*/cmdline")
	must.Succeed(k.T, err)
	for _, path := range all {
		text, _ := os.ReadFile(path) // it fails if the process has ended
		has := strings.Split(string(text), "\x00")
		has[0] = filepath.Base(has[0])
		if len(has) >= len(argv) && slices.Equal(has[:len(argv)], argv) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// Signal sends a signal to the processes of a node whose command line begins with argv, and waits
// until they have ended.
func (k *Cluster) Signal(n *Node, signal string, argv ...string) {
	k.T.Helper()
	pids := k.Processes(n, argv...)
	if len(pids) == 0 {
		k.T.Fatalf("%s does not run %v", n.Name, argv)
	}
	for _, pid := range pids {
		if said, err := k.OnNode(n, "kill", "-"+signal, pid); err != nil {
			k.T.Fatalf("kill -%s %s on %s: %v: %s", signal, pid, n.Name, err, said)
		}
		k.Await(fmt.Sprintf("%v has ended on %s", argv, n.Name), func() bool { return !exists(n.Root + "/proc/" + pid) })
	}
}

// Restart ends a program that the node started, by a signal, and starts it again.
func (k *Cluster) Restart(n *Node, signal, program string) {
	k.T.Helper()
	pids := k.Processes(n, program)
	if len(pids) != 1 {
		k.T.Fatalf("%s runs %d processes %s, want one", n.Name, len(pids), program)
	}
	line, err := os.ReadFile(n.Root + "/proc/" + pids[0] + "/cmdline")
	must.Succeed(k.T, err)
	environ, err := os.ReadFile(n.Root + "/proc/" + pids[0] + "/environ")
	must.Succeed(k.T, err)
	k.Signal(n, signal, program)
	cmd := n.command(strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00"))
	cmd.Env = strings.Split(strings.TrimSuffix(string(environ), "\x00"), "\x00")
	log, err := os.OpenFile(filepath.Join(k.Path(n.Name), program+".log"), os.O_APPEND|os.O_WRONLY, 0)
	must.Succeed(k.T, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	must.Succeed(k.T, cmd.Start())
	go cmd.Wait() // it ends with the node
}

const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[debug]
level = "LEVEL"
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "IMAGE"
restrict_oom_score_adj = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
`

const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %q
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: %s
clusterDNS: [%s]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
enforceNodeAllocatable: [none]
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
failSwapOn: false
makeIPTablesUtilChains: false
nodeStatusUpdateFrequency: 2s
`

// makeCgroups makes the control groups of a node. Its pods use one CPU.
func (k *Cluster) makeCgroups(n *Node) {
	t := k.T
	for _, h := range hierarchies(t) {
		group := h + n.cgroup
		must.Succeed(t, os.MkdirAll(group, 0o755))
		if filepath.Base(h) != "cpuset" {
			continue
		}
		mems, err := os.ReadFile(h + "/cpuset.mems")
		must.Succeed(t, err)
		must.Succeed(t, os.WriteFile(group+"/cpuset.cpus", []byte(strconv.Itoa(n.index%runtime.NumCPU())), 0o644))
		must.Succeed(t, os.WriteFile(group+"/cpuset.mems", mems, 0o644))
	}
}

// hierarchies returns the directories below which nodes have control groups: one for each controller of cgroup version 1, and
// "unified" of version 2. The lab needs no group in "unified", but runc makes groups with the same names there.
func hierarchies(t *testing.T) []string {
	all, err := filepath.Glob("/sys/fs/cgroup/*")
	must.Succeed(t, err)
	return slices.DeleteFunc(all, func(h string) bool {
		info, err := os.Stat(h)
		must.Succeed(t, err)
		return !info.IsDir()
	})
}

func (n *Node) removeCgroups(t *testing.T) {
	for _, h := range hierarchies(t) {
		removeCgroups(t, h+n.cgroup)
	}
}

// removeCgroups removes a control group and its subgroups. Their killed processes leave them soon.
func removeCgroups(t *testing.T, group string) {
	entries, _ := os.ReadDir(group) // none: the group is gone
	for _, e := range entries {
		if e.IsDir() {
			removeCgroups(t, filepath.Join(group, e.Name()))
		}
	}
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Rmdir(group)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("remove control group %s: %v", group, err)
			return
		}
	}
}
