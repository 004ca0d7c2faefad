package experiment

import (
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/delayline"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Request/response over a link with a delay takes twice the delay or more. The sample has the
// error of the delay, and the fabric's CPU time has the time of its process.
func TestASampleHasTheErrorOfTheLinksDelay(t *testing.T) {
	const delay = 120 * time.Millisecond // a round trip longer than the first wait of the proof of connectivity
	s := runOK(t, scenario("raw", func(sc *suite.Scenario) {
		sc.Fabric.Delay = delay
		sc.Workload = suite.Workload{Name: "rr", Kind: suite.TCPRR, Streams: 1, Request: 1, Response: 1, IPVersion: 4}
	}))
	m := s.Metrics
	p50, measured := m[sample.DelayErrorP50]
	if p99 := m[sample.DelayErrorP99]; !measured || p50 > p99 {
		t.Errorf("error of the delay: %g ns, p99 %g ns", p50, p99)
	}
	if least := m[sample.LatencyMin]; least < 2*float64(delay) {
		t.Errorf("a round trip took %g ns with a delay of %v", least, delay)
	}
	if cores, measured := m[sample.FabricCores]; measured && cores <= 0 {
		t.Errorf("the fabric used %g cores", cores)
	}
}

func TestLateAndLostFramesOfADelayAreWarnedOf(t *testing.T) {
	const delay = 200 * time.Microsecond
	late := func(bucket int) delayline.Reading {
		r := delayline.Reading{Late: make(delayline.Counts, 700)}
		r.Late[0], r.Late[bucket] = 90, 10
		return r
	}
	m := sample.Metrics{}
	must.Equal(t, nil, delayed(delayline.Reading{}, delay, m))
	must.Equal(t, sample.Metrics{}, m)
	must.Equal(t, nil, delayed(late(1), delay, m))
	must.Equal(t, sample.Metrics{sample.DelayErrorP50: 0, sample.DelayErrorP99: 1}, m)

	r := late(600)
	r.Lost = 7
	got := strings.Join(delayed(r, delay, m), "\n")
	for _, want := range []string{"lost 7 frames", "64 MiB", r.Late.Quantile(0.99).String(), "delay of 200µs", "other programs use the CPUs"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	r.Normal = true
	if got := strings.Join(delayed(r, delay, m), "\n"); !strings.Contains(got, "CAP_SYS_NICE") {
		t.Errorf("%q without real-time priority", got)
	}
	if got := delayed(late(600), time.Minute, m); got != nil {
		t.Errorf("%q; the lateness does not matter beside a delay of a minute", got)
	}
}
