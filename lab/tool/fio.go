package tool

import (
	"fmt"
	"strings"
	"time"

	"windtunnel/lab/suite"
)

// Fio drives fio's network engine (ioengine=net), as a replacement of IOmeter's
// network worker. Each stream is a job with a port; request/response uses the
// pingpong mode. fio has a warm-up of its own (ramp_time). The window is cut from
// fio's interim results.
type Fio struct{}

func (Fio) Name() string { return "fio" }

func (Fio) Programs() []Program {
	return []Program{{Name: "fio", Package: "fio", Version: []string{"fio", "--version"}, Least: "3.0"}}
}

func (t Fio) Supports(w suite.Workload) error {
	connections := max(1, w.Streams)
	if w.Direction == suite.Both && !isRR(w) {
		connections *= 2
	}
	return firstOf(t, []refusal{
		{w.ReceiverWork > 0, "has no receiver_work; the builtin tool has"},
		{w.Kind == suite.TCPCRR, "keeps its connection; it does not measure connecting"},
		{isRR(w) && w.Request != w.Response, fmt.Sprintf("answers with as many bytes as were asked (pingpong); request %d and response %d differ", w.Request, w.Response)},
		{isRR(w) && w.Rate > 0, "is not paced in request/response"},
		{w.Kind == suite.UDPStream && w.Direction != suite.Forward && w.Direction != "", fmt.Sprintf("sends UDP from the client only; %s is not possible", w.Direction)},
		{(isRR(w) || w.Direction == suite.Both) && w.SendBuffer != w.ReceiveBuffer, fmt.Sprintf("sets one size for both socket buffers of an end (window_size); send %d and receive %d differ", w.SendBuffer, w.ReceiveBuffer)},
		{w.Sendfile, "has no sendfile over its net engine"},
		{connections > portsPerJob, fmt.Sprintf("needs a port for each connection; %d are wanted and a job has %d", connections, portsPerJob)},
		{isUDP(w) && max(w.Buffer, w.Request) > maxDatagram, fmt.Sprintf("sends datagrams of at most %d bytes, not %d", maxDatagram, max(w.Buffer, w.Request))},
		{w.Rate > 0 && perStream(w) < 800, fmt.Sprintf("paces in whole bytes a second, which %d bit/s in %d streams is not within 1 %%", w.Rate, max(1, w.Streams))},
	})
}

// Plan starts one fio at each end, with a job for each connection. fio opens the
// ports in order. The job's first port is the last one that fio opens, so it shows
// that the receiver is ready. The receiver has no warm-up: fio would count it from
// its start and not from the first data.
func (t Fio) Plan(job Job) ([]Process, error) {
	w := job.Workload
	if err := checkJob(t, job); err != nil {
		return nil, err
	}
	total := job.Timing.Total()
	server := append(t.common(job), "--runtime="+fioTime(total+fioPatience), "--output-format=json")
	if !isUDP(w) {
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
	listener := listening(job, append(server, receives...)...)
	listener.UDP = isUDP(w)
	caller := calling("client", append(client, sends...)...)
	caller.Ready = fioStarts
	return []Process{listener, caller}, nil
}

// fioPatience is the time for which a receiver waits after the traffic. It normally
// ends with its connection; this limit is for a lost end message of a UDP sender.
const fioPatience = 2 * time.Second

// fioHesitation is the time between the line "Starting" and the start of fio's jobs:
// fio waits for them in steps of 100 ms (run_threads in backend.c).
const fioHesitation = 100 * time.Millisecond

// fioWarmup is the warm-up on fio's clock, which begins with its traffic.
func fioWarmup(t suite.Timing) time.Duration { return max(0, t.Warmup-fioHesitation) }

// fioSteps is the number of interim results of a run, at least 100 ms apart.
const fioSteps = 20

// common returns the arguments that both ends share. scramble_buffers makes the
// sender write into every block before sending, so it is off. Each job is a process,
// not a thread: SIGPIPE ends a sending server when its client has ended, and would
// end all threads.
func (Fio) common(job Job) []string {
	w := job.Workload
	protocol, size := "tcp", w.Buffer
	if isUDP(w) {
		protocol = "udp"
	}
	if w.IPVersion == 6 {
		protocol += "v6"
	}
	if isRR(w) {
		size = w.Request
	}
	interval := max(100*time.Millisecond, job.Timing.Total()/fioSteps)
	argv := []string{"fio", "--ioengine=net", "--protocol=" + protocol, "--bs=" + decimal(size), "--size=1T", "--time_based",
		"--group_reporting", "--scramble_buffers=0", "--status-interval=" + fioTime(interval)}
	if isRR(w) {
		argv = append(argv, "--pingpong=1", "--percentile_list=50:90:99:99.9")
	} else {
		argv = append(argv, "--clat_percentiles=0")
	}
	if w.NoDelay && !isUDP(w) {
		argv = append(argv, "--nodelay=1")
	}
	return argv
}

// fioTime writes a time in whole milliseconds; fio takes 0 for no limit.
func fioTime(d time.Duration) string { return decimal(max(1, d.Milliseconds())) + "ms" }

// fioWindow returns the socket buffer size of an end. fio sets both buffers with one
// option; the unused one does not matter.
func fioWindow(w suite.Workload, side Side) int64 {
	sends := (side == OnSender) != (w.Direction == suite.Reverse && !isRR(w))
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
	case w.Direction == suite.Both && !isRR(w):
		ways = []suite.Direction{suite.Reverse, suite.Forward}
	case w.Direction == suite.Reverse && !isRR(w):
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
				pace := "--rate=" + decimal(perStream(w)/8)
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

// fioStarts recognises the line that fio prints at the start of its jobs,
// fioHesitation before they send.
func fioStarts(line string) bool { return strings.HasPrefix(line, "Starting ") }
