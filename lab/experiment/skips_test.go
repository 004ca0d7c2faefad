package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/probe"
	"windtunnel/lab/program"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
	"windtunnel/lab/testbed/testbedtest"
)

// machine is a machine with so many CPUs that lacks some features.
func machine(cpus int, missing ...string) *probe.Facts {
	f := &probe.Facts{}
	for c := range cpus {
		f.Allowed = append(f.Allowed, c)
	}
	for _, name := range []string{"netns", "veth", "bridge", "vxlan", "macvlan", "tbf", "packet", "cpu-share", "clsact", "bpf"} {
		found := probe.Finding{Feature: probe.Feature{Name: name, Remedy: "remedy for " + name}, Works: true}
		for _, m := range missing {
			if m == name {
				found.Works, found.Reason = false, "no "+name+" in this kernel"
			}
		}
		f.Features = append(f.Features, found)
	}
	return f
}

// skipsOn returns the skips of a plan in testbeds of network namespaces.
func skipsOn(plan *suite.Plan, facts *probe.Facts) map[string]string {
	return Skips(plan, &netns.Executor{CPUs: facts.UsableCPUs()}, facts)
}

func planOf(scenarios ...suite.Scenario) *suite.Plan {
	return &suite.Plan{Suite: "test", Nodes: 2, Trials: 1, Scenarios: scenarios}
}

func TestAMissingKernelFeatureSkipsScenariosWithReasonAndRemedy(t *testing.T) {
	rated := scenario("bridge", func(sc *suite.Scenario) { sc.ID, sc.Fabric.Rate = "rated", 1e9 })
	plan := planOf(scenario("raw", nil), scenario("bridge", nil), scenario("vxlan", nil), scenario("macvlan", nil), rated)
	for _, c := range []struct {
		missing string
		skipped []string
	}{
		{"", nil},
		{"vxlan", []string{"vxlan"}},
		{"macvlan", []string{"macvlan"}},
		{"bridge", []string{"bridge", "vxlan", "rated"}},
		{"tbf", []string{"rated"}},
		{"bpf", []string{"raw", "bridge", "vxlan", "macvlan", "rated"}},
	} {
		skips := skipsOn(plan, machine(2, c.missing))
		if len(skips) != len(c.skipped) {
			t.Errorf("without %q: %v are skipped, want %v", c.missing, skips, c.skipped)
		}
		for _, id := range c.skipped {
			if why := skips[id]; !strings.Contains(why, "no "+c.missing+" in this kernel") || !strings.Contains(why, "remedy for "+c.missing) {
				t.Errorf("without %q, %s: %q", c.missing, id, why)
			}
		}
	}
}

func TestOneCPUSkipsEverythingWithAReason(t *testing.T) {
	skips := skipsOn(planOf(scenario("raw", nil)), machine(1))
	if !strings.Contains(skips["raw"], "2 CPUs or more") {
		t.Errorf("skips = %v", skips)
	}
}

func TestMoreStreamsThanCPUsCanServeAreSkipped(t *testing.T) {
	for name, c := range map[string]struct {
		cpus int
		set  func(*suite.Scenario)
		want string
	}{
		"128 on one CPU":          {2, func(sc *suite.Scenario) { sc.Workload.Streams = 128 }, ""},
		"129 on one CPU":          {2, func(sc *suite.Scenario) { sc.Workload.Streams = 129 }, "129 streams (with more than 128 for each CPU"},
		"1024 on one CPU":         {2, func(sc *suite.Scenario) { sc.Workload.Streams = 1024 }, "needs 8 CPUs per node, this machine gives 1"},
		"1024 on many CPUs":       {32, func(sc *suite.Scenario) { sc.Workload.Streams = 1024 }, ""},
		"1024 on one CPU of many": {32, func(sc *suite.Scenario) { sc.Workload.Streams, sc.Fabric.CPUs = 1024, 1 }, "needs 8 CPUs per node"},
		"65 in both directions":   {2, func(sc *suite.Scenario) { sc.Workload.Streams, sc.Workload.Direction = 65, suite.Both }, "130 streams"},
		"65 of two pairs":         {2, func(sc *suite.Scenario) { sc.Workload.Streams, sc.Pairs = 65, 2 }, "130 streams"},
		"1024 connections that transact": {2, func(sc *suite.Scenario) {
			sc.Workload = suite.Workload{Kind: suite.TCPRR, Streams: 1024, Request: 1, Response: 1, IPVersion: 4}
		}, ""},
	} {
		why := skipsOn(planOf(scenario("bridge", c.set)), machine(c.cpus))["bridge"]
		if (why == "") != (c.want == "") || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, want %q", name, why, c.want)
		}
	}
}

func TestAnUnsuitableOrMissingToolIsSkippedWithTheRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	absent := scenario("raw", func(sc *suite.Scenario) { sc.ID, sc.Tool = "absent", "qperf" })
	cannot := scenario("raw", func(sc *suite.Scenario) {
		sc.ID, sc.Tool, sc.Workload.Kind, sc.Workload.Request, sc.Workload.Response = "cannot", "iperf3", suite.TCPRR, 1, 1
	})
	skips := skipsOn(planOf(absent, cannot), machine(2))
	if !strings.Contains(skips["absent"], "qperf is not installed") {
		t.Errorf("absent: %q", skips["absent"])
	}
	if skips["cannot"] == "" {
		t.Error("iperf3 is said to do request/response")
	}
}

func TestAllObstaclesAreNamedAtOnce(t *testing.T) {
	why := skipsOn(planOf(scenario("vxlan", nil)), machine(1, "vxlan", "bridge"))["vxlan"]
	for _, want := range []string{"no vxlan", "no bridge", "2 CPUs"} {
		if !strings.Contains(why, want) {
			t.Errorf("%q does not name %q", why, want)
		}
	}
}

func TestAnOldProgramIsSkippedWithTheRequiredVersion(t *testing.T) {
	old := program.Program{Name: filepath.Join(t.TempDir(), "peer"), Build: "peer", Version: []string{"", "--version"}, Least: "2.1"}
	old.Version[0] = old.Name
	for said, want := range map[string]string{
		"peer 2.0.9": `says "peer 2.0.9", and 2.1 or newer is needed; get it with: peer`,
		"peer 2.1":   "",
	} {
		must.Succeed(t, os.WriteFile(old.Name, []byte("#!/bin/sh\necho "+said+"\n"), 0o755))
		got := strings.Join(lacksPrograms([]program.Program{old}, machine(2)), "; ")
		if want == "" && got != "" || !strings.HasSuffix(got, want) {
			t.Errorf("a program that says %q: %q, want %q", said, got, want)
		}
	}
}

func TestScenariosThatTheExecutorCannotMakeAreSkipped(t *testing.T) {
	x := &testbedtest.Executor{CPUs: []int{0}, NoFabric: errors.New("machines are joined by their own network")}
	why := Skips(planOf(scenario("raw", nil)), x, machine(8))["raw"]
	if !strings.Contains(why, "1 CPU is usable and 2 nodes need one each") || !strings.Contains(why, "; machines are joined by their own network") {
		t.Errorf("the reason for the skip is %q, want too few CPUs and the executor's error", why)
	}
}
