package probe

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/program"
	"windtunnel/lab/space"
)

func TestFactsOfAnyMachineArePlausible(t *testing.T) {
	f := Probe()
	if f != Probe() {
		t.Error("the second look is not the first one's")
	}
	if len(f.Online) == 0 || len(f.UsableCPUs()) == 0 || f.MemoryBytes < 64<<20 || f.CPUModel == "" || f.OS == "" {
		t.Errorf("the machine has %+v, want CPUs, memory, a model and a system", f)
	}
	for _, c := range f.UsableCPUs() {
		if !slices.Contains(f.Online, c) {
			t.Errorf("CPU %d may be used and is offline", c)
		}
	}
	if f.Release == "" || f.Virtualization == "" || f.HZ < 50 {
		t.Errorf("kernel %v, virtualization %q, HZ %d", f.Release, f.Virtualization, f.HZ)
	}
	if !slices.Contains([]string{"yes", "no", "unknown"}, f.IRQTimeAccounting) {
		t.Errorf("IRQ time accounting %q", f.IRQTimeAccounting)
	}
	must.Equal(t, len(features), len(f.Features))
	for _, found := range f.Features {
		if !found.Works && (found.Reason == "" || found.Remedy == "") {
			t.Errorf("%s is missing without a reason or remedy", found.Name)
		}
	}
	f.UsableCPUs()[0] = -1
	if f.Allowed[0] == -1 {
		t.Error("a caller can change the facts")
	}
}

func TestTimerByClockAgreesWithTheConfiguration(t *testing.T) {
	c := kernelConfig(release())
	if c.hz() == 0 {
		t.Skip("this kernel's configuration is not to be found")
	}
	must.Equal(t, c.hz(), hzByClock())
}

func pid() string { return strconv.Itoa(os.Getpid()) }

func needRoot(t *testing.T) {
	t.Helper()
	if !Probe().Root() {
		t.Skip("needs root to make network namespaces")
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	needRoot(t)
	look()
	left := must.Get(filepath.Glob(space.Dir + "/wt-probe-*"))(t)
	for _, name := range left {
		if strings.HasSuffix(name, "wt-probe-"+pid()) {
			t.Errorf("%s is still there", name)
		}
	}
}

// A namespace without the module's devices answers as the kernel does.
func TestAFeatureThatFailsIsNamedWithItsReason(t *testing.T) {
	needRoot(t)
	found := try(Feature{Name: Macvlan, What: "macvlan devices", Remedy: "r"}, &sandbox{}, &Facts{})
	if found.Works || !strings.Contains(found.Reason, "macvlan devices") || !strings.Contains(found.Reason, "veth") {
		t.Errorf("macvlan is %+v, want a reason with the missing device", found)
	}
}

func script(t *testing.T, name, body string) {
	t.Helper()
	dir := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestProgramsAreFoundWithTheirVersions(t *testing.T) {
	script(t, "wt-good", "echo; echo 'good 1.2.3 '; echo more")
	script(t, "wt-errs", "echo 'errs 4' >&2; exit 3")
	script(t, "wt-mute", "exit 0")
	script(t, "wt-loud", "yes loud | head -c 3000000")
	list := []program.Program{
		{Name: "wt-good", Version: []string{"wt-good", "-v"}, Build: "good"}, {Name: "wt-errs", Version: []string{"wt-errs"}},
		{Name: "wt-mute", Version: []string{"wt-mute"}}, {Name: "wt-loud", Version: []string{"wt-loud"}},
		{Name: "wt-none", Version: []string{"wt-none"}, Build: "apt-get install none"}, {Name: "sh"},
	}
	got := Probe().Programs(list)
	for i, want := range []string{"good 1.2.3", "errs 4", "", "loud", "", ""} {
		if got[i].Version != want || got[i].Name != list[i].Name || got[i].Package != list[i].Remedy() {
			t.Errorf("%+v, want version %q", got[i], want)
		}
	}
	if got[4].Path != "" || got[5].Path == "" || (program.Program{Name: "wt-none"}).Path() != "" {
		t.Errorf("the programs are %+v and %+v, want only the second with a path", got[4], got[5])
	}
	e := Probe().Environment(list)
	if e.Tools["wt-good"] != "good 1.2.3" || e.Tools["wt-mute"] == "" || e.Kernel == "" || e.CPUs == 0 {
		t.Errorf("the environment is %+v, want the versions of the tools and the machine's facts", e)
	}
	if got, want := e.Sysctls["net.core.netdev_max_backlog"], text("/proc/sys/net/core/netdev_max_backlog"); got != want || want == "" {
		t.Errorf("netdev_max_backlog is %q, want the host's %q", got, want)
	}
	if _, ok := e.Tools["wt-none"]; ok {
		t.Error("an absent program has a version")
	}
}

func TestAProgramThatHangsIsKilledWithItsChildren(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "pid")
	script(t, "wt-hangs", "sleep 30 & echo $! > "+marker+"; echo hangs 1; wait")
	start := time.Now()
	must.Equal(t, "hangs 1", askVersion([]string{"wt-hangs"}))
	if took := time.Since(start); took < versionTimeout || took > 25*time.Second { // the program sleeps for 30 s
		t.Errorf("took %v", took)
	}
	child := must.Get(os.ReadFile(marker))(t)
	must.EventuallyTrue(t, "its child has ended", func() bool {
		state, _ := field(text("/proc/"+strings.TrimSpace(string(child))+"/status"), "State")
		return state == "" || strings.HasPrefix(state, "Z")
	})
}
