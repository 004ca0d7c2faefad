package suite

import (
	"math"
	"testing"

	"windtunnel/internal/must"
)

const tabled = small + `tables:
  t: {title: a table, source: the document, corner: type, note: all of it}
  u: {title: another, source: page 2}
published:
  - {table: t, row: A0, column: native, scenario: raw/stream, metric: throughput_bps, value: 590 KB/sec}
  - {table: t, row: A0, column: weave, scenario: bridge/stream, metric: throughput_bps, value: 12.5 MB/sec, note: odd}
  - {table: t, row: A0, column: change, scenario: bridge/stream, baseline: raw/stream, metric: throughput_bps, value: "-16%"}
  - {table: t, row: A0, column: latency, scenario: raw/rr, metric: latency_ns_mean, value: 94.2 us one-way}
  - {table: t, row: A0, column: price, value: 5 dollars, note: nothing here costs money}
  - {table: u, row: r, column: c, scenario: bridge/rr, metric: transactions_per_s, value: 11050 1/s}
  - {scenario: raw/rr, metric: transactions_per_s, value: 7 k/s, source: a text}
`

func TestCellsOfTablesKeepTheirPlaceTheirUnitAndTheirLastDigit(t *testing.T) {
	p := mustExpand(t, tabled, ExpandOptions{})
	wantTables := []PublishedTable{{Name: "t", Title: "a table", Source: "the document", Corner: "type", Note: "all of it"}, {Name: "u", Title: "another", Source: "page 2"}}
	must.Equal(t, wantTables, p.Tables)
	cell := func(column, scenario, metric, printed string) Published {
		return Published{Table: "t", Row: "A0", Column: column, Scenario: scenario, Metric: metric, Printed: printed, Source: "the document"}
	}
	native := cell("native", "raw/stream", "throughput_bps", "590 KB/sec")
	native.Value, native.Step, native.Unit, native.Factor = 4.72e6, 8e3, "KB/sec", 8e3
	weave := cell("weave", "bridge/stream", "throughput_bps", "12.5 MB/sec")
	weave.Value, weave.Step, weave.Unit, weave.Factor, weave.Note = 1e8, 8e5, "MB/sec", 8e6, "odd"
	change := cell("change", "bridge/stream", "throughput_bps", "-16%")
	change.Baseline, change.Value, change.Step = "raw/stream", 0.84, 0.01
	latency := cell("latency", "raw/rr", "latency_ns_mean", "94.2 us one-way")
	latency.Value, latency.Step, latency.Unit, latency.Factor = 188400, 200, "us one-way", 2000
	price := cell("price", "", "", "5 dollars")
	price.Note = "nothing here costs money"
	want := []Published{native, weave, change, latency, price,
		{Table: "u", Row: "r", Column: "c", Scenario: "bridge/rr", Metric: "transactions_per_s", Value: 11050, Printed: "11050 1/s", Step: 1, Unit: "1/s", Factor: 1, Source: "page 2"},
		{Scenario: "raw/rr", Metric: "transactions_per_s", Value: 7000, Printed: "7 k/s", Step: 1000, Unit: "k/s", Factor: 1000, Source: "a text"}}
	must.Equal(t, want, p.Published)
}

func TestATableStaysCompleteWhileAnyOfItsScenariosRuns(t *testing.T) {
	p := mustExpand(t, tabled, ExpandOptions{Scenarios: []string{"raw/stream"}})
	if len(p.Tables) != 1 || p.Tables[0].Name != "t" || len(p.Published) != 5 {
		t.Errorf("tables %+v with %d figures, want the 5 of t", p.Tables, len(p.Published))
	}
	p = mustExpand(t, tabled, ExpandOptions{Scenarios: []string{"bridge/rr"}})
	if len(p.Tables) != 1 || p.Tables[0].Name != "u" || len(p.Published) != 1 {
		t.Errorf("tables %+v with %d figures, want the one of u", p.Tables, len(p.Published))
	}
}

func TestChangesAreReadAsRatios(t *testing.T) {
	for text, want := range map[string]float64{"-27 %": 0.73, "- 79%": 0.21, "+3.5 %": 1.035, "\u221210 %": 0.9, "-100%": 0} {
		p := Published{Printed: text}
		if problem, _ := p.readChange(); problem != "" || math.Abs(p.Value-want) > 1e-15 {
			t.Errorf("%q is read as %v (%s), want %v", text, p.Value, problem, want)
		}
	}
}
