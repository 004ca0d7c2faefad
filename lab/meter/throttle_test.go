package meter

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/space"
)

// The quota is that of the group above the process's.
func TestThePeriodsInWhichAQuotaStoppedATool(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("control groups need root")
	}
	if err := space.CanLimitCPU(); err != nil {
		t.Skip(err)
	}
	name := fmt.Sprintf("wt-quota-%d", os.Getpid())
	busy := exec.Command("sh", "-c", "while :; do :; done")
	must.Succeed(t, busy.Start())
	t.Cleanup(func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
		if err := space.DeleteCgroups(name); err != nil {
			t.Error(err)
		}
	})
	must.Succeed(t, space.LimitCPU(name, 0.1, busy.Process.Pid))
	groups, err := filepath.Glob("/sys/fs/cgroup/cpu/" + name)
	if err != nil || len(groups) == 0 {
		t.Skip("there is no hierarchy of version 1")
	}
	inner := filepath.Join(groups[0], "inner")
	must.Succeed(t, os.Mkdir(inner, 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(inner, "cgroup.procs"), fmt.Append(nil, busy.Process.Pid), 0o644))
	for limited, want := range map[string]bool{"": true, space.Cgroup(name): false} {
		m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t), Limited: limited}))(t)
		defer m.Close()
		m.Track("sender", busy.Process.Pid)
		a := must.Get(m.Read())(t)
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			b := must.Get(m.Read())(t)
			d := must.Get(Window(a, b))(t)
			if !want && d.Seconds < 0.05 {
				continue
			}
			if got := d.Throttled; got.Throttled > 0 != want || want && (got.Group != "/"+name || got.Periods < got.Throttled) {
				if want && got.Throttled == 0 && time.Now().Before(deadline) {
					continue
				}
				t.Errorf("limited on purpose %q: %+v", limited, got)
			}
			break
		}
	}
}

func TestPeriodsOfBothVersionsOfControlGroups(t *testing.T) {
	want := Throttling{Periods: 269, Throttled: 175}
	for text, want := range map[string]Throttling{
		"nr_periods 269\nnr_throttled 175\nthrottled_time 8000000\n":                                        want,
		"usage_usec 5\nuser_usec 3\nsystem_usec 2\nnr_periods 269\nnr_throttled 175\nthrottled_usec 8000\n": want,
		"usage_usec 5\nuser_usec 3\nsystem_usec 2\n":                                                        {}, // the root of version 2
	} {
		if got, err := parseThrottling(text); got != want || err != nil {
			t.Errorf("the throttling of %q is %+v (%v), want %+v", text, got, err, want)
		}
	}
	if got, err := parseThrottling("nr_periods x\n"); err == nil {
		t.Errorf("a word was read as %+v", got)
	}
}

func TestTheWindowHasTheGroupThatWasStoppedMost(t *testing.T) {
	at := func(mono int64, counts ...Throttling) Reading {
		return Reading{Node: "n", Mono: mono, Throttled: counts}
	}
	a := at(1, Throttling{"/", 10, 1}, Throttling{"/x", 100, 50}, Throttling{"/gone", 1, 1})
	b := at(2e9, Throttling{"/", 30, 2}, Throttling{"/x", 120, 63}, Throttling{"/new", 20, 2})
	d, err := Window(a, b)
	if want := (Throttling{"/x", 20, 13}); err != nil || d.Throttled != want {
		t.Errorf("%+v, %v; want %+v", d.Throttled, err, want)
	}
}
