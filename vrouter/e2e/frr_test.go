package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/setup"
	"windtunnel/internal/testprogram"
	"windtunnel/vrouter/model"
)

// Paths of FRR's daemons in Debian.
const (
	frrZebra = "/usr/lib/frr/zebra"
	frrBGP   = "/usr/lib/frr/bgpd"
	frrBFD   = "/usr/lib/frr/bfdd"
)

// frr is FRR on a node without an agent.
type frr struct {
	*node
	dir     string
	daemons map[string]*exec.Cmd // by path
}

// newFRR prepares FRR with configurations of bgpd and zebra. The daemons run as the user frr, who must own
// their files.
func newFRR(t *testing.T, n *node, bgpd, zebra string) *frr {
	t.Helper()
	for _, path := range []string{frrZebra, frrBGP} {
		if _, err := os.Stat(path); err != nil {
			t.Skip("FRR is not installed; get it with: " + setup.Command("frr"))
		}
	}
	f := &frr{node: n, dir: filepath.Join(n.bed.dir, "frr-"+n.name), daemons: map[string]*exec.Cmd{}}
	who, err := user.Lookup("frr")
	n.bed.must(err)
	uid, err := strconv.Atoi(who.Uid)
	n.bed.must(err)
	n.bed.must(os.Mkdir(f.dir, 0o700))
	for name, text := range map[string]string{"bgpd.conf": bgpd, "zebra.conf": zebra, "bfdd.conf": "", "vtysh.conf": ""} {
		path := filepath.Join(f.dir, name)
		n.bed.must(os.WriteFile(path, []byte(text), 0o600))
		n.bed.must(os.Chown(path, uid, -1))
	}
	n.bed.must(os.Chown(f.dir, uid, -1))
	t.Cleanup(f.stop)
	return f
}

// start starts zebra and bgpd.
func (f *frr) start() {
	f.bed.t.Helper()
	f.run(frrZebra, frrBGP)
}

// run starts daemons in a mount namespace in which /var/tmp is the directory of this FRR.
func (f *frr) run(paths ...string) {
	f.bed.t.Helper()
	for _, path := range paths {
		name := filepath.Base(path)
		cmd := exec.Command("nsenter", "--net=/run/netns/"+f.space, "unshare", "--mount", "sh", "-c", `mount --bind "$0" /var/tmp && exec "$@"`, f.dir,
			path, "-u", "frr", "-g", "frr", "--vty_socket", "/var/tmp", "-z", "/var/tmp/zserv.api", "-f", "/var/tmp/"+name+".conf", "-i", "/var/tmp/"+name+".pid", "-P", "0", "--log", "stdout")
		if path == frrBFD {
			cmd.Args = append(cmd.Args, "--bfdctl", "/var/tmp/bfdd.sock")
		}
		f.bed.must(startLogged(cmd, filepath.Join(f.bed.dir, f.name+"-"+name+".log")))
		f.daemons[path] = cmd
		soon(f.bed.t, name+" answers", func() error { _, err := f.vtysh(name, "show version"); return err })
	}
}

// stop kills the daemons, so that they do not end their sessions.
func (f *frr) stop() {
	for path := range f.daemons {
		f.kill(path)
	}
	if f.bed.t.Failed() {
		f.bed.t.Logf("bgpd: %s", readable(filepath.Join(f.bed.dir, f.name+"-bgpd.log")))
	}
}

// kill kills a daemon.
func (f *frr) kill(path string) {
	f.daemons[path].Process.Signal(syscall.SIGKILL)
	f.daemons[path].Wait()
	delete(f.daemons, path)
}

// vtysh sends commands to a daemon and returns its output.
func (f *frr) vtysh(daemon string, commands ...string) (string, error) {
	args := []string{"--config_dir", f.dir, "--vty_socket", f.dir, "-d", daemon}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	out, err := exec.Command("vtysh", args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("vtysh %s: %w: %s", strings.Join(commands, "; "), err, out)
	}
	return string(out), nil
}

// shows waits until the output of a daemon's command has all words.
func (f *frr) shows(daemon, command string, words ...string) {
	f.bed.t.Helper()
	hasAll(f.bed.t, command, words, func() (string, error) { return f.vtysh(daemon, command) })
}

// hasAll waits until the output of a router's command has all words.
func hasAll(t testing.TB, command string, words []string, output func() (string, error)) {
	t.Helper()
	soon(t, "`"+command+"` shows "+strings.Join(words, ", "), func() error {
		out, err := output()
		for _, w := range words {
			if err == nil && !strings.Contains(out, w) {
				err = fmt.Errorf("the output of `%s` has no %q:\n%s", command, w, out)
			}
		}
		return err
	})
}

// behind adds a host: a network namespace whose device eth0 is connected to the router's device name, with
// addresses such as 10.9.0.2/24. master is the bridge of the router's device; "" for none.
func (f *frr) behind(name, master string, addresses ...string) *workload {
	f.bed.t.Helper()
	part := f.name + name
	w := &workload{bed: f.bed, ns: f.bed.namespace(part), port: model.Port{Name: part, Attach: model.Attachment{Netns: f.bed.name + "-" + part}}}
	f.ip("link add " + name + " type veth peer name eth0 netns " + w.port.Attach.Netns)
	if master != "" {
		f.ip("link set " + name + " master " + master)
	}
	f.ip("link set " + name + " up")
	run := func(line string) { testprogram.Output(f.bed.t, "ip -n "+w.port.Attach.Netns+" "+line) }
	run("link set eth0 up")
	for _, a := range addresses {
		run("address add " + a + " dev eth0 nodad")
		ip, _, _ := strings.Cut(a, "/")
		w.port.IPs = append(w.port.IPs, mustAddr(ip))
	}
	return w
}

// vni adds a VXLAN device with a VNI and its bridge, as FRR requires them.
func (f *frr) vni(id int) (bridge string) {
	f.bed.t.Helper()
	bridge, vxlan := fmt.Sprintf("br%d", id), fmt.Sprintf("vx%d", id)
	f.ip("link add " + bridge + " type bridge")
	f.ip("link set " + bridge + " addrgenmode none up")
	f.ip(fmt.Sprintf("link add %s type vxlan id %d dstport 4789 local %s nolearning", vxlan, id, f.v4))
	f.ip("link set " + vxlan + " master " + bridge + " addrgenmode none up")
	f.exec("bridge link set dev " + vxlan + " learning off neigh_suppress on")
	return bridge
}
