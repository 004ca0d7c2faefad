package main

import (
	"maps"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// absentHost is a line of a hosts file for a host that does not answer.
const absentHost = "  - {name: x, address: 127.0.0.1, port: 1, user: root, key: key, data: 10.77.0.200}\n"

// writeHosts replaces the lines of the hosts file after "hosts:".
func (f *fleet) writeHosts(lines ...string) {
	f.t.Helper()
	text := must.Get(os.ReadFile(f.file))(f.t)
	head, _, _ := strings.Cut(string(text), "hosts:\n")
	must.Succeed(f.t, os.WriteFile(f.file, []byte(head+"hosts:\n"+strings.Join(lines, "")), 0o600))
}

// hostLines returns the lines of the hosts file after "hosts:".
func (f *fleet) hostLines() []string {
	f.t.Helper()
	text := must.Get(os.ReadFile(f.file))(f.t)
	_, hosts, _ := strings.Cut(string(text), "hosts:\n")
	return strings.SplitAfter(strings.TrimSuffix(hosts, "\n"), "\n")
}

func TestARunConnectsToTheHostsOfItsTestbedOnly(t *testing.T) {
	must.Long(t)
	f := newFleet(t, "dedicated: false")
	f.writeHosts(append(f.hostLines(), "\n"+absentHost)...)
	if out, err := f.run("run", "slow.yaml", "--dry-run", "--testbed", f.file); err != nil || strings.Contains(out, "skipped") {
		t.Errorf("run between the first two of three hosts: %v\n%s", err, out)
	}
	if out, err := f.run("matrix", "slow.yaml", "--dry-run", "--testbed", f.file); err == nil || !strings.Contains(out, "host x: connect to 127.0.0.1:1") {
		t.Errorf("a matrix of all hosts: %v\n%s", err, out)
	}
}

func TestAResumedRunContinuesOnItsHosts(t *testing.T) {
	must.Long(t)
	f := newFleet(t, "dedicated: false")
	f.interrupt(f.untilTrials(1, "run", "slow.yaml", "--trials", "3", "--gates", "warn", "--testbed", f.file))
	lines := f.hostLines()
	a, b := lines[0], lines[1]+"\n"
	for want, hosts := range map[string][]string{
		"the file does not have all hosts of the run: b": {a, absentHost},
		"host b: the hosts file has address":             {a, strings.Replace(b, "10.77.0.2", "10.77.0.9", 1)},
	} {
		f.writeHosts(hosts...)
		if out, err := f.run("run", "--resume", "latest"); err == nil || !strings.Contains(out, want) {
			t.Errorf("want %q, got %v\n%s", want, err, out)
		}
	}
	f.writeHosts(absentHost, b, a)
	// On a busy machine all attempts of a trial can be invalid, so one sample may be missing.
	if out, err := f.run("run", "--resume", "latest", "--out", "report"); err != nil || f.samples() < 2 {
		t.Fatalf("resume: %d samples, want 2 or 3: %v\n%s", f.samples(), err, out)
	}
	if page := f.read("report/report.md"); !strings.Contains(page, "between hosts (a data, b data)") {
		t.Error("the resumed run has other hosts, or another order")
	}
	if out, err := f.run("runs"); err != nil || !strings.Contains(out, " complete ") {
		t.Errorf("runs: %v\n%s", err, out)
	}
}

func TestAResumedMatrixContinuesWithoutALostHost(t *testing.T) {
	must.Long(t)
	f := newFleetOf(t, []string{"a", "b", "c"}, "dedicated: false")
	f.interrupt(f.untilTrials(1, "matrix", "slow.yaml", "--trials", "2", "--gates", "warn", "--testbed", f.file))
	lines := f.hostLines()
	f.writeHosts(lines[:2]...)
	const why = "skipped raw/stream a→c, raw/stream b→c, raw/stream c→a, raw/stream c→b: host c was not in the hosts file"
	if out, err := f.run("matrix", "--resume", "latest", "--out", "report"); err != nil || !strings.Contains(out, why) {
		t.Fatalf("resume: %v, want %q\n%s", err, why, out)
	}
	page := f.read("report/samples.csv")
	for _, pair := range []string{"a→b", "b→a"} {
		if n := strings.Count(page, "raw/stream "+pair+","); n < 2 {
			t.Errorf("%s has %d trials, want 2:\n%s", pair, n, page)
		}
	}
	if out, err := f.run("runs"); err != nil || !strings.Contains(out, " complete ") {
		t.Errorf("runs: %v\n%s", err, out)
	}
}

func TestThePairsOfLostHostsAreSkippedUntilTheHostsReturn(t *testing.T) {
	m := must.Get(suite.NewMatrix([]string{"a", "b", "c"}, "a:b,b:c,c:a", 1))(t)
	plan := &suite.Plan{Matrix: m, Scenarios: []suite.Scenario{{ID: "raw"}, {ID: "bridge"}, {ID: "vxlan"}}}
	before := map[string]string{"bridge": "no bridge", "vxlan b→c": "no VXLAN"}
	lost := skipLost(plan, before, []string{"c"})
	if want := (map[string]string{"bridge": "no bridge", "vxlan b→c": "no VXLAN", "raw b→c": whyLost("c"), "raw c→a": whyLost("c"), "vxlan c→a": whyLost("c")}); !maps.Equal(lost, want) {
		t.Errorf("without host c are skipped %v, want %v", lost, want)
	}
	must.Equal(t, before, skipLost(plan, lost, nil))
	must.Succeed(t, enough(plan, []string{"c"}))
	must.Fail(t, enough(plan, []string{"a", "c"}), "no pair of the run is left without these hosts: a, c")
}
