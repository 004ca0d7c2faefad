package k8s

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testcluster"
)

// conformanceTable has the result of each of upstream's cases. The test replaces the rows of the
// cases that it runs.
const conformanceTable = "../../docs/conformance.md"

// conformanceReport has the output of each case of the last run.
const conformanceReport = "../../out/conformance.json"

// caseReport is the part of ginkgo's report on a case that the table needs.
type caseReport struct {
	ContainerHierarchyTexts    []string
	LeafNodeType, LeafNodeText string
	State                      string
	NumAttempts                int // 0: the case did not run
	Failure                    struct{ Message string }
}

// name is the name of the case without its labels.
func (c caseReport) name() string {
	name := strings.Join(append(c.ContainerHierarchyTexts, c.LeafNodeText), " ")
	return strings.Join(strings.Fields(regexp.MustCompile(`\[[^]]*\]`).ReplaceAllString(name, "")), " ")
}

// Upstream's cases for policies and services, on a cluster whose network vrouter is.
func TestConformance(t *testing.T) {
	focus := os.Getenv("WINDTUNNEL_CONFORMANCE")
	if focus == "" {
		t.Skip("runs upstream's cases for hours; run it with: make conformance")
	}
	noProxy := os.Getenv("WINDTUNNEL_NO_KUBE_PROXY") != ""
	k := install(t, testcluster.Options{Subnets: true, E2E: true, DNS: true, NoKubeProxy: noProxy})
	k.Step("one apply makes the nodes ready", k.testApply)
	k.routeToPods()
	k.StartDNS()
	_ = os.Remove(conformanceReport)
	report := must.Get(filepath.Abs(conformanceReport))(t)
	log := must.Get(os.Create(strings.TrimSuffix(report, ".json") + ".log"))(t)
	defer log.Close()
	deadline, _ := t.Deadline()
	limit := time.Until(deadline.Add(-2 * time.Minute)).Round(time.Second).String()
	cmd := k.Command("ginkgo", "--procs=4", "--no-color", "-v", "--timeout", limit, "--focus", focus, "--skip", `\[Disruptive\]`, "--output-dir", filepath.Dir(report), "--json-report", filepath.Base(report),
		filepath.Join(k.Bin, "e2e.test"), "--", "--kubeconfig", k.Path("kubeconfig"), "--num-nodes", fmt.Sprint(len(k.Nodes)), "--dump-logs-on-failure=false")
	cmd.Stdout, cmd.Stderr = log, log
	failed := cmd.Run() // also if a case fails: the report has the cases
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v: %v; see %s", failed, err, log.Name())
	}
	var suites []struct{ SpecReports []caseReport }
	must.Succeed(t, json.Unmarshal(text, &suites))
	results := map[string]string{}
	for _, c := range suites[0].SpecReports {
		if c.LeafNodeType != "It" || c.NumAttempts == 0 {
			continue
		}
		if c.State != "interrupted" && c.State != "timedout" {
			results[c.name()] = c.State
		}
		if c.State != "passed" && c.State != "skipped" {
			t.Errorf("%s: %s: %s", c.name(), c.State, c.Failure.Message)
		}
	}
	if len(results) == 0 {
		t.Fatalf("no case ran; see %s", log.Name())
	}
	if noProxy {
		t.Logf("without kube-proxy: %v", results) // the table is of clusters with kube-proxy
		return
	}
	writeTable(t, results)
}

// writeTable writes results into the table.
func writeTable(t *testing.T, results map[string]string) {
	text := must.Get(os.ReadFile(conformanceTable))(t)
	rule := "| case | result |\n| --- | --- |\n"
	head, rows, found := strings.Cut(string(text), rule)
	if !found {
		t.Fatalf("%s has no table", conformanceTable)
	}
	all := map[string]string{}
	for row := range strings.Lines(rows) {
		if cells := strings.Split(strings.TrimSpace(row), " | "); len(cells) == 2 {
			all[strings.TrimPrefix(cells[0], "| ")] = strings.TrimSuffix(cells[1], " |")
		}
	}
	maps.Copy(all, results)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rule += fmt.Sprintf("| %s | %s |\n", name, all[name])
	}
	must.Succeed(t, os.WriteFile(conformanceTable, []byte(head+rule), 0o644))
}
