package suite

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"windtunnel/internal/must"
	"windtunnel/lab/units"
)

func schemaOf(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatalf("the schema is not JSON: %v", err)
	}
	return s
}

// keysOf lists the keys that a table's parser knows.
func keysOf[T any](t mapping[T]) (keys []string) {
	for _, f := range t.fields {
		keys = append(keys, f.key)
		if f.alias != "" {
			keys = append(keys, f.alias)
		}
	}
	slices.Sort(keys)
	return keys
}

func TestTheSchemaHasExactlyTheKeysOfTheParser(t *testing.T) {
	root := schemaOf(t)
	if root["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
		t.Errorf("$schema is %v", root["$schema"])
	}
	dig := func(path ...string) map[string]any {
		at := root
		for _, p := range path {
			next, ok := at[p].(map[string]any)
			if !ok {
				t.Fatalf("the schema has no %s in %s", p, strings.Join(path, "."))
			}
			at = next
		}
		return at
	}
	for _, c := range []struct {
		keys []string
		in   map[string]any
	}{
		{keysOf(suiteKeys), root},
		{keysOf(timingKeys), dig("properties", "timing")},
		{keysOf(fabricKeys), dig("properties", "fabrics", "additionalProperties")},
		{keysOf(workloadKeys), dig("properties", "workloads", "additionalProperties")},
		{keysOf(timingKeys), dig("properties", "workloads", "additionalProperties", "properties", "timing")},
		{keysOf(scenarioKeys), dig("properties", "scenarios", "items")},
		{keysOf(timingKeys), dig("properties", "scenarios", "items", "properties", "timing")},
		{keysOf(comparisonKeys), dig("properties", "comparisons", "items")},
		{keysOf(ladderKeys), dig("properties", "ladders", "items")},
		{keysOf(hypothesisKeys), dig("properties", "hypotheses", "items")},
		{keysOf(publishedKeys), dig("properties", "published", "items")},
		{keysOf(causeKeys), dig("properties", "causes", "items")},
		{keysOf(publishedTableKeys), dig("properties", "tables", "additionalProperties")},
		{keysOf(shortKeys), dig("properties", "short")},
	} {
		properties := c.in["properties"].(map[string]any)
		var got []string
		for k, v := range properties {
			got = append(got, k)
			if d, _ := v.(map[string]any)["description"].(string); d == "" {
				t.Errorf("%s has no description", k)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.keys) || c.in["additionalProperties"] != false {
			t.Errorf("the schema has %v (more allowed: %v), the parser %v", got, c.in["additionalProperties"], c.keys)
		}
	}
}

func TestTheSchemaAcceptsEverySuiteThatTheParserAccepts(t *testing.T) {
	files, err := filepath.Glob("../../suites/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("published suites: %v, %v", files, err)
	}
	texts := map[string]string{"small": small, "every kind of ratio": with(`precision: 0.5 %
max_trials: 12
max_time: 5m
ladders: [{steps: [raw, bridge], names: [a, b]}]
hypotheses:
  - {claim: a, baseline: raw, subject: bridge, ratio: 2 ± 10 %}
  - {claim: b, baseline: raw, subject: bridge, ratio: 2 +- 10%}
  - {claim: c, baseline: raw, subject: bridge, ratio: 1 +/- 0.05}
  - {claim: d, baseline: raw, subject: bridge, ratio: ">= 0.95"}
  - {claim: e, baseline: raw, subject: bridge, ratio: ≤ 1.1}
  - {claim: f, subject: raw/stream, value: ">= 9 Gbps"}
  - {claim: g, baseline: raw, subject: bridge, metric: sender_cpu_cores, difference: -15 ± 5 %}
  - {claim: h, subject: raw, metric: receiver_cpu_cores, over: sender_cpu_cores, ratio: 3 ± 1}`)}
	for _, f := range files {
		data, err := os.ReadFile(f)
		must.Succeed(t, err)
		texts[f] = string(data)
	}
	for i, example := range documented(t, "yaml") {
		texts[fmt.Sprintf("example %d of docs/suites.md", i+1)] = example
	}
	root := schemaOf(t)
	for name, text := range texts {
		mustParse(t, text)
		if problem := validate(root, decode(t, text), "$"); problem != "" {
			t.Errorf("the schema refuses %s: %s", name, problem)
		}
	}
}

func TestTheSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	root := schemaOf(t)
	for _, text := range []string{
		with("titel: x"),
		with("trials: 0"),
		with("hypotheses: [{claim: c, subject: raw/stream, value: '>= -9 Gbps'}]"),
		with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 1 ± 0.1, value: '>= 9 Gbps'}]"),
		with("timing: {duration: 15}"),
		with("timing: {duration: 10Gbit}"),
		with("nodes: many"),
		with("fabrics: {f: {mtu: 67}}"),
		with("fabrics: {f: {offload: tso}}"),
		with("fabrics: {'a b': {}}"),
		with("comparisons: [{baseline: raw}]"),
		with("precision: 2"),
		with("precision: 2%\nmax_time: 5"),
		with("ladders: [{steps: [raw]}]"),
		with("ladders: [{title: x}]"),
		with("hypotheses: [{claim: c, baseline: raw, subject: bridge}]"),
		with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: 10 %}]"),
		with("hypotheses: [{claim: c, baseline: raw, subject: bridge, ratio: '> 1'}]"),
		with("published: [{scenario: raw/rr, metric: x, value: 1, source: y}]"),
		with("tables: {t: {title: x}}"),
		with("short: {scenarios: raw}"),
		with("short: {trials: 6, runs: 3}"),
		swap("kind: tcp_rr", "kind: tcp_crr, direction: both"),
		swap("kind: tcp_rr", "kind: tcp_stream, load: 2"),
		swap("kind: tcp_rr", "kind: udp_stream, sendfile: true"),
		swap("kind: tcp_rr", "streams: 1"),
		swap("kind: tcp_rr", "kind: tcp_stream, buffer: 128kB"),
		swap("kind: tcp_rr", "kind: tcp_stream, rate: 4GB/s"),
		swap("kind: tcp_rr", "kind: tcp_stream, no_delay: yes please"),
		swap("kind: tcp_rr", "kind: tcp_rr, ip_version: 5"),
		swap("system: [raw, bridge]", "pairs: 1"),
		"suite: x\n",
	} {
		if _, err := Parse("x.yaml", []byte(text)); err == nil {
			t.Errorf("the parser accepts\n%s", text)
		}
		if validate(root, decode(t, text), "$") == "" {
			t.Errorf("the schema accepts\n%s", text)
		}
	}
}

// The patterns of the schema are written by hand beside the parsers of package
// units: they have to agree on every text of their alphabet.
func TestPatternsAgreeWithTheParsersOfUnits(t *testing.T) {
	numbers := []string{"", "0", "1", "15", "1.5", ".5", "5.", "1..5", "-1", "1e3", " 2"}
	unitTexts := []string{
		"", "k", "K", "M", "m", "G", "T", "P", "B", "b", "kB", "KB", "KiB", "kib", "MiB", "TiB", "iB", "bit", "bits", "Bit", "bit/s", "bits/s",
		"kbit", "Kbit/s", "Mbit", "mbit", "Gbit", "Gbits", "Gbps", "Mbps", "Mb/s", "MB/s", "GBps", "Gibit", "bps", "B/s",
		"%", " %", "%%", " % ", "percent", "‰",
		"s", "ms", "us", "µs", "ns", "m", "h", "d", "sec", "m30s", "h1m1s", "s s", " s", " k", " Gbit/s",
	}
	fractions := regexp.MustCompile(fraction(0, 1).pattern)
	sizes, rates, spans := regexp.MustCompile(size(0, 1).pattern), regexp.MustCompile(rate(1).pattern), regexp.MustCompile(span(0, time.Hour).pattern)
	for _, n := range numbers {
		for _, u := range unitTexts {
			text := n + u
			whole := n != "1.5" || strings.Trim(u, " bitBs/p") != "" // a pattern cannot see that half a byte results
			if _, err := units.ParseBytes(text); whole && sizes.MatchString(text) != (err == nil) {
				t.Errorf("size %q: the pattern says %v, the parser %v", text, sizes.MatchString(text), err)
			}
			if _, err := units.ParseRate(text); whole && rates.MatchString(text) != (err == nil) {
				t.Errorf("rate %q: the pattern says %v, the parser %v", text, rates.MatchString(text), err)
			}
			if _, err := units.ParsePercent(text); fractions.MatchString(text) != (err == nil) {
				t.Errorf("percentage %q: the pattern says %v, the parser %v", text, fractions.MatchString(text), err)
			}
			// One blank before the unit is for reading back what was printed; the schema leaves it out.
			if _, err := units.ParseDuration(text); !strings.Contains(strings.TrimSpace(text), " ") && spans.MatchString(text) != (err == nil) {
				t.Errorf("duration %q: the pattern says %v, the parser %v", text, spans.MatchString(text), err)
			}
		}
	}
}

func decode(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	data, err := json.Marshal(v)
	must.Succeed(t, err)
	must.Succeed(t, json.Unmarshal(data, &v))
	return v
}

// validate holds v against the keywords of JSON Schema that the schema uses,
// and says what does not fit, or "". A keyword that it does not know is an
// error, so that none goes unchecked.
func validate(s map[string]any, v any, at string) string {
	for keyword, arg := range s {
		problem := ""
		switch keyword {
		case "$schema", "title", "description", "default", "then":
		case "type":
			if !isType(arg, v) {
				problem = fmt.Sprintf("%v is not of type %v", v, arg)
			}
		case "enum":
			if !slices.Contains(arg.([]any), v) {
				problem = fmt.Sprintf("%v is not in %v", v, arg)
			}
		case "const":
			if v != arg {
				problem = fmt.Sprintf("%v is not %v", v, arg)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				problem = fmt.Sprintf("%q does not match %s", text, arg)
			}
		case "minLength", "maxLength":
			if text, ok := v.(string); ok {
				problem = bound(keyword, float64(utf8.RuneCountInString(text)), arg.(float64))
			}
		case "minimum", "maximum":
			if n, ok := v.(float64); ok {
				problem = bound(keyword, n, arg.(float64))
			}
		case "minItems", "maxItems", "items":
			if list, ok := v.([]any); ok {
				problem = validateList(keyword, arg, list, at)
			}
		case "required", "properties", "additionalProperties", "propertyNames", "minProperties", "maxProperties":
			if m, ok := v.(map[string]any); ok {
				problem = validateMap(s, keyword, arg, m, at)
			}
		case "anyOf", "oneOf":
			var all []string
			fit := 0
			for _, alternative := range arg.([]any) {
				all = append(all, validate(alternative.(map[string]any), v, at))
				if all[len(all)-1] == "" {
					fit++
				}
			}
			if fit == 0 || fit > 1 && keyword == "oneOf" {
				problem = fmt.Sprintf("%d of the alternatives fit: %s", fit, strings.Join(all, " and "))
			}
		case "allOf":
			for _, part := range arg.([]any) {
				if p := validate(part.(map[string]any), v, at); p != "" {
					problem = p
				}
			}
		case "if":
			if validate(arg.(map[string]any), v, at) == "" {
				problem = validate(s["then"].(map[string]any), v, at)
			}
		default:
			problem = "unknown keyword " + keyword
		}
		if problem != "" {
			return at + ": " + problem
		}
	}
	return ""
}

func isType(arg, v any) bool {
	if list, ok := arg.([]any); ok {
		return slices.ContainsFunc(list, func(a any) bool { return isType(a, v) })
	}
	switch x := v.(type) {
	case string:
		return arg == "string"
	case bool:
		return arg == "boolean"
	case float64:
		return arg == "number" || arg == "integer" && x == float64(int64(x))
	case []any:
		return arg == "array"
	case map[string]any:
		return arg == "object"
	}
	return false
}

func bound(keyword string, n, limit float64) string {
	if strings.HasPrefix(keyword, "min") && n < limit || strings.HasPrefix(keyword, "max") && n > limit {
		return fmt.Sprintf("%v breaks %s %v", n, keyword, limit)
	}
	return ""
}

func validateList(keyword string, arg any, list []any, at string) string {
	if keyword != "items" {
		return bound(keyword, float64(len(list)), arg.(float64))
	}
	for i, v := range list {
		if p := validate(arg.(map[string]any), v, fmt.Sprintf("%s[%d]", at, i)); p != "" {
			return p
		}
	}
	return ""
}

func validateMap(s map[string]any, keyword string, arg any, m map[string]any, at string) string {
	properties, _ := s["properties"].(map[string]any)
	switch keyword {
	case "required":
		for _, k := range arg.([]any) {
			if _, ok := m[k.(string)]; !ok {
				return fmt.Sprintf("%v is missing", k)
			}
		}
	case "minProperties", "maxProperties":
		return bound(keyword, float64(len(m)), arg.(float64))
	case "propertyNames":
		for k := range m {
			if p := validate(arg.(map[string]any), k, at); p != "" {
				return p
			}
		}
	case "properties", "additionalProperties":
		for k, v := range m {
			rule, known := properties[k]
			if keyword == "additionalProperties" {
				if known {
					continue
				}
				rule = arg
			} else if !known {
				continue
			}
			if rule == false {
				return k + " is not allowed"
			}
			if p := validate(rule.(map[string]any), v, at+"."+k); p != "" {
				return p
			}
		}
	}
	return ""
}
