package suite

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// reference is the text of docs/suites.md.
func reference(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../docs/suites.md")
	must.Succeed(t, err)
	return string(data)
}

// documented returns the reference's code blocks in a language.
func documented(t *testing.T, language string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(reference(t), -1) {
		out = append(out, m[1])
	}
	return out
}

func TestEveryExampleOfTheReferenceParsesAndExpands(t *testing.T) {
	examples := documented(t, "yaml")
	if len(examples) != 3 {
		t.Fatalf("the reference has %d examples, want 3", len(examples))
	}
	smallest := mustExpand(t, examples[0], ExpandOptions{})
	if ids(smallest) != "bridge/stream" || smallest.Trials != 6 || smallest.Scenarios[0].Workload.Buffer != 128<<10 {
		t.Errorf("the smallest suite is %s", Render(smallest))
	}
	larger := mustExpand(t, examples[1], ExpandOptions{})
	if got, want := ids(larger), "bridge-standard/stream bridge-jumbo/stream bridge-standard/rr bridge-jumbo/rr "+
		"vxlan-standard/stream vxlan-jumbo/stream vxlan-standard/rr vxlan-jumbo/rr"; got != want {
		t.Errorf("scenarios %q, want %q", got, want)
	}
	if len(larger.Comparisons) != 4 || len(larger.Published) != 1 || larger.Published[0].Value != 7375159000 {
		t.Errorf("comparisons %q, published %+v", pairs(larger), larger.Published)
	}
	third := mustExpand(t, examples[2], ExpandOptions{})
	if third.Trials != 10 || third.Stop != (Stop{0.02, 40, 20 * time.Minute}) || len(third.Ladders) != 2 || len(third.Hypotheses) != 1 || third.Hypotheses[0].Low != 0.9 {
		t.Errorf("the third suite is %+v", third)
	}
	filtered := mustExpand(t, examples[1], ExpandOptions{Scenarios: []string{"bridge-*/rr"}})
	if got := ids(filtered); got != "bridge-standard/rr bridge-jumbo/rr" {
		t.Errorf("the documented pattern keeps %q", got)
	}
}

func TestTheReferencePrintsTheBandsThatTheParserReads(t *testing.T) {
	_, text, _ := strings.Cut(reference(t), "| notation of a ratio |")
	text, _, _ = strings.Cut(text, "\n\n")
	written := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(text, -1)
	if len(written) != 8 {
		t.Fatalf("the reference has %d ways to write a ratio, want 8", len(written))
	}
	for _, w := range written {
		if _, problem := parseBand(w[1]); problem != "" {
			t.Errorf("the band %q has a problem: %s", w[1], problem)
		}
	}
}

// rowsOf returns the reference's table rows whose first cell names a key.
func rowsOf(t *testing.T) map[string][]string {
	rows := map[string][]string{}
	section := ""
	for _, line := range strings.Split(reference(t), "\n") {
		if strings.HasPrefix(line, "#") {
			section = strings.ToLower(strings.TrimLeft(line, "# "))
		}
		if strings.HasPrefix(line, "| `") {
			rows[section] = append(rows[section], line)
		}
	}
	return rows
}

func TestTheReferenceHasExactlyTheKeysAndDefaultsOfTheParser(t *testing.T) {
	rows := rowsOf(t)
	checkRows(t, rows["the suite"], suiteKeys)
	checkRows(t, rows["timing"], timingKeys)
	checkRows(t, rows["fabric"], fabricKeys)
	checkRows(t, rows["endpoint"], endpointKeys)
	checkRows(t, slices.DeleteFunc(slices.Clone(rows["workload"]), func(row string) bool {
		return slices.ContainsFunc(kinds, func(k Kind) bool { return strings.HasPrefix(row, "| `"+string(k)+"`") })
	}), workloadKeys)
	checkRows(t, rows["scenario"], scenarioKeys)
	checkRows(t, rows["comparisons"], comparisonKeys)
	checkRows(t, rows["ladders"], ladderKeys)
	checkRows(t, rows["hypotheses"], hypothesisKeys)
	checkRows(t, rows["published figures"], publishedKeys)
	checkRows(t, rows["causes"], causeKeys)
	checkRows(t, rows["tables"], publishedTableKeys)
	checkRows(t, rows["short form"], shortKeys)
	for _, k := range kinds {
		if !strings.Contains(reference(t), "| `"+string(k)+"` |") {
			t.Errorf("kind %s has no row", k)
		}
	}
}

func checkRows[T any](t *testing.T, rows []string, of mapping[T]) {
	t.Helper()
	documented := map[string]string{}
	for _, row := range rows {
		cells := strings.Split(row, "|")
		names := regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(cells[1], -1)
		for _, n := range names {
			documented[n[1]] = cells[3]
		}
	}
	var keys []string
	for k := range documented {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	if !slices.Equal(keys, keysOf(of)) {
		t.Errorf("%s: the reference has %v, the parser %v", of.what, keys, keysOf(of))
	}
	for _, f := range of.fields {
		cell := documented[f.key]
		if f.required != strings.Contains(cell, "needed") {
			t.Errorf("%s: required %v, but the reference says %q", f.key, f.required, cell)
		}
		if f.preset == nil {
			continue
		}
		preset, err := json.Marshal(f.preset)
		must.Succeed(t, err)
		if want := "`" + strings.Trim(string(preset), `"`) + "`"; !strings.Contains(cell, want) {
			t.Errorf("%s: the default is %s, the reference says %q", f.key, want, cell)
		}
	}
}

func TestTheErrorsInTheReferenceAreThoseOfTheParser(t *testing.T) {
	_, err := Parse("mine.yaml", []byte(`suite: mine



workloads:
  rr: {kind: tcp_rr}
  stream:
    kind: tcp_stream
    buffer: 128kB
scenarios:
  - system: bridge
    workload: strem
`))
	if err == nil {
		t.Fatal("the suite was accepted")
	}
	if blocks := documented(t, "text"); len(blocks) == 0 || strings.TrimSpace(blocks[0]) != err.Error() {
		t.Errorf("the parser prints\n%s", err)
	}
}

func TestEveryUnitOfPublishedFiguresIsInTheReference(t *testing.T) {
	text := reference(t)
	for unit, list := range scales {
		for _, s := range list {
			if s.unit != "" && s.unit != unit && !strings.Contains(text, "`"+s.unit+"`") {
				t.Errorf("%s (for %s) is not in the reference", s.unit, unit)
			}
		}
	}
}
