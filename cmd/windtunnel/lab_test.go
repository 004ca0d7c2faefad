package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// After a signal to `lab exec`, its command and the programs that the command started must have
// ended, too.
func TestLabExecForwardsSignals(t *testing.T) {
	h := newHome(t)
	if out, err := h.run("lab", "up", "slow.yaml"); err != nil {
		t.Fatalf("lab up: %v\n%s", err, out)
	}
	t.Cleanup(func() { h.run("lab", "down", "slow.yaml") })
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		cmd := h.command("lab", "exec", "slow.yaml", "a", "--", "sh", "-c", "sh -c 'echo $$; exec sleep 60'; true")
		out := must.Get(cmd.StdoutPipe())(t)
		must.Succeed(t, cmd.Start())
		line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
		child := must.Get(strconv.Atoi(strings.TrimSpace(line)))(t)
		must.Succeed(t, cmd.Process.Signal(s))
		late := time.AfterFunc(10*time.Second, func() { syscall.Kill(child, syscall.SIGKILL) })
		cmd.Wait()
		late.Stop()
		if got := cmd.ProcessState.ExitCode(); got != 128+int(s) {
			t.Errorf("after %v lab exec ended with status %d, want %d", s, got, 128+int(s))
		}
		t.Cleanup(func() { syscall.Kill(child, syscall.SIGKILL) })
		must.EventuallyTrue(t, "process 1 has reaped the command", func() bool { return errors.Is(syscall.Kill(child, 0), syscall.ESRCH) })
	}
}

func TestLabCleanSaysWhichMeasurementPreventsIt(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the lock is root's")
	}
	lock, err := takeLock()
	must.Succeed(t, err)
	defer lock.Unlock()
	err = clean(io.Discard, "wt-none-")
	if err == nil || !strings.HasPrefix(err.Error(), "remove namespaces and processes: a measurement may use them (process ") || strings.Contains(err.Error(), "falsify") {
		t.Errorf("got %v, want the measurement that prevents the removal", err)
	}
}
