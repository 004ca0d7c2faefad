package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf/rlimit"
	"github.com/rogpeppe/go-internal/testscript"

	"windtunnel/vrouter/api"
)

// The scripts in testdata/node use real agents of two nodes, a and b. A veth pair is
// the underlay. Each node has namespaces for workloads.
func TestNodes(t *testing.T) {
	needNodes(t)
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/node",
		Setup: makeNodes,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"gone": gone, "metrics": metrics},
	})
}

// needNodes skips a test without root or the needed programs.
func needNodes(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("nodes need root")
	}
	for _, tool := range []string{"ip", "ping"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	if err := errors.Join(rlimit.RemoveMemlock(), tryTCX()); err != nil {
		t.Skip("this kernel does not let programs be attached: ", err)
	}
}

// fabric has the nodes of one script.
type fabric struct {
	dir    string // run and state directories: short, since sockets are in it
	prefix string // of the namespaces
}

// namespaces returns the namespaces of nodes and workloads.
var namespaces = []string{"a", "b", "n1", "n2", "n3"}

// makeNodes makes namespaces, the underlay, and a configuration for each node.
func makeNodes(env *testscript.Env) error {
	dir, err := os.MkdirTemp("", "vr-cli")
	if err != nil {
		return err
	}
	f := fabric{dir: dir, prefix: fmt.Sprintf("vr-cli%d%s-", os.Getpid(), filepath.Base(env.WorkDir)[len("script-"):][:3])}
	env.Defer(func() { f.remove(env) })
	env.Setenv("P", f.prefix)
	env.Setenv("RUN", dir)
	env.Setenv("A", filepath.Join(dir, "a.sock"))
	env.Setenv("B", filepath.Join(dir, "b.sock"))
	for _, name := range namespaces {
		if err := run("ip netns add " + f.prefix + name); err != nil {
			return err
		}
	}
	if err := f.join(); err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		text := fmt.Sprintf("node: %s\nnetns: %s%s\nrun_dir: %s\nstate_dir: %s/state-%s\n", name, f.prefix, name, dir, dir, name)
		if err := os.WriteFile(filepath.Join(env.WorkDir, name+".yaml"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return f.writeState(env.WorkDir)
}

// join connects the nodes by the underlay.
func (f fabric) join() error {
	return errors.Join(
		run(fmt.Sprintf("ip link add under netns %sa mtu 1600 type veth peer name under netns %sb mtu 1600", f.prefix, f.prefix)),
		run("ip -n "+f.prefix+"a address add 192.0.2.1/24 dev under"),
		run("ip -n "+f.prefix+"b address add 192.0.2.2/24 dev under"),
		run("ip -n "+f.prefix+"a link set under up"),
		run("ip -n "+f.prefix+"b link set under up"))
}

// writeState writes the namespaces' names into the shared state and into the states
// of the script.
func (f fabric) writeState(work string) error {
	own, err := filepath.Glob(filepath.Join(work, "*.yaml"))
	if err != nil {
		return err
	}
	for _, from := range append(own, "testdata/node/state.yaml") {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		text = []byte(strings.ReplaceAll(string(text), "$P", f.prefix))
		if err := os.WriteFile(filepath.Join(work, filepath.Base(from)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// remove removes everything that a script has left, also a failed one.
func (f fabric) remove(env *testscript.Env) {
	for _, node := range []string{"a", "b"} {
		call := exec.Command(os.Args[0], "remove", "--config", filepath.Join(env.WorkDir, node+".yaml"))
		call.Args[0] = "vrouter"
		call.Path = filepath.Join(binDir(env), "vrouter")
		if text, err := call.CombinedOutput(); err != nil {
			env.T().Log("remove node ", node, ": ", string(text))
		}
	}
	for _, name := range namespaces {
		run("ip netns delete " + f.prefix + name) // a script may have done so itself
	}
	os.RemoveAll(f.dir)
}

// binDir is the directory into which testscript has installed the program.
func binDir(env *testscript.Env) string {
	first, _, _ := strings.Cut(env.Getenv("PATH"), string(os.PathListSeparator))
	return first
}

func run(line string) error {
	args := strings.Fields(line)
	if text, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, text)
	}
	return nil
}

// metrics writes a node's metrics to a file, and checks that the handbook names
// each family of them.
func metrics(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: metrics SOCKET FILE")
	}
	c := api.Dial(args[0])
	defer c.Close()
	text, err := c.Metrics(context.Background())
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
	pages, err := os.ReadFile(handbook)
	ts.Check(err)
	families := regexp.MustCompile(`(?m)^# HELP (\S+)`).FindAllStringSubmatch(text, -1)
	if len(families) < 10 {
		ts.Fatalf("only %d families:\n%s", len(families), text)
	}
	for _, f := range families {
		if !strings.Contains(string(pages), "`"+f[1]+"`") {
			ts.Fatalf("the handbook does not name %s", f[1])
		}
	}
}

// gone checks that nothing is mounted below a directory, that no namespace with
// a prefix holds a device of the vrouter, and that no run file is left.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: gone DIRECTORY NAMESPACE-PREFIX")
	}
	for _, path := range []string{"/proc/self/mounts", "/proc/1/mounts"} {
		text, err := os.ReadFile(path)
		ts.Check(err)
		if strings.Contains(string(text), " "+args[0]+"/") {
			ts.Fatalf("%s: something is still mounted in %s", path, args[0])
		}
	}
	left, err := os.ReadDir(args[0])
	if !errors.Is(err, fs.ErrNotExist) {
		ts.Check(err)
	}
	for _, e := range left {
		ts.Fatalf("%s is left in %s", e.Name(), args[0])
	}
	for _, node := range []string{"a", "b"} {
		text, err := exec.Command("ip", "-n", args[1]+node, "-br", "link").Output()
		ts.Check(err)
		if strings.Contains(string(text), "vr-") {
			ts.Fatalf("devices are left on node %s:\n%s", node, text)
		}
		text, err = exec.Command("ip", "-n", args[1]+node, "link", "show", "under").Output()
		ts.Check(err)
		if strings.Contains(string(text), "xdp") {
			ts.Fatalf("a program is left on node %s:\n%s", node, text)
		}
	}
}
