package suite

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

func TestCausesNameTheFiguresThatTheyExplain(t *testing.T) {
	s, err := Parse("x.yaml", []byte(with(`causes:
  - {subjects: [bridge], baseline: raw, metrics: [throughput_bps, sender_cpu_percent], cause: a}
  - {subject: bridge/rr, metric: transactions_per_s, verdict: by construction, cause: c}
  - {subject: bridge/stream, cause: b}`)))
	must.Succeed(t, err)
	p, err := s.Expand(ExpandOptions{})
	must.Succeed(t, err)
	metrics := []string{"throughput_bps", "sender_cpu_percent"}
	if diff := cmp.Diff([]Cause{
		{Subject: "bridge/stream", Baseline: "raw/stream", Metrics: metrics, Cause: "a"},
		{Subject: "bridge/rr", Baseline: "raw/rr", Metrics: metrics, Cause: "a"},
		{Subject: "bridge/rr", Metrics: []string{"transactions_per_s"}, Verdict: ByConstruction, Cause: "c"},
		{Subject: "bridge/stream", Cause: "b"},
	}, p.Causes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, c := range []struct{ subject, baseline, metric, want string }{
		{"bridge/stream", "raw/stream", "throughput_bps", "a"},
		{"bridge/stream", "raw/stream", "receiver_cpu_percent", "b"},
		{"bridge/stream", "", "throughput_bps", "b"},
		{"bridge/rr", "raw/stream", "throughput_bps", ""},
		{"raw/stream", "", "throughput_bps", ""},
	} {
		if got := p.CauseOf(c.subject, c.baseline, c.metric); got != c.want {
			t.Errorf("the cause of %+v is %q, want %q", c, got, c.want)
		}
	}
	if verdict, reason := p.RulingOf("bridge/rr", "raw/rr", "transactions_per_s"); verdict != ByConstruction || reason != "c" || p.CauseOf("bridge/rr", "raw/rr", "transactions_per_s") != "" {
		t.Errorf("the ruling is %q (%q), want %q (c), which is not a cause", verdict, reason, ByConstruction)
	}
	if verdict, reason := p.RulingOf("bridge/stream", "raw/stream", "throughput_bps"); verdict+Ruling(reason) != "" {
		t.Errorf("a figure that is judged has the ruling %q (%q)", verdict, reason)
	}
}

func TestCausesOfUnknownScenariosAndMetricsAreErrors(t *testing.T) {
	for text, want := range map[string]string{
		"{subject: brigde/stream, cause: a}":               `"brigde/stream"`,
		"{subject: bridge, baseline: raw/rr, cause: a}":    "not both scenarios or both groups",
		"{subject: bridge/rr, metric: speed, cause: a}":    `"speed" is not a metric`,
		"{subject: bridge/rr}":                             "a cause lacks cause",
		"{subject: bridge/rr, verdict: sure, cause: a}":    `"sure" is not known here`,
		"{subject: bridge/rr, cause: a, because: nothing}": `unknown key "because" in a cause`,
	} {
		s, err := Parse("x.yaml", []byte(with("causes:\n  - "+text)))
		if err == nil {
			_, err = s.Expand(ExpandOptions{})
		}
		must.Fail(t, err, want)
	}
}
