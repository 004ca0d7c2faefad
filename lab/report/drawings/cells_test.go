package drawings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/suite"
)

// duplex is the sample run with settings of one system in one direction and in
// both: figures by id, Gbit/s and CPU; 0 was not measured.
func duplex(t testing.TB, cells map[string][3]float64, ids ...string) *model.Report {
	t.Helper()
	r := reporttest.Quick()
	like := *scenario(r, "bridge/stream")
	for _, id := range ids {
		s := like
		s.ID, s.Samples = id, nil
		if strings.HasSuffix(id, "/full") {
			s.Workload.Direction = suite.Both
		}
		c := cells[id]
		s.Throughput, s.SenderCPU, s.ReceiverCPU = interval(c[0]*1e9, 0.2e9), interval(c[1], 1), interval(c[2], 1)
		if c[0] == 0 {
			s.Throughput, s.SenderCPU, s.ReceiverCPU, s.Trials, s.Skipped = nil, nil, nil, 0, "needs 2 CPUs"
		}
		r.Scenarios = append(r.Scenarios, s)
	}
	return r
}

var (
	duplexCells = map[string][3]float64{
		"1500/half": {4.8, 90, 70}, "1500/full": {6.1, 99, 98}, "9000/half": {9.04, 55, 50}, "9000/full": {12.3, 97, 96},
	}
	duplexIDs = []string{"1500/half", "1500/full", "9000/half", "9000/full", "9000-spread/half", "9000-spread/full"}
)

func TestSettingsInBothDirectionsAreDrawnWithTheirCPU(t *testing.T) {
	r := duplex(t, duplexCells, append(duplexIDs, "paced/half")...)
	r.Scenarios[len(r.Scenarios)-1].Workload.Rate = 4e8 // a workload that limits itself shows no setting
	b := &builder{r: r, paints: map[string]document.Paint{}}
	list := b.cells()
	if len(list) != 1 || list[0].System != "bridge" || list[0].Left != 2 || len(list[0].Charts) != 2 {
		t.Fatalf("charts: %+v", list)
	}
	half, full := list[0].Charts[0], list[0].Charts[1]
	if half.Max != full.Max || half.Max != 15 || half.Unit != "Gbit/s" {
		t.Errorf("axes to %g and %g %s, want both to 15 Gbit/s", half.Max, full.Max, half.Unit)
	}
	// The sample run's own streams of the system are one direction too.
	got := map[string][]string{}
	for _, c := range list[0].Charts {
		for _, r := range c.Rows {
			got[c.ID] = append(got[c.ID], r.Label+" "+r.Bar.Text)
		}
	}
	want := map[string][]string{
		"cells-0-half": {"bridge 10.7", "bridge-colocated 13.9", "1500 4.80", "9000 9.04"},
		"cells-0-full": {"1500 6.10", "9000 12.3"},
	}
	must.Equal(t, want, got)
	row := full.Rows[1]
	if row.CPU[0].Median != 97 || row.CPU[1].Median != 96 || row.Bar.Low != 12.1e9 || row.Bar.High != 12.5e9 {
		t.Errorf("9000/full is %+v", row)
	}
	if !strings.Contains(full.Alt, "9000 12.3, CPU of the sender 97.0 %, CPU of the receiver 96.0 %") {
		t.Errorf("the chart says %q", full.Alt)
	}
}

func TestCellsNeedTwoSettingsInBothDirections(t *testing.T) {
	for name, ids := range map[string][]string{
		"none":                    nil,
		"one setting":             {"1500/half", "1500/full"},
		"one direction":           {"1500/half", "9000/half"},
		"directions of different": {"1500/half", "9000/full"},
		"one of two measured":     {"1500/half", "1500/full", "9000-spread/half", "9000-spread/full"},
	} {
		r := duplex(t, duplexCells, ids...)
		if list := (&builder{r: r, paints: map[string]document.Paint{}}).cells(); len(list) > 0 {
			t.Errorf("%s: %d charts", name, len(list))
		}
		if page := string(written(t, r)); strings.Contains(page, "Throughput and CPU of each setting") {
			t.Errorf("%s: the page has the section", name)
		}
	}
}

func TestCellsWithOneLabelAreDistinguishedByTheirIDs(t *testing.T) {
	r := duplex(t, map[string][3]float64{"1500/half": {1, 1, 1}, "1500/half-too": {2, 2, 2}, "1500/full": {3, 3, 3}, "9000/half": {4, 4, 4}, "9000/full": {5, 5, 5}},
		"1500/half", "1500/half-too", "1500/full", "9000/half", "9000/full")
	var labels []string
	for _, row := range (&builder{r: r, paints: map[string]document.Paint{}}).cells()[0].Charts[0].Rows {
		labels = append(labels, row.Label)
	}
	if want := []string{"1500/half", "1500/half-too", "9000"}; !cmp.Equal(labels[len(labels)-3:], want) {
		t.Errorf("labels %v, want at their end %v", labels, want)
	}
}

func TestCellsInABrowser(t *testing.T) {
	must.Long(t)
	t.Parallel()
	evil := attacks[0] + "/half"
	cells := map[string][3]float64{evil: {1, 2, 3}}
	for id, c := range duplexCells {
		cells[id] = c
	}
	r := duplex(t, cells, append([]string{evil}, duplexIDs...)...)
	p := browse(t, r, 1280)
	var data document.Charts
	must.Succeed(t, json.Unmarshal([]byte(block(t, written(t, r), "data")), &data))
	shown := drawn(t, p)
	for _, c := range data.Cells {
		marks := 0
		for _, row := range c.Rows {
			for _, cpu := range row.CPU {
				if cpu != nil {
					marks++
				}
			}
		}
		if want := []int{len(c.Rows), marks}; !cmp.Equal(shown["c-"+c.ID], want) {
			t.Errorf("%s draws %v bars and marks, want %v", c.ID, shown["c-"+c.ID], want)
		}
	}
	if len(data.Cells) != 2 {
		t.Fatalf("%d charts", len(data.Cells))
	}
	text := browsertest.Eval[string](t, p, `document.querySelector('#c-cells-0-full').textContent`)
	for _, want := range []string{"12.3", "6.10", "9000", "100 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart reads %q, without %q", text, want)
		}
	}
	// Bars lie on the axis below, marks on that above.
	axes := browsertest.Eval[[]int](t, p, `echarts.getInstanceByDom(document.getElementById('c-cells-0-full')).getOption().series.map(s => s.xAxisIndex || 0)`)
	if !cmp.Equal(axes, []int{0, 1}) {
		t.Errorf("the series are on axes %v, want 0 and 1", axes)
	}
	tip := browsertest.Eval[string](t, p, `(() => { const c = echarts.getInstanceByDom(document.getElementById('c-cells-0-full'));
		c.dispatchAction({ type: 'showTip', seriesIndex: 1, dataIndex: 3 });
		return document.querySelector('#c-cells-0-full').textContent; })()`)
	if !strings.Contains(tip, "9000/full, CPU of the receiver") || !strings.Contains(tip, "96.0 %") {
		t.Errorf("the tooltip reads %q", tip)
	}
	if browsertest.Eval[bool](t, p, `echarts.getInstanceByDom(document.getElementById('c-cells-0-half')).dispatchAction({ type: 'showTip', seriesIndex: 0, dataIndex: 2 }), 'hacked' in window`) {
		t.Error("a name ran as a script")
	}
	if w := browsertest.Eval[int](t, p, `document.documentElement.scrollWidth`); w > 1280 {
		t.Errorf("the page is %d pixels wide", w)
	}
	problems, requests := p.Seen()
	if len(problems) > 0 || len(requests) > 0 {
		t.Errorf("the page said %q and asked for %q", problems, requests)
	}
}
