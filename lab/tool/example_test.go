package tool_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"windtunnel/lab/suite"
	"windtunnel/lab/tool"
)

// printed is the output of a real run of qperf's client, shortened. Its latency is half a round trip.
const printed = `tcp_lat:
    latency        =        3515 ns
    loc_real_time  =  1000000000 ns
    loc_recv_msgs  =      142260
`

// A driver plans the processes of a trial, without starting them, and parses what they have
// printed. Figures have SI units, and latencies are nanoseconds of a whole round trip.
func Example() {
	qperf, _ := tool.ByName("qperf")
	job := tool.Job{
		Workload: suite.Workload{Kind: suite.TCPRR, Streams: 1, Request: 1, Response: 1, IPVersion: 4},
		Timing:   suite.Timing{Duration: time.Second},
		Sender:   netip.MustParseAddr("10.31.0.2"),
		Receiver: netip.MustParseAddr("10.31.16.2"),
		Port:     5001,
		MTU:      1500,
	}
	if err := qperf.Supports(job.Workload); err != nil {
		fmt.Println(err)
	}
	plan, err := qperf.Plan(job)
	if err != nil {
		fmt.Println(err)
	}
	for _, p := range plan {
		fmt.Println(p.On+":", strings.Join(p.Argv, " "))
	}

	m, err := qperf.Parse(job, map[string]tool.Output{"client": {Stdout: printed}})
	if err != nil {
		fmt.Println(err)
	}
	for _, metric := range slices.Sorted(maps.Keys(m.Metrics)) {
		fmt.Println(metric, m.Metrics[metric])
	}
	// Output:
	// receiver: qperf -lp 5001
	// sender: qperf 10.31.16.2 -lp 5001 -ip 5002 -t 1 -m 1 -uu -vvs -vvt tcp_lat conf
	// latency_ns_mean 7030
	// transactions_per_s 142260
}

// If an output has no result, Parse returns an error and not a figure of 0.
func Example_withoutAResult() {
	qperf, _ := tool.ByName("qperf")
	job := tool.Job{Workload: suite.Workload{Kind: suite.TCPRR}}
	_, err := qperf.Parse(job, map[string]tool.Output{"client": {Stdout: "tcp_lat:\n"}})
	fmt.Println(err)
	_, err = qperf.Parse(job, map[string]tool.Output{"client": {Stderr: "failed to connect\n", Exit: 1}})
	fmt.Println(err)
	// Output:
	// qperf: the output lacks the latency: "tcp_lat:"
	// qperf client exited with code 1: failed to connect
}
