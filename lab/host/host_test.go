package host

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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

func TestAUserWithoutRootIsTold(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", Command)
	if os.Geteuid() == 0 {
		const nobody = 65534
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("/var/tmp", "windtunnel-test") // nobody cannot enter t.TempDir
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		program := filepath.Join(dir, "program")
		if err := os.WriteFile(program, self, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(program, Command)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "sudo: true") {
		t.Errorf("%v, %q", err, said.String())
	}
}

func TestDevicesThatTheLabMustNotMoveAreNamed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("opening a network namespace needs root")
	}
	local := netip.MustParseAddr("127.0.0.1")
	d, err := deviceOf([]netip.Addr{local}, false, sessionAddress("192.0.2.1 51234 127.0.0.1 22"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "lo" || d.Addresses[0] != netip.PrefixFrom(local, 8) {
		t.Errorf("%+v", d)
	}
	if why := strings.Join(d.Blocks, "; "); !strings.Contains(why, "loopback") || !strings.Contains(why, "SSH session") {
		t.Errorf("reasons: %s", why)
	}
	if _, err := deviceOf([]netip.Addr{netip.MustParseAddr("192.0.2.200")}, false, netip.Addr{}); err == nil || !strings.Contains(err.Error(), "192.0.2.200") {
		t.Errorf("an address that the machine does not have: %v", err)
	}
}

// A node of a cluster can have its internal addresses on several devices, or on none: behind
// NAT.
func TestTheFirstDeviceWithAnAddressIsEnough(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	name := fmt.Sprintf("wt-host%d", os.Getpid())
	sp, err := space.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(sp.Close(), space.Delete(name)); err != nil {
			t.Error(err)
		}
	}()
	if err := errors.Join(sp.Pair(space.Veth{Name: "one", PeerName: "two", MTU: 1500}, sp),
		sp.Address("one", netip.MustParsePrefix("192.0.2.1/24")), sp.Address("two", netip.MustParsePrefix("192.0.2.65/26"))); err != nil {
		t.Fatal(err)
	}
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
			d, err = deviceOf(c.addresses, c.some, netip.Addr{})
			return err
		})
		if got := fmt.Sprint(d.Name, " ", d.Addresses); err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got != c.want {
			t.Errorf("%v, some %t: %s, %v; want %s", c.addresses, c.some, got, err, c.want)
		}
	}
}

func TestTheProgramIsRemovedWithItsVersions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "windtunnel-0")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(dir, ProgramPrefix+"1")
	for _, path := range []string{self, filepath.Join(dir, ProgramPrefix+"2")} {
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeProgram(self); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is left: %v", err)
	}
}

func TestTheNodesAgentGetsItsPlace(t *testing.T) {
	if err := Agent("test", AgentArgs("", "x")[1:], nil, nil); err == nil || !strings.Contains(err.Error(), "x") {
		t.Errorf("a wrong list of CPUs: %v", err)
	}
	if err := Agent("test", AgentArgs("wt-absent", "0")[1:], nil, nil); err == nil || !strings.Contains(err.Error(), "wt-absent") {
		t.Errorf("a namespace that does not exist: %v", err)
	}
}
