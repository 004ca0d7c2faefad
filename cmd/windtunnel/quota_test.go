package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// A CPU quota changes the figures: the run warns of it before the trials, and marks the trials.
func TestARunWithACPUQuotaWarnsAndMarksItsTrials(t *testing.T) {
	h := newHome(t)
	if err := space.CanLimitCPU(); err != nil {
		t.Skip(err)
	}
	cmd := h.command("run", "slow.yaml", "--trials", "1", "--duration", "3s", "--gates", "warn") // the quota delays the readings by parts of 100 ms
	cmd.Args = append([]string{"sh", "-c", `read go; exec "$@"`, "sh"}, cmd.Args...)
	cmd.Path = "/bin/sh"
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	goes, err := cmd.StdinPipe()
	must.Succeed(t, err)
	must.Succeed(t, cmd.Start())
	group := fmt.Sprintf("wt-quota-%d", os.Getpid())
	t.Cleanup(func() { must.Succeed(t, space.DeleteCgroups(group)) })
	must.Succeed(t, space.LimitCPU(group, 0.1, cmd.Process.Pid))
	fmt.Fprintln(goes)
	err = cmd.Wait()
	warning, figures := strings.Index(out.String(), "a control group limits this process to 0.10 of "), strings.Index(out.String(), "cpu-quota ")
	if err != nil || warning < 0 || figures < warning {
		t.Errorf("%v, want a warning and then a mark:\n%s", err, &out)
	}
}
