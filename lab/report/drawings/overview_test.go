package drawings

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

func TestTheFirstScreenHasARowForEachSystem(t *testing.T) {
	r := reporttest.Quick()
	judge(r)
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; c.Subject == "vxlan/stream" && c.Metric == sample.ReceiverCPUPerByte {
			c.Verdict, c.Distinct = model.TooNoisy, false
		}
	}
	o := (&builder{r: r, paints: paints(r)}).overview()
	want := []overviewColumn{{"throughput", "Gbit/s, stream"}, {"sender CPU", "ns/byte"}, {"receiver CPU", "ns/byte"}, {"latency p50", "µs, rr"}}
	must.Equal(t, want, o.Columns)
	type cells = []overviewCell
	rows := map[string]cells{
		"raw baseline":                 {{"11.0", 79, "", ""}, {"0.510", 68, "", ""}, {"0.458", 85, "", ""}, {"30.8", 72, "", ""}},
		"bridge against raw":           {{"10.7", 77, "−3.6 %", "worse"}, {"0.563", 75, "+10.4 % ?", "none"}, {"0.422", 78, "−8.0 %", "better"}, {"36.1", 85, "~ no difference", "none"}},
		"bridge-colocated against raw": {{"13.9", 100, "+26.0 %", "better"}, {"0.527", 70, "", ""}, {}, {"23.8", 56, "−22.4 %", "better"}},
		"vxlan against raw":            {{"8.63", 62, "−21.6 %", "worse"}, {"0.749", 100, "+47.3 %", "worse"}, {"0.538", 100, "! too noisy", "none"}, {"42.5", 100, "+39.2 % …", "none"}},
		"macvlan skipped":              {{}, {}, {}, {}},
	}
	for _, row := range o.Rows {
		name := row.Name + " " + row.Against
		if diff := cmp.Diff(rows[name], row.Cells); diff != "" {
			t.Errorf("the row %s differs: %s", name, diff)
		}
		delete(rows, name)
	}
	if len(rows) > 0 {
		t.Errorf("these rows are missing: %v", rows)
	}
}
