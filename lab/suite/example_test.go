package suite_test

import (
	"fmt"

	"windtunnel/lab/suite"
)

const document = `suite: two-systems
workloads:
  stream: {kind: tcp_stream, buffer: 64k}
scenarios:
  - system: [bridge, vxlan]
comparisons:
  - {baseline: bridge, subjects: vxlan}
`

// A list in an entry makes a scenario for each of its values. Two groups make a comparison for
// every part after the "/" that both have.
func ExampleParse() {
	s, err := suite.Parse("two-systems.yaml", []byte(document))
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := s.Expand(suite.ExpandOptions{Trials: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, sc := range plan.Scenarios {
		fmt.Println(sc.ID, "-", sc.Workload)
	}
	for _, c := range plan.Comparisons {
		fmt.Println(c.Subject, "/", c.Baseline, "in", plan.Trials, "trials")
	}
	// Output:
	// bridge/stream - TCP stream of 64 KiB
	// vxlan/stream - TCP stream of 64 KiB
	// vxlan/stream / bridge/stream in 10 trials
}

// Each mistake has its line, and the way to correct it.
func ExampleParse_mistakes() {
	_, err := suite.Parse("wrong.yaml", []byte("suite: x\nworkloads: {s: {kind: tcp_strem}}\nscenarios: [{system: raw}]\n"))
	fmt.Println(err)
	// Output:
	// wrong.yaml:2:23: "tcp_strem" is not known here
	//      2 | workloads: {s: {kind: tcp_strem}}
	//        |                       ^
	//   did you mean "tcp_stream"? allowed: tcp_stream, tcp_rr, tcp_crr, udp_stream, udp_rr
}
