package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/space"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		if err := Serve("test", "", os.Stdin, os.Stdout); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve starts the service as a user.
func serve(t *testing.T, program string, user uint32) Client {
	t.Helper()
	cmd := exec.Command(program, Command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	cmd.Stderr = os.Stderr
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Succeed(t, cmd.Start())
	c := Client{agent.NewClient("a", agent.Pipe{ReadCloser: out, Out: in})}
	t.Cleanup(func() {
		c.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the service of user %d: %v", user, err)
		}
	})
	return c
}

func TestAnOrdinaryUserLocksTheMachineWithoutRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("starting a program as another user needs root")
	}
	const nobody = 65534
	self := must.Get(os.ReadFile("/proc/self/exe"))(t)
	dir := must.Get(os.MkdirTemp("/var/tmp", "windtunnel-test"))(t) // not t.TempDir: the user nobody cannot enter it
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	must.Succeed(t, errors.Join(os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)))
	first, second := serve(t, program, nobody), serve(t, program, nobody)
	survey, err := first.Survey(t.Context(), SurveyArgs{Data: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil || survey.Root {
		t.Errorf("survey: %v; root %t, want no root", err, survey.Root)
	}
	must.Succeed(t, first.Hold(t.Context(), HoldArgs{Machine: true}))
	if _, err := os.Stat(filepath.Join(dir, lockFile)); err != nil {
		t.Errorf("the lock file is not in the program's directory: %v", err)
	}
	if names, err := first.Clean(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("clean: %v, %v", names, err)
	}
	must.Fail(t, second.Hold(t.Context(), HoldArgs{Machine: true}), "another measurement runs")
}

func TestDevicesThatTheLabMustNotMoveAreNamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("opening a network namespace needs root")
	}
	local := netip.MustParseAddr("127.0.0.1")
	d, err := deviceOf([]netip.Addr{local}, false, parseSession("192.0.2.1 51234 127.0.0.1 22"))
	must.Succeed(t, err)
	if d.Name != "lo" || d.Addresses[0] != netip.PrefixFrom(local, 8) {
		t.Errorf("the device is %+v, want lo with its address", d)
	}
	if why := strings.Join(d.Blocks, "; "); !strings.Contains(why, "loopback") || !strings.Contains(why, "SSH session") {
		t.Errorf("reasons: %s", why)
	}
	_, err = deviceOf([]netip.Addr{netip.MustParseAddr("192.0.2.200")}, false, sshSession{})
	must.Fail(t, err, "192.0.2.200")
}

// A node of a cluster can have its internal addresses on several devices, or on none: behind
// NAT.
func TestTheFirstDeviceWithAnAddressIsEnough(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	name := fmt.Sprintf("wt-host%d", os.Getpid())
	sp := must.Get(space.Create(name))(t)
	defer func() {
		if err := errors.Join(sp.Close(), space.Delete(name)); err != nil {
			t.Error(err)
		}
	}()
	must.Succeed(t, errors.Join(sp.Pair(space.Veth{Name: "one", PeerName: "two", MTU: 1500}, sp),
		sp.Address("one", netip.MustParsePrefix("192.0.2.1/24")), sp.Address("two", netip.MustParsePrefix("192.0.2.65/26"))))
	none, one, two := netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.65")
	for _, c := range []struct {
		addresses []netip.Addr
		some      bool
		want      string // device and addresses, or a part of the error
	}{
		{[]netip.Addr{one, two}, true, "one [192.0.2.1/24]"},
		{[]netip.Addr{none, two, one}, true, "two [192.0.2.65/26]"},
		{[]netip.Addr{none}, true, "no device of this machine has one of its internal addresses [198.51.100.1]"},
		{[]netip.Addr{one, two}, false, "are on different devices"},
		{[]netip.Addr{one, none}, false, "no device of this machine has the address 198.51.100.1"},
	} {
		var d Device
		err := sp.Do(func() (err error) {
			d, err = deviceOf(c.addresses, c.some, sshSession{})
			return err
		})
		if got := fmt.Sprint(d.Name, " ", d.Addresses); err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got != c.want {
			t.Errorf("%v, some %t: %s, %v; want %s", c.addresses, c.some, got, err, c.want)
		}
	}
}

// programFile is the name of a version of the program.
func programFile(version string) string { return ProgramPrefix + strings.Repeat(version, 16) }

// makeFiles makes empty files in a directory.
func makeFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		must.Succeed(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
}

func TestTheProgramIsRemovedWithItsVersionsAndItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	must.Succeed(t, os.Mkdir(dir, 0o700))
	makeFiles(t, dir, programFile("1"), programFile("a"), programFile("1")+".new.4711", MadeMark, "windtunnel.lock", "windtunnel.lock.4026531840")
	must.Succeed(t, removeProgram(filepath.Join(dir, programFile("1"))))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestFilesAndDirectoriesOfTheUserStay(t *testing.T) {
	for name, c := range map[string]struct{ lab, user []string }{
		"similar names":            {[]string{programFile("1")}, []string{"windtunnel-results.tar.gz", programFile("1") + ".txt", programFile("G"), "windtunnel-1", "windtunnel.lock.old"}},
		"files in the lab's place": {[]string{programFile("1"), MadeMark}, []string{"notes"}},
		"an empty directory":       {[]string{programFile("1")}, nil},
	} {
		dir := t.TempDir()
		makeFiles(t, dir, append(c.lab, c.user...)...)
		if err := removeProgram(filepath.Join(dir, programFile("1"))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var names []string
		for _, f := range left {
			names = append(names, f.Name())
		}
		slices.Sort(c.user)
		if !slices.Equal(names, c.user) {
			t.Errorf("%s: %v is left, want %v", name, names, c.user)
		}
	}
}

func TestAnAgentWithInvalidCPUsOrNamespaceIsRefused(t *testing.T) {
	must.Fail(t, Agent("test", []string{"-cpus", "x"}, nil, nil), "x")
	must.Fail(t, Agent("test", AgentArgs("wt-absent", []int{0})[1:], nil, nil), "wt-absent")
}
