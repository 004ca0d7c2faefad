package experiment

import (
	"strings"
	"testing"
	"time"

	"windtunnel/lab/meter"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
	"windtunnel/lab/tool"
)

// course is a series in steps of 100 ms from −1 s on, in which the meter's
// window begins at 0; rates of moments outside of bits are 0.
func course(first int, bits ...float64) []sample.Point {
	var series []sample.Point
	for i := -10; i <= 40; i++ {
		p := sample.Point{At: float64(i) / 10}
		if at := i - 1 - first; at >= 0 && at < len(bits) {
			p.Bits = bits[at]
		}
		series = append(series, p)
	}
	return series
}

func repeat(n int, bits float64) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = bits
	}
	return list
}

// What the fabric counted in the meter's window is held against what the tool
// says of its own, which may be another.
func TestThroughputIsComparedWithTheFabricsCounters(t *testing.T) {
	steady := course(-3, repeat(20, 4e9)...) // from −0.3 to 1.7 s
	// The rate falls by half 0.4 s into the meter's window.
	falls := course(-3, append(repeat(7, 4e9), repeat(13, 2e9)...)...)
	for name, c := range map[string]struct {
		series        []sample.Point
		window        float64
		from, to      float64 // of the tool's window
		said, counted float64
		agrees        bool
	}{
		"equal":                              {steady, 0.36, -0.02, 0.38, 4e9, 4e9, true},
		"8 % below":                          {steady, 0.36, -0.02, 0.38, 4e9, 3.68e9, true},
		"12 % below, steady":                 {steady, 0.36, -0.02, 0.38, 4e9, 3.52e9, false},
		"12 % above, steady":                 {steady, 0.36, -0.02, 0.38, 4e9, 4.48e9, false},
		"half":                               {steady, 0.36, -0.02, 0.38, 4e9, 2e9, false},
		"whole seconds, steady":              {steady, 0.76, 0.75, 1.6, 4e9, 4e9, true},
		"whole seconds, of the slower half":  {falls, 0.4, 0.75, 1.6, 2e9, 4e9, true},
		"whole seconds, of the faster half":  {falls, 0.4, 0.75, 1.6, 4e9, 4e9, false},
		"shifted by 0.1 s in a short window": {falls, 0.5, 0.1, 0.6, 3.2e9, 3.6e9, true},
		"outside of what a shift explains":   {falls, 0.5, 0.1, 0.6, 1.9e9, 3.6e9, false},
		"start-up included":                  {course(0, repeat(10, 4e9)...), 0.6, -0.2, 0.8, 3.2e9, 4e9, true},
		"no series, equal":                   {nil, 0.76, -0.02, 0.78, 4e9, 4e9, true},
		"no series, half":                    {nil, 0.76, -0.02, 0.78, 4e9, 2e9, false},
	} {
		s := &sample.Sample{Series: c.series, Metrics: sample.Metrics{
			sample.Throughput: c.said, sample.FabricGoodput: c.counted, sample.WindowSeconds: c.window,
		}}
		if err := contradiction(s, suite.TCPStream, c.from, c.to); (err == nil) != c.agrees {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Datagrams that the fabric carried and the receiver lost are no contradiction;
// figures that no loss explains are.
func TestLostDatagramsAreComparedWithTheFabricsCounters(t *testing.T) {
	for name, c := range map[string]struct {
		kind      suite.Kind
		loss, way float64 // way −1: not known
		counted   float64 // said is 1e9
		agrees    bool
	}{
		"half lost in the socket":                      {suite.UDPStream, 0.5, 0, 2e9, true},
		"half lost in the socket, the fabric too low":  {suite.UDPStream, 0.5, 0, 1e9, false},
		"half lost in the socket, the fabric too high": {suite.UDPStream, 0.5, 0, 2.4e9, false},
		"half lost on the way, before the fabric":      {suite.UDPStream, 0.5, 0.5, 1e9, true},
		"half lost on the way, behind the fabric":      {suite.UDPStream, 0.5, 0.5, 2e9, true},
		"half lost on the way, the fabric too low":     {suite.UDPStream, 0.5, 0.5, 0.8e9, false},
		"half lost, where is not known":                {suite.UDPStream, 0.5, -1, 1.5e9, true},
		"half lost, nothing explains so much":          {suite.UDPStream, 0.5, -1, 2.3e9, false},
		"nothing lost, and the fabric says twice":      {suite.UDPStream, 0, 0, 2e9, false},
		"TCP has no loss":                              {suite.TCPStream, 0.5, 0, 2e9, false},
	} {
		s := &sample.Sample{Metrics: sample.Metrics{
			sample.Throughput: 1e9, sample.FabricGoodput: c.counted, sample.WindowSeconds: 1, sample.LossRatio: c.loss,
		}}
		if c.way >= 0 {
			s.Metrics[sample.PathLoss] = c.way
		}
		err := contradiction(s, c.kind, 0, 1)
		if (err == nil) != c.agrees {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && c.kind == suite.UDPStream && c.loss > 0 && !strings.Contains(err.Error(), "2000000000 bit/s sent") {
			t.Errorf("%s: the error lacks what was sent: %v", name, err)
		}
	}
}

// The rate halves 1 s after the traffic began. The windows of the tool and of the
// meter both begin late. The check must compare the two rates for the times at which they were
// measured.
func TestTheCheckUsesTheTimesOfTheTwoWindows(t *testing.T) {
	const warmup, duration = 300 * time.Millisecond, 800 * time.Millisecond
	for name, c := range map[string]struct {
		meterLate, toolLate time.Duration
		counted             float64
		agrees              bool
	}{
		"both on time":                             {0, 0, 4e9, true},
		"the tool's window is 0.7 s late":          {0, 700 * time.Millisecond, 4e9, false},
		"the same, and its figure is of then":      {700 * time.Millisecond, 0, 2.47e9, true},
		"the same figure, if the meter was not":    {0, 0, 2.47e9, false},
		"both late, and the tool reports 4 Gbit/s": {700 * time.Millisecond, 700 * time.Millisecond, 2.47e9, false},
	} {
		var series []sample.Point // times since the meter's window began
		for at := -time.Second; at < 4*time.Second; at += 100 * time.Millisecond {
			bits := 4e9
			if since := at + warmup + margin + c.meterLate; since > 1200*time.Millisecond {
				bits = 2e9
			}
			series = append(series, sample.Point{At: at.Seconds(), Bits: bits})
		}
		sc := &suite.Scenario{Workload: suite.Workload{Kind: suite.TCPStream}, Timing: suite.Timing{Warmup: warmup, Duration: duration}}
		s := &sample.Sample{Series: series, Metrics: sample.Metrics{sample.Throughput: 4e9, sample.FabricGoodput: c.counted, sample.WindowSeconds: 0.76}}
		m := &meters{
			traffic: &toolRun{bench: &Bench{scenario: resolved{Scenario: sc, tool: tool.Builtin{}}}, sample: s}, nodes: make([]testbed.Node, 2), began: 5e9,
			start: edge{nodes: []meter.Reading{{Mono: 5e9 + int64(warmup+margin+c.meterLate)}}},
		}
		began := 5e9 + int64(warmup+c.toolLate)
		for form, said := range map[string]tool.Measurement{
			"since traffic began": {From: warmup + c.toolLate, To: warmup + duration + c.toolLate},
			"on the clock":        {Began: began, Ended: began + int64(duration)},
		} {
			if err := m.check(said); (err == nil) != c.agrees {
				t.Errorf("%s, %s: %v", name, form, err)
			}
		}
	}
}

func TestTheRemedyForUnreadDataIsForManyUnlimitedStreams(t *testing.T) {
	for _, c := range []struct {
		w    suite.Workload
		want bool
	}{
		{suite.Workload{Kind: suite.TCPStream, Streams: 64}, true},
		{suite.Workload{Kind: suite.TCPStream, Streams: 64, ReceiveBuffer: 1 << 18}, false},
		{suite.Workload{Kind: suite.TCPStream, Streams: 1}, false},
		{suite.Workload{Kind: suite.UDPStream, Streams: 64}, false},
	} {
		if got := unread(c.w); strings.Contains(got, "receive_buffer: 256k") != c.want || (got != "") != c.want {
			t.Errorf("%+v: the remedy is %q", c.w, got)
		}
	}
}
