package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/testbed/ssh/sshtest"
)

// fleet is hosts with sshd, a home on the engine's machine, and a hosts file.
type fleet struct {
	*home
	site *sshtest.Site
	file string
}

// newFleet starts the hosts a and b. options are lines for sshd's configuration.
func newFleet(t *testing.T, first string, options ...string) *fleet {
	t.Helper()
	return newFleetOf(t, []string{"a", "b"}, first, options...)
}

// newFleetOf starts the named hosts.
func newFleetOf(t *testing.T, names []string, first string, options ...string) *fleet {
	t.Helper()
	f := &fleet{home: newHome(t), site: sshtest.New(t, names, options...)}
	f.file = f.site.WriteHosts(first)
	return f
}

// features returns the features of each host's data device, or "absent".
func (f *fleet) features() (all []string) {
	f.t.Helper()
	for _, h := range f.site.Hosts {
		features, err := h.Space.Features("data")
		if err != nil {
			all = append(all, "absent")
			continue
		}
		all = append(all, fmt.Sprint(features))
	}
	return all
}

// untouched checks that the hosts are as before a run: sshd alone runs, no namespace is
// left, and the data devices have their features.
func (f *fleet) untouched(features []string) {
	f.t.Helper()
	must.Eventually(f.t, "the hosts are as before the run", func() error {
		left := strings.Join(leftovers(f.t), " ")
		for i, h := range f.site.Hosts {
			if p := f.site.Processes(i); len(p) != 1 {
				left += fmt.Sprintf(" processes %v on host %s", p, h.Name)
			}
		}
		if now := f.features(); strings.Join(now, "; ") != strings.Join(features, "; ") {
			left += fmt.Sprintf(" devices %v, which were %v", now, features)
		}
		if left != "" {
			return errors.New("left behind: " + left)
		}
		return nil
	})
}

func (f *fleet) writeSuite(name, text string) {
	f.t.Helper()
	must.Succeed(f.t, os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o644))
}

func (f *fleet) read(name string) string {
	f.t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(f.dir, name)))(f.t)
	return string(text)
}

// Both stacks, the report's words about the network, and lab clean.
func TestTheReportOfARunBetweenHostsDescribesTheNetwork(t *testing.T) {
	must.Long(t)
	f := newFleet(t, "dedicated: false")
	before := f.features()
	f.writeSuite("both.yaml", slowSuite+`  - id: raw/six
    system: raw
    workload: six
`)
	f.writeSuite("both.yaml", strings.Replace(f.read("both.yaml"), "scenarios:", "  six: {kind: tcp_stream, buffer: 16k, rate: 20M, ip_version: 6}\nscenarios:", 1))
	out, err := f.run("run", "both.yaml", "--gates", "warn", "--cpu-distance", "any", "--trials", "1", "--testbed", f.file, "--out", "report")
	if err != nil || f.samples() != 2 {
		t.Fatalf("run: %v\n%s", err, out)
	}
	page := f.read("report/report.md")
	for _, want := range []string{"The fabric is the network that joins the hosts", "the existing network between hosts (a data, b data)"} {
		if !strings.Contains(page, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if strings.Contains(page, "emulates two NICs") {
		t.Error("the report says that the fabric is emulated")
	}
	f.untouched(before)
	must.Succeed(t, os.WriteFile(filepath.Join(f.site.Path("program"), "windtunnel-results.tar.gz"), nil, 0o600))
	if out, err := f.run("lab", "clean", "--testbed", f.file); err != nil || !strings.Contains(out, "b: removed 0 network namespaces and the windtunnel program") {
		t.Errorf("lab clean: %v\n%s", err, out)
	}
	left, err := os.ReadDir(f.site.Path("program"))
	if err != nil || len(left) != 1 || left[0].Name() != "windtunnel-results.tar.gz" {
		t.Errorf("the program's directory has %v (%v), want the user's file alone", left, err)
	}
	f.untouched(before)
}

// Three offload profiles on dedicated devices, and what the devices had before.
func TestCtrlCEndsARunBetweenHostsAndRestoresTheirDevices(t *testing.T) {
	must.Long(t)
	f := newFleet(t, "dedicated: true")
	before := f.features()
	f.writeSuite("none.yaml", strings.Replace(slowSuite, "offload: tcp", "offload: none", 1))
	cmd := f.untilTrials(1, "run", "none.yaml", "--gates", "warn", "--testbed", f.file, "--out", "stopped")
	if now := f.features(); now[0] != "absent" || now[1] != "absent" {
		t.Errorf("during the run the hosts have the devices %v: the test does not test", now)
	}
	f.interrupt(cmd)
	if page := f.read("stopped/report.md"); !strings.Contains(page, "the lab set offload none on the devices") {
		t.Error("the report does not say that the lab set the offload")
	}
	f.untouched(before)
}

func TestAKilledRunBetweenHostsIsResumed(t *testing.T) {
	must.Long(t)
	f := newFleet(t, "dedicated: true")
	before := f.features()
	cmd := f.untilTrials(2, "run", "slow.yaml", "--gates", "warn", "--cpu-distance", "any", "--testbed", f.file)
	time.Sleep(300 * time.Millisecond) // into the third trial
	must.Succeed(t, cmd.Process.Kill())
	cmd.Wait()
	f.untouched(before)
	out, err := f.run("run", "--resume", "latest")
	if err != nil || f.samples() != 6 {
		t.Errorf("resume: %d samples, want 6: %v\n%s", f.samples(), err, out)
	}
	f.untouched(before)
}

// hostService returns the process of the lab's service on a host.
func (f *fleet) hostService(i int) int {
	f.t.Helper()
	for _, pid := range f.site.Processes(i) {
		argv, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if regexp.MustCompile(`windtunnel-[0-9a-f]{16}\x00host\x00`).Match(argv) {
			return pid
		}
	}
	f.t.Fatalf("no service runs on host %d", i)
	return 0
}

// The services of the hosts are killed with the run, so nothing returns the devices.
func TestLabCleanReturnsTheDevicesOfHostsWhoseServiceWasKilled(t *testing.T) {
	must.Long(t)
	f := newFleet(t, "dedicated: true")
	before := f.features()
	f.writeSuite("none.yaml", strings.Replace(slowSuite, "offload: tcp", "offload: none", 1))
	for _, next := range [][]string{{"lab", "clean"}, {"run", "none.yaml", "--gates", "warn", "--trials", "1"}} {
		cmd := f.untilTrials(1, "run", "none.yaml", "--gates", "warn", "--testbed", f.file)
		services := []int{f.hostService(0), f.hostService(1)}
		must.Succeed(t, cmd.Process.Signal(syscall.SIGSTOP)) // services that lose it would clean up
		for _, pid := range services {
			must.Succeed(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		cmd.Process.Kill()
		cmd.Wait()
		if left := leftovers(t); len(left) != 2 {
			t.Errorf("the killed run left %v: the test does not test", left)
		}
		if out, err := f.run(append(next, "--testbed", f.file)...); err != nil || !strings.Contains(out, "1 network namespace") {
			t.Errorf("%v: %v, want output about 1 network namespace\n%s", next, err, out)
		}
		f.untouched(before)
	}
}

// The published experiment runs unchanged between hosts, with its own systems. The variable
// WINDTUNNEL_PUBLISHED can have other flags, such as "--trials 6", which takes half an hour.
func TestThePublishedExperimentRunsBetweenHosts(t *testing.T) {
	must.Long(t)
	vrouter, err := testprogram.Build(programs, "vrouter")
	must.Succeed(t, err)
	f := newFleet(t, "dedicated: true", "SetEnv PATH="+filepath.Dir(vrouter)+":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	before := f.features()
	flags := cmp.Or(os.Getenv("WINDTUNNEL_PUBLISHED"), "--short --trials 1 --duration 300ms --gates warn")
	out, err := f.run(append([]string{"run", "contrail-windows", "--testbed", f.file, "--out", "report"}, strings.Fields(flags)...)...)
	if err != nil {
		t.Fatalf("run: %v\n%s", err, out)
	}
	t.Log(out)
	page := f.read("report/samples.csv")
	for _, id := range []string{"raw/stream", "bridge/stream", "bridge-colocated/stream", "vrouter/stream", "vrouter/no-seg", "bridge/stream-4-containers"} {
		if !strings.Contains(page, id+",") {
			t.Errorf("the report has no figures of %s", id)
		}
	}
	if n := f.samples(); n < 6 {
		t.Errorf("%d trials succeeded, want 6 or more:\n%s", n, out)
	}
	if !strings.Contains(out, "2-cpus") || !strings.Contains(out, "needs") {
		t.Errorf("the run does not say why scenarios on 2 CPUs are skipped:\n%s", out)
	}
	f.untouched(before)
}

const ratioSuite = `suite: ratios
trials: 6
timing: {warmup: 200ms, duration: 600ms, cooldown: 50ms}
fabrics:
  veth: {kind: veth, mtu: 1500, offload: tcp}
workloads:
  stream: {kind: tcp_stream, buffer: 128k}
scenarios:
  - system: [raw, bridge, vxlan]
    workload: stream
comparisons:
  - {baseline: raw, subjects: bridge}
  - {baseline: bridge, subjects: vxlan}
`

// ratios returns the ratios of a run's report, by subject and metric.
func (f *fleet) ratios(args ...string) map[string]quantity.Interval {
	f.t.Helper()
	if out, err := f.run(append([]string{"run", "ratios.yaml", "--gates", "warn", "--out", "report"}, args...)...); err != nil {
		f.t.Fatalf("run: %v\n%s", err, out)
	}
	var r model.Report
	must.Succeed(f.t, json.Unmarshal([]byte(f.read("report/report.json")), &r))
	all := map[string]quantity.Interval{}
	for _, c := range r.Comparisons {
		all[c.Subject+" "+string(c.Metric)] = c.Ratio
	}
	return all
}

// The same systems on the same CPUs have the same costs, whichever executor joins the nodes
// by a veth pair.
func TestHostsGiveTheRatiosOfNodesOnThisMachine(t *testing.T) {
	if os.Getenv("WINDTUNNEL_TIMING_TESTS") == "" {
		t.Skip("ratios depend on the machine; set WINDTUNNEL_TIMING_TESTS=1 on a quiet one")
	}
	f := newFleet(t, "dedicated: true")
	f.site.EmulateNICs()
	f.writeSuite("ratios.yaml", ratioSuite)
	here := f.ratios("--cpu-distance", "any")
	// The hosts' NICs have the offloads already, and a macvlan's cannot be set.
	f.writeSuite("ratios.yaml", strings.Replace(ratioSuite, ", offload: tcp", "", 1))
	there := f.ratios("--testbed", f.file)
	const hop = 1.03 // only the hosts have a macvlan: VXLAN's receiver has 0 to 5 % more cost for it
	for _, key := range sortedKeys(here) {
		a, b := here[key], there[key]
		t.Logf("%s: %.3f [%.3f, %.3f] here, %.3f [%.3f, %.3f] between hosts", key, a.Median, a.Low, a.High, b.Median, b.Low, b.High)
		if a.Low > hop*b.High || b.Low > hop*a.High {
			t.Errorf("%s: the intervals, widened by the macvlan's cost, have nothing in common", key)
		}
	}
	if len(here) == 0 || len(there) != len(here) {
		t.Errorf("%d ratios here and %d between hosts", len(here), len(there))
	}
}
