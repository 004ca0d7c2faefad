package tool

import (
	"testing"
	"time"
)

// With a warm-up of 0.2 s, 0.7 s that count and a cool-down of 0.1 s: tools that
// tell their course are of the measured part, tools of whole seconds are not.
func TestMeasurementsHaveTheirPeriod(t *testing.T) {
	for name, want := range map[string][2]time.Duration{
		"iperf3 with both ends' intervals":       {200 * time.Millisecond, 900 * time.Millisecond},
		"iperf3 without intervals of the server": {0, time.Second},
		"netperf stream":                         {200 * time.Millisecond, 900 * time.Millisecond},
		"netperf without interim results":        {0, time.Second},
		"netperf UDP stream":                     {0, time.Second},
		"qperf stream":                           {0, time.Second},
		"sockperf TCP stream":                    {0, time.Second},
		"ntttcp text":                            {time.Second, 2 * time.Second},
		"NTttcp's form of the generator":         {time.Second, 2 * time.Second},
		"fio streams":                            {200 * time.Millisecond, 900 * time.Millisecond},
	} {
		found := false
		for _, c := range capturedOutputs {
			if c.name != name {
				continue
			}
			found, c.timing = true, short
			m, err := c.tool.Parse(c.job(), c.read(t))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if from, to := m.Span(short); from != want[0] || to != want[1] {
				t.Errorf("%s is of %v to %v, want %v", name, from, to, want)
			}
		}
		if !found {
			t.Errorf("no output %q was captured", name)
		}
	}
}
