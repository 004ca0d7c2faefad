package tool

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// portsPerJob is the number of ports of a job, including the first.
const portsPerJob = 16

// cannot returns an error with the reason why a tool does not support a workload.
func cannot(tool, format string, args ...any) error {
	return fmt.Errorf("%s %s", tool, fmt.Sprintf(format, args...))
}

// refusal is a reason why a tool does not support a workload. The reason only holds if
// applies is true.
type refusal struct {
	applies bool
	reason  string
}

// firstRefusal returns the first reason that applies: of those that all tools but the builtin
// one share, and then of the tool's list. It returns nil if no reason applies.
func firstRefusal(t Tool, w suite.Workload, list []refusal) error {
	shared := []refusal{
		{w.ReceiverWork > 0, "does not support receiver_work; use the builtin tool"},
		{w.Loss > 0, "does not search for the highest rate; use the builtin tool"},
		{w.IMIX, "sends datagrams of one size; imix needs the builtin tool"},
		{w.Pace+w.OfCapacity > 0, "sends a request only after the last response; pace and of_capacity need the builtin tool"},
		{w.Load > 0, "does not support a load beside request/response; use the builtin tool"},
		{w.DSCP > 0 && !marks(t), "does not set the DSCP of its packets; dscp needs the tool builtin, iperf3, netperf or sockperf"},
		{w.PacketPerSend && t != Tool(BuiltinNTttcp{}), "lets the kernel merge sends; packet_per_send needs the tool builtin or builtin-ntttcp"},
	}
	for _, r := range append(shared, list...) {
		if r.applies {
			return cannot(t.Name(), "%s", r.reason)
		}
	}
	return nil
}

// marks reports whether a tool can set the DSCP of its packets.
func marks(t Tool) bool {
	return slices.Contains([]Tool{Builtin{}, Iperf3{}, Netperf{}, Sockperf{}}, t)
}

// wholeSeconds is the run time of a tool that takes whole seconds only. It is the sum
// of warm-up, measured part and cool-down, rounded up. So the measured part is always
// inside.
func wholeSeconds(t suite.Timing) int { return max(1, ceilSeconds(t.Total())) }

// wholeRun is wholeSeconds as a duration.
func wholeRun(t suite.Timing) time.Duration { return time.Duration(wholeSeconds(t)) * time.Second }

// roundedSpan is the measured part of a tool that rounds each part of a timing
// up to whole seconds.
func roundedSpan(t suite.Timing) (from, to time.Duration) {
	from = time.Duration(ceilSeconds(t.Warmup)) * time.Second
	return from, from + time.Duration(max(1, ceilSeconds(t.Duration)))*time.Second
}

// ceilSeconds rounds one part of a timing up to whole seconds.
func ceilSeconds(d time.Duration) int {
	return int((d + time.Second - 1) / time.Second)
}

// setDatagrams sets the figures of a UDP stream for a tool that does not number
// datagrams. sent and arrived are datagrams per second, over windows of the same
// length. The loss is the share of the sent datagrams that did not arrive.
func setDatagrams(w suite.Workload, sent, arrived float64, ms sample.Metrics) {
	ms.Set(sample.DatagramsSent, sent)
	ms.Set(sample.DatagramsReceived, arrived)
	if sent > 0 {
		ms.Set(sample.LossRatio, max(0, 1-arrived/sent))
	}
	setOfferedRate(w, ms)
}

// setOfferedRate sets the requested rate of a UDP stream, if it has one. With two
// directions each direction has this rate.
func setOfferedRate(w suite.Workload, ms sample.Metrics) {
	directions := int64(1)
	if w.Direction == suite.Both {
		directions = 2
	}
	if w.Rate > 0 {
		ms.Set(sample.OfferedRate, float64(directions*w.Rate))
	}
}

// BehindNAT reports whether the tool's server can listen on another address than the one
// to which its client connects. Such a tool has a method BehindNAT.
func BehindNAT(t Tool) bool {
	_, can := t.(interface{ BehindNAT() })
	return can
}

// BehindNAT marks the tools.
func (Builtin) BehindNAT() {}
func (Iperf3) BehindNAT()  {}
func (Qperf) BehindNAT()   {} // its server listens on every address

// listen is the address on which the server listens.
func (j Job) listen() netip.Addr {
	if j.Listen.IsValid() {
		return j.Listen
	}
	return j.Receiver
}

// fragments returns a warning if the workload's datagrams are fragmented on the
// endpoints' devices, which changes the measurement.
func fragments(job Job) []string {
	w := job.Workload
	if !w.Kind.UDP() || job.MTU <= 0 {
		return nil
	}
	payload, headers := w.Buffer, int64(20+8)
	if w.Kind.Exchange() {
		payload = max(w.Request, w.Response)
	}
	if w.IPVersion == 6 {
		headers = 40 + 8
	}
	if payload+headers <= int64(job.MTU) {
		return nil
	}
	return []string{fmt.Sprintf("a datagram of %d bytes is fragmented: with MTU %d a datagram may have %d bytes",
		payload, job.MTU, int64(job.MTU)-headers)}
}

// shortRun returns a warning if a run is so short that the start of the traffic
// affects its figures. It is for tools without a warm-up.
func shortRun(tool string, job Job) []string {
	const brief = 3 * time.Second
	total := wholeRun(job.Timing)
	if job.Timing.Warmup <= 0 || total >= brief {
		return nil
	}
	return []string{fmt.Sprintf("%s has no warm-up: its figures are means over the whole run of %v, start included", tool, total)}
}

// serverProcess returns the process that listens on the receiver.
func serverProcess(job Job, argv ...string) Process {
	return Process{Role: "server", On: OnReceiver, Argv: argv, Port: job.Port, Stays: true}
}

// clientProcess returns the process that connects from the sender.
func clientProcess(role string, argv ...string) Process {
	return Process{Role: role, On: OnSender, Argv: argv}
}

// checkJob returns an error if a tool cannot plan a job. Either the tool does not
// support the workload, or the job's ports, address or path of the windtunnel program
// are wrong.
func checkJob(t Tool, job Job) error {
	if err := t.Supports(job.Workload); err != nil {
		return err
	}
	if job.Port == 0 || int(job.Port)+portsPerJob-1 > math.MaxUint16 {
		return fmt.Errorf("plan %s: port %d leaves no room for %d ports; choose one between 1 and %d",
			t.Name(), job.Port, portsPerJob, math.MaxUint16-portsPerJob+1)
	}
	if !job.Receiver.IsValid() || job.Receiver.Is4() != (job.Workload.IPVersion == 4) {
		return fmt.Errorf("plan %s: the receiver's address %v is not of IP version %d", t.Name(), job.Receiver, job.Workload.IPVersion)
	}
	if len(t.Programs()) == 0 && job.Self == "" {
		return fmt.Errorf("plan %s: the path of the windtunnel program is not known", t.Name())
	}
	return nil
}

// decimal formats a count for a command line.
func decimal[T ~int | ~int64 | ~uint16](n T) string { return strconv.FormatInt(int64(n), 10) }

// lasting is a tool that runs longer than warm-up, duration and cool-down together.
type lasting interface {
	// Lasts returns the duration of the tool, including the wait before its traffic.
	Lasts(t suite.Timing) time.Duration
}

// searchTime is the usual time of the short runs before the run, by which the builtin tool finds
// its rate; 0: there are none.
func searchTime(w suite.Workload) time.Duration {
	switch {
	case w.Loss > 0:
		return 5 * time.Second
	case w.OfCapacity > 0:
		return 1200 * time.Millisecond
	}
	return 0
}

// Traffic maps the ID of a scenario to the run time of its tool in a trial. It omits
// tools that run exactly as long as the timing.
func Traffic(plan *suite.Plan) map[string]time.Duration {
	times := map[string]time.Duration{}
	for _, sc := range plan.Scenarios {
		tl, _ := ByName(sc.Tool)
		if l, ok := tl.(lasting); ok {
			times[sc.ID] = l.Lasts(sc.Timing)
		}
		if search := searchTime(sc.Workload); search > 0 {
			times[sc.ID] = search + sc.Timing.Total()
		}
	}
	return times
}

// roundedRun is the run time of a tool that rounds each part of the timing up to whole
// seconds.
func roundedRun(t suite.Timing) time.Duration {
	_, to := roundedSpan(t)
	return to + time.Duration(ceilSeconds(t.Cooldown))*time.Second
}

func (Iperf3) Lasts(t suite.Timing) time.Duration        { return wholeRun(t) }
func (Netperf) Lasts(t suite.Timing) time.Duration       { return wholeRun(t) }
func (Qperf) Lasts(t suite.Timing) time.Duration         { return wholeRun(t) }
func (NTttcp) Lasts(t suite.Timing) time.Duration        { return roundedRun(t) }
func (BuiltinNTttcp) Lasts(t suite.Timing) time.Duration { return roundedRun(t) }

// Lasts: the client sleeps two seconds before its traffic begins.
func (Sockperf) Lasts(t suite.Timing) time.Duration { return 2*time.Second + wholeRun(t) }
