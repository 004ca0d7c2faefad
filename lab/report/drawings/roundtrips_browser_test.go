package drawings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/sample"
)

// The chart of round trips shows the trial that the reader chose, and is empty for a
// trial of a stream.
func TestRoundTripsOverTimeInABrowser(t *testing.T) {
	must.Long(t)
	t.Parallel()
	r := reporttest.Quick()
	row := scenario(r, "bridge/rr")
	for i := range row.Samples {
		s := &row.Samples[i]
		for k, ns := range []float64{25_000, 30_000, 0, 40_000_000, 26_000} {
			s.Series = append(s.Series, sample.Point{At: float64(k+1) / 10, Seconds: 0.1, Latency: ns, LatencyMax: 2 * ns})
		}
	}
	p := browse(t, r, 1280)
	must.Equal(t, 0, browsertest.Eval[int](t, p, `document.getElementById('c-series-latency').clientHeight`))
	points := browsertest.Eval[[]int](t, p, `(() => {
		const s = document.getElementById('series-scenario');
		s.value = [...s.options].findIndex(o => o.text === 'bridge/rr');
		s.dispatchEvent(new Event('change'));
		return echarts.getInstanceByDom(document.getElementById('c-series-latency')).getOption().series.map(x => x.data.filter(d => d[1] !== null).length);
	})()`)
	if want := []int{4, 4}; !cmp.Equal(points, want) {
		t.Errorf("the lines have %v points with a round trip, want %v", points, want)
	}
	text := browsertest.Eval[string](t, p, `document.getElementById('c-series-latency').textContent`)
	for _, want := range []string{"mean round trip", "longest round trip", "µs"} {
		if !strings.Contains(text, want) {
			t.Errorf("the chart reads %q, without %q", text, want)
		}
	}
	if problems, requests := p.Seen(); len(problems) > 0 || len(requests) > 0 {
		t.Errorf("the page said %q and asked for %q", problems, requests)
	}
}
