package validity_test

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/validity"
)

// A program outside the experiment used 0.4 CPU seconds on node b, whose two CPUs have 4 CPU seconds
// in a window of 2 s. This is 10 %, so the trial fails a gate. Judge does not
// judge a gate whose input is missing, and returns the reason.
func ExampleJudge() {
	none, foreign := 0.0, 0.4 // s
	failed, flags, unjudged := validity.Judge(validity.Input{
		Workload: suite.Workload{Kind: suite.TCPRR},
		Metrics:  sample.Metrics{sample.SenderStealCPU: 0, sample.ReceiverStealCPU: 0},
		Window:   2, // s
		Step:     0.1,
		Sides: []validity.Side{
			{Node: "a", CPUs: 2, Foreign: &none},
			{Node: "b", CPUs: 2, Foreign: &foreign, Culprit: "apt-get", CulpritTook: 0.38},
		},
		Stray:     map[int]float64{},
		ClockStep: &none,
	}, validity.Default)
	for _, g := range failed {
		fmt.Printf("fails %s: %g %s, limit %g: %s\n", g.Name, g.Value, g.Unit, g.Limit, g.Message)
	}
	fmt.Println("flags:", len(flags))
	for _, why := range unjudged {
		fmt.Println("not judged:", why)
	}
	// Output:
	// fails foreign-cpu: 10 %, limit 3: programs outside the experiment used 10.0 % of the CPUs of node b (receiver), most of it apt-get (9.5 %); the limit is 3 %: end them, or keep them off these CPUs (taskset, cpusets)
	// flags: 0
	// not judged: still-moving: the fabric was not watched after the tools had ended
	// not judged: machine-stall: the times of the series' readings within the window are not known
}
