package udptun

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWrongArgumentsAreToldBesideTheUsage(t *testing.T) {
	for say, args := range map[string][]string{
		"are required":         {},
		"the peer":             {"--device", "tun0", "--listen", "192.0.2.1:1", "--route", "10.0.0.0/8=x"},
		"invalid value":        {"--listen", "nowhere"},
		`"more" is not a flag`: {"--device", "tun0", "more"},
		"not defined: -mesh":   {"--mesh"},
	} {
		var stdout, stderr bytes.Buffer
		if status := Command(args, &stdout, &stderr); status != 2 {
			t.Errorf("%v: status %d, want 2", args, status)
		}
		if !strings.Contains(stderr.String(), say) || strings.Count(stderr.String(), "usage:") != 1 || stdout.Len() > 0 {
			t.Errorf("%v: %q and %q, want %q and the usage once", args, stdout.String(), stderr.String(), say)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := Command([]string{"--help"}, &stdout, &stderr); status != 0 || strings.Count(stderr.String(), "usage:") != 1 {
		t.Errorf("help: status %d, %q", status, stderr.String())
	}
}

// program runs the command on a side until the test ends.
func program(t *testing.T, s *side, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, append([]string{Name}, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, s.Do(cmd.Start))
	watchdog := time.AfterFunc(testTimeout*time.Second, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, bufio.NewScanner(out)
}

// counted is the next line, which must hold counters.
func counted(t *testing.T, lines *bufio.Scanner) Counters {
	t.Helper()
	if !lines.Scan() {
		t.Fatal("the program ended")
	}
	var line struct {
		Event string `json:"event"`
		Counters
	}
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Event != "counters" {
		t.Fatalf("%q (%v), want counters", lines.Text(), err)
	}
	return line.Counters
}

func TestTheProgramSaysThatItIsReadyAndCountsOnASignalAndAtItsEnd(t *testing.T) {
	both := sides(t)
	open(t, both[1], both[0], 1)
	cmd, lines := program(t, both[0], "--device", testDevice, "--listen", both[0].at.String(), "--batch", "8",
		"--route", Route{both[1].v4, both[1].at}.String(), "--route", Route{both[1].v6, both[1].at}.String())
	if !lines.Scan() || !strings.Contains(lines.Text(), Ready) {
		t.Fatalf("%q, want %s", lines.Text(), Ready)
	}
	both[0].raise(t)

	near := both[0].udp(t, netip.AddrPortFrom(both[0].inner(4), 9000))
	far := both[1].udp(t, netip.AddrPortFrom(both[1].inner(4), 9000))
	ping := func() {
		t.Helper()
		buf := make([]byte, 100)
		_, err := near.WriteToUDPAddrPort([]byte("ping"), netip.AddrPortFrom(both[1].inner(4), 9000))
		must(t, err)
		_, back, err := far.ReadFromUDPAddrPort(buf)
		must(t, err)
		_, err = far.WriteToUDPAddrPort([]byte("pong"), back)
		must(t, err)
		_, _, err = near.ReadFromUDPAddrPort(buf)
		must(t, err)
	}
	ping()
	// A packet is counted once the kernel has it, so its receiver may be first.
	eventually(t, "packets after one exchange", 2, func() uint64 {
		must(t, cmd.Process.Signal(syscall.SIGUSR1))
		c := counted(t, lines)
		return c.ToPeers.Packets + c.FromPeers.Packets
	})
	ping()
	must(t, cmd.Process.Signal(syscall.SIGHUP)) // of a closed terminal
	if c := counted(t, lines); c.ToPeers.Packets != 2 || c.FromPeers.Packets != 2 || c.FromPeers.Bytes != 64 {
		t.Errorf("after two: %+v", c)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended by SIGTERM: %v", err)
	}
	if _, err := both[0].Link(testDevice); err == nil {
		t.Error("the device outlives the program")
	}
}

func TestAProgramThatCannotOpenEndsWithTheReason(t *testing.T) {
	both := sides(t)
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self, Name, "--device", testFabric, "--listen", both[0].at.String(), "--route", Route{both[1].v4, both[1].at}.String())
	var said bytes.Buffer
	cmd.Stderr = &said
	must(t, both[0].Do(cmd.Start))
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("%v, want status 1", err)
	}
	if !strings.Contains(said.String(), "windtunnel udp-tun: make TUN device fab") || strings.Count(said.String(), "\n") != 1 {
		t.Errorf("it said %q, want one line", said.String())
	}
}
