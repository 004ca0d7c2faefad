package results_test

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"windtunnel/lab/report"
	"windtunnel/lab/report/text"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

const twoSystems = `suite: two-systems
workloads:
  stream: {kind: tcp_stream, buffer: 64k}
scenarios:
  - system: [bridge, vxlan]
comparisons:
  - {baseline: bridge, subjects: vxlan}
`

// The engine stores a run and its plan, and then the sample of each attempt. A report is made from
// the store alone. Figures in the store have SI units, such as bits per second.
func Example() {
	dir, err := os.MkdirTemp("", "results")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := results.Open(filepath.Join(dir, "windtunnel.db"), results.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	s, err := suite.Parse("two-systems.yaml", []byte(twoSystems))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := s.Expand(suite.ExpandOptions{Trials: 6})
	if err != nil {
		fmt.Println(err)
		return
	}
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	run := sample.Run{ID: "first", Suite: s.Name, Started: began, Status: sample.Running}
	if err := store.CreateRun(run, *plan); err != nil {
		fmt.Println(err)
		return
	}
	gbit := map[string][]float64{
		"bridge/stream": {18.1, 17.9, 15.2, 18.0, 18.3, 17.7},
		"vxlan/stream":  {14.5, 14.2, 12.0, 14.6, 14.5, 14.1},
	}
	for block := range plan.Trials {
		for _, sc := range plan.Scenarios {
			metrics := sample.Metrics{sample.Throughput: gbit[sc.ID][block] * 1e9}
			if _, err := store.AppendSample(run.ID, sample.Sample{Scenario: sc.ID, Block: block, Metrics: metrics}); err != nil {
				fmt.Println(err)
			}
		}
	}

	data, err := store.Load(results.Latest)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := report.Build(data.Run, data.Plan, data.Samples)
	if err := text.Write(os.Stdout, report.Explain(r), text.Options{Width: 80}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// two-systems (first)
	// windtunnel run two-systems
	//
	// What it costs
	// • vxlan carries 20 % less than bridge [19, 21].
	//
	// Validity
	// • All 12 trials count: none failed, and the conditions were valid in every
	//   one.
}
