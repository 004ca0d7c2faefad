package drawings

import (
	"fmt"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/suite"
)

func TestCurvesShowEachSystemWithItsIntervals(t *testing.T) {
	t.Parallel()
	r := &model.Report{}
	for _, group := range []string{"bridge", "vxlan"} {
		for _, n := range []int{1, 4, 16} {
			rate := 1e9 * float64(n)
			r.Scenarios = append(r.Scenarios, model.Scenario{
				ID: fmt.Sprintf("%s/%d", group, n), System: group, Trials: 6,
				Workload:   suite.Workload{Kind: suite.TCPStream, Streams: n, Buffer: 1000},
				Throughput: &quantity.Interval{Median: rate, Low: rate / 2, High: 2 * rate},
			})
		}
	}
	c := chartsOf(t, written(t, r)).Curves
	must.Equal(t, 1, len(c))
	must.Equal(t, []string{"1", "4", "16"}, c[0].Values)
	must.Equal(t, 2, len(c[0].Lines))
	must.Equal(t, "Throughput in Gbit/s by connections: bridge 1 1.00, bridge 4 4.00, bridge 16 16.0, vxlan 1 1.00, vxlan 4 4.00, vxlan 16 16.0.", (&builder{r: r, paints: paints(r)}).curves()[0].Alt)

	p := browse(t, r, 1280)
	must.Equal(t, "bridge, 4\n4.00 Gbit/s", tipped(t, p, "c-curve-0", "bridge", 1))
	must.Equal(t, true, browsertest.Eval[bool](t, p, `echarts.getInstanceByDom(document.getElementById('c-curve-0')).getModel().getComponent('yAxis').axis.scale.getExtent()[1] >= 32`))
}
