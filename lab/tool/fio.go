package tool

import (
	"fmt"
	"strings"
	"time"

	"windtunnel/lab/suite"
)

// Fio drives fio's network engine (ioengine=net), as a replacement of IOmeter's
// network worker. Each stream is a job with a port; request/response uses the pingpong
// mode. fio has a warm-up (ramp_time). The rates within the window are computed from
// fio's interim results.
type Fio struct{}

func (Fio) Name() string { return "fio" }

func (Fio) Programs() []Program {
	return []Program{{Name: "fio", Version: []string{"fio", "--version"}, Least: "3.0"}}
}

func (t Fio) Supports(w suite.Workload) error {
	connections := max(1, w.Streams)
	if w.Direction == suite.Both && !w.Kind.Exchange() {
		connections *= 2
	}
	return firstRefusal(t, w, []refusal{
		{w.Kind == suite.TCPCRR, "uses one connection for all requests, so it does not measure connecting"},
		{w.Kind.Exchange() && w.Request != w.Response, fmt.Sprintf("sends responses of the request's size (pingpong); request %d and response %d differ", w.Request, w.Response)},
		{w.Kind == suite.UDPStream && w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends UDP from the client only; direction %s is not possible", w.Direction)},
		{(w.Kind.Exchange() || w.Direction == suite.Both) && w.SendBuffer != w.ReceiveBuffer, fmt.Sprintf("sets one size for both socket buffers of an end (window_size); send %d and receive %d differ", w.SendBuffer, w.ReceiveBuffer)},
		{w.Sendfile, "has no sendfile in its net engine"},
		{connections > portsPerJob, fmt.Sprintf("needs a port for each connection; the workload needs %d and a job has %d", connections, portsPerJob)},
		{w.Rate > 0 && w.StreamRate() < 800, fmt.Sprintf("limits the rate in whole bytes per second; %d bit/s in %d streams would be wrong by more than 1 %%", w.Rate, max(1, w.Streams))},
	})
}

// Plan starts one fio at each end, with a job for each connection. fio opens the ports
// in order, and the job's first port last. So the receiver is ready if this port is
// open. The receiver has no warm-up, because fio would count the warm-up from its
// start and not from the first data.
func (t Fio) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	total := job.Timing.Total()
	server := append(t.common(job), "--runtime="+fioTime(total+fioEndWait), "--output-format=json")
	if !w.Kind.UDP() {
		server = append(server, "--listen")
	}
	client := append(t.common(job), "--runtime="+fioTime(job.Timing.Duration+job.Timing.Cooldown), "--output-format=normal,json", "--hostname="+job.Receiver.String())
	if ramp := fioWarmup(job.Timing); ramp > 0 {
		client = append(client, "--ramp_time="+fioTime(ramp))
	}
	if size := fioWindow(w, OnReceiver); size > 0 {
		server = append(server, "--window_size="+decimal(size))
	}
	if size := fioWindow(w, OnSender); size > 0 {
		client = append(client, "--window_size="+decimal(size))
	}
	receives, sends := fioJobs(job)
	listener := serverProcess(job, append(server, receives...)...)
	listener.UDP = w.Kind.UDP()
	caller := clientProcess("client", append(client, sends...)...)
	caller.Ready = fioStarts
	return []Process{listener, caller}, nil
}

// fioEndWait is the maximum time for which a receiver waits after the traffic.
// Normally the receiver ends with its connection. But the end message of a UDP sender
// can be lost.
const fioEndWait = 2 * time.Second

// fioStartDelay is the time between the line "Starting" and the start of fio's jobs:
// fio waits for its jobs in steps of 100 ms (run_threads in backend.c).
const fioStartDelay = 100 * time.Millisecond

// fioWarmup is the warm-up on fio's clock, which begins with its traffic.
func fioWarmup(t suite.Timing) time.Duration { return max(0, t.Warmup-fioStartDelay) }

// fioSteps is the number of interim results of a run. They are at least 100 ms apart.
const fioSteps = 20

// common returns the arguments that both ends share. scramble_buffers is off, because
// it makes the sender write into every block before sending. Each job is a process and
// not a thread. When a client ends, SIGPIPE ends the server that sends to it; with
// threads it would end the servers of all jobs.
func (Fio) common(job Job) []string {
	w := job.Workload
	protocol, size := "tcp", w.Buffer
	if w.Kind.UDP() {
		protocol = "udp"
	}
	if w.IPVersion == 6 {
		protocol += "v6"
	}
	if w.Kind.Exchange() {
		size = w.Request
	}
	interval := max(100*time.Millisecond, job.Timing.Total()/fioSteps)
	argv := []string{"fio", "--ioengine=net", "--protocol=" + protocol, "--bs=" + decimal(size), "--size=1T", "--time_based",
		"--group_reporting", "--scramble_buffers=0", "--status-interval=" + fioTime(interval)}
	if w.Kind.Exchange() {
		argv = append(argv, "--pingpong=1", "--percentile_list=50:90:99:99.9")
	} else {
		argv = append(argv, "--clat_percentiles=0")
	}
	if w.NoDelay && !w.Kind.UDP() {
		argv = append(argv, "--nodelay=1")
	}
	return argv
}

// fioTime writes a time in whole milliseconds; fio takes 0 for no limit.
func fioTime(d time.Duration) string { return decimal(max(1, d.Milliseconds())) + "ms" }

// fioWindow returns the socket buffer size of an end. fio sets both buffers of the end
// to this size. If traffic has one direction, only one of them matters.
func fioWindow(w suite.Workload, side Side) int64 {
	sends := (side == OnSender) != (w.Direction == suite.Reverse && !w.Kind.Exchange())
	if sends {
		return w.SendBuffer
	}
	return w.ReceiveBuffer
}

// fioJobs lists the jobs of the receiver and of the sender.
func fioJobs(job Job) (receiver, sender []string) {
	w := job.Workload
	var ways []suite.Direction
	switch {
	case w.Direction == suite.Both && !w.Kind.Exchange():
		ways = []suite.Direction{suite.Reverse, suite.Forward}
	case w.Direction == suite.Reverse && !w.Kind.Exchange():
		ways = []suite.Direction{suite.Reverse}
	default:
		ways = []suite.Direction{suite.Forward}
	}
	streams := max(1, w.Streams)
	port := job.Port + uint16(len(ways)*streams)
	for _, way := range ways {
		receives, sends := "read", "write"
		if way == suite.Reverse {
			receives, sends = sends, receives
		}
		for i := range streams {
			port--
			name := fmt.Sprintf("--name=%s%d", way, i+1)
			receiver = append(receiver, name, "--port="+decimal(port), "--rw="+receives)
			sender = append(sender, name, "--port="+decimal(port), "--rw="+sends)
			if w.Rate > 0 {
				pace := "--rate=" + decimal(w.StreamRate()/8)
				if way == suite.Reverse {
					receiver = append(receiver, pace)
				} else {
					sender = append(sender, pace)
				}
			}
		}
	}
	return receiver, sender
}

// fioStarts recognises the line that fio prints before its jobs start. The jobs send
// data fioStartDelay after this line.
func fioStarts(line string) bool { return strings.HasPrefix(line, "Starting ") }
