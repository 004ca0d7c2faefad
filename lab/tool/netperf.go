package tool

import (
	"fmt"
	"strings"

	"windtunnel/lab/suite"
)

// Netperf drives netperf 2.7: every kind of traffic, one connection for each
// process, so several streams are several processes at once.
type Netperf struct{}

func (Netperf) Name() string { return "netperf" }

func (Netperf) Programs() []Program {
	return []Program{
		{Name: "netperf", Version: []string{"netperf", "-V"}},
		{Name: "netserver", Version: []string{"netserver", "-V"}},
	}
}

// netperfConnections is the number of data ports of a job. The job's first port is for
// the control connection.
const netperfConnections = portsPerJob - 1

func (t Netperf) Supports(w suite.Workload) error {
	connections := w.Streams
	if w.Direction == suite.Both && !w.Kind.Exchange() {
		connections *= 2
	}
	return firstRefusal(t, w, []refusal{
		{w.Kind == suite.UDPStream && w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends UDP from the client only; direction %s is not possible", w.Direction)},
		{w.Sendfile && w.Direction != suite.Forward && w.Direction != "", "uses sendfile for TCP streams from the sender only (TCP_SENDFILE)"},
		{w.Sendfile && w.Streams > 1, fmt.Sprintf("makes one file for all TCP_SENDFILE processes, so it runs one such stream, not %d", w.Streams)},
		{w.Sendfile && w.DSCP > 0, "does not set the DSCP of TCP_SENDFILE, a test of the old form"},
		{w.Rate > 0, "limits the rate only if it is built with --enable-intervals; packages are built without it"},
		{connections > netperfConnections, fmt.Sprintf("needs a port for each connection; the workload needs %d and a job has %d", connections, netperfConnections)},
	})
}

// netperfTest is one netperf process.
type netperfTest struct {
	role    string
	name    string // -t
	reverse bool   // data flows to the client
	port    uint16 // of the data connection, at the receiver
}

// tests lists the processes of a job, in the order of their roles: first all processes
// that send, then all that receive.
func (Netperf) tests(job Job) []netperfTest {
	w := job.Workload
	names := []string{strings.ToUpper(string(w.Kind))} // suites have netperf's names, in lower case
	switch {
	case w.Kind != suite.TCPStream:
	case w.Sendfile:
		names = []string{"TCP_SENDFILE"}
	case w.Direction == suite.Reverse:
		names = []string{"TCP_MAERTS"}
	case w.Direction == suite.Both:
		names = append(names, "TCP_MAERTS")
	}
	streams := max(1, w.Streams)
	var tests []netperfTest
	for _, name := range names {
		for range streams {
			tests = append(tests, netperfTest{name: name, reverse: name == "TCP_MAERTS"})
		}
	}
	for i := range tests {
		tests[i].port = job.Port + 1 + uint16(i)
		tests[i].role = "client"
		if len(tests) > 1 {
			tests[i].role = fmt.Sprintf("client%d", i+1)
		}
	}
	return tests
}

// Plan starts one netserver, and one netperf for each connection. Each netperf runs
// for warm-up, duration and cool-down together, in whole seconds, as -l requires. Plan
// does not use confidence iterations (-I), because the engine repeats trials. TCP_CRR
// prints its result about four seconds after its traffic. With -c -C both ends read
// /proc/stat before and after the run. On Linux this needs no calibration and takes no
// time.
func (t Netperf) Plan(job Job) ([]Process, error) {
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	address := fmt.Sprintf("%s,%d", job.Receiver, job.Workload.IPVersion)
	processes := []Process{serverProcess(job, "netserver", "-D", "-N", "-p", decimal(job.Port), "-L", address)}
	for _, test := range t.tests(job) {
		processes = append(processes, clientProcess(test.role, t.argv(job, address, test)...))
	}
	return processes, nil
}

func (t Netperf) argv(job Job, address string, test netperfTest) []string {
	w := job.Workload
	argv := []string{"netperf", "-H", address, "-p", decimal(job.Port), "-t", test.name,
		"-l", decimal(wholeSeconds(job.Timing)), "-P", "0", "-D", "0.1", "-c", "-C"}
	if !w.Kind.Exchange() {
		argv = append(argv, "-f", "m") // 10^6 bit/s for every rate; with -f request/response would report bits instead of transactions
	}
	if tos := w.DSCP.TOS(); tos > 0 {
		argv = append(argv, "-Y", decimal(tos)+","+decimal(tos)) // of the packets of netperf, and of those of netserver
	}
	argv = append(argv, "--", "-P", ","+decimal(test.port))
	if w.Kind.Exchange() {
		argv = append(argv, "-r", decimal(w.Request)+","+decimal(w.Response))
	} else if w.Buffer > 0 {
		argv = append(argv, "-m", decimal(w.Buffer))
		if w.Kind == suite.TCPStream && !w.Sendfile {
			argv = append(argv, "-M", decimal(w.Buffer))
		}
	}
	if size := netperfSockets(w); size != "" {
		argv = append(argv, "-s", size, "-S", size)
	}
	if w.NoDelay && !w.Kind.UDP() {
		argv = append(argv, "-D")
	}
	if w.Kind == suite.UDPStream {
		argv = append(argv, "-R", "1") // without it SO_DONTROUTE limits the traffic to the link
	}
	if keys := netperfKeys(w); keys != "" {
		argv = append(argv, "-k", keys)
	}
	return argv
}

// netperfSockets returns the value of -s and -S. It omits a size of 0, because netperf
// would set 0.
func netperfSockets(w suite.Workload) string {
	switch {
	case w.SendBuffer > 0 && w.ReceiveBuffer > 0:
		return decimal(w.SendBuffer) + "," + decimal(w.ReceiveBuffer)
	case w.SendBuffer > 0:
		return decimal(w.SendBuffer) + ","
	case w.ReceiveBuffer > 0:
		return "," + decimal(w.ReceiveBuffer)
	}
	return ""
}

// netperfKeys returns the output selectors for -k. TCP_SENDFILE does not support
// selectors; it prints the classic line.
func netperfKeys(w suite.Workload) string {
	keys := []string{"THROUGHPUT", "THROUGHPUT_UNITS", "ELAPSED_TIME", "LOCAL_CPU_UTIL", "REMOTE_CPU_UTIL"}
	switch {
	case w.Sendfile:
		return ""
	case w.Kind.Exchange():
		keys = append(keys, "MIN_LATENCY", "MEAN_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY")
	case w.Kind == suite.UDPStream:
		keys = append(keys, "LOCAL_SEND_THROUGHPUT", "REMOTE_RECV_THROUGHPUT", "LOCAL_SEND_CALLS", "REMOTE_RECV_CALLS")
	default:
		keys = append(keys, "LOCAL_SD", "REMOTE_SD", "LOCAL_TRANSPORT_RETRANS", "REMOTE_TRANSPORT_RETRANS")
	}
	return strings.Join(keys, ",")
}
