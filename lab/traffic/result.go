package traffic

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// Result is the JSON document that each end of Worker prints.
type Result struct {
	Version     int    `json:"windtunnel_traffic"` // version of this document
	Role        string `json:"role"`               // client or server
	Peer        string `json:"peer"`
	Spec        Spec   `json:"spec"`
	Interrupted bool   `json:"interrupted,omitempty"` // the run ended early, so its window is shorter than configured
	Local       End    `json:"local"`
	Remote      *End   `json:"remote,omitempty"` // in the client's result: the server's figures
}

// ResultVersion is raised when a field of Result changes its meaning.
const ResultVersion = 1

// End has the measurements of one end in its window. The windows of the two ends begin at
// the same time, except for the delay of one message.
type End struct {
	Role string `json:"role"` // client or server
	// Seconds is the length of the window. A stream that ends early has a shorter one, and
	// rates use the stream's time.
	Seconds       float64  `json:"seconds"`
	SentBytes     int64    `json:"sent_bytes"`
	ReceivedBytes int64    `json:"received_bytes"`
	SentBits      float64  `json:"sent_bps"`     // payload written to the sockets of all streams, bits per second
	ReceivedBits  float64  `json:"received_bps"` // payload read from the sockets, bits per second
	CPU           CPU      `json:"cpu"`
	Errors        int64    `json:"errors"`
	Retransmits   int64    `json:"retransmits"`        // TCP segments of this end's sockets
	Transactions  float64  `json:"transactions_per_s"` // on the client
	Lost          int64    `json:"lost_transactions"`  // UDP requests without a response in time
	Latency       *Latency `json:"latency,omitempty"`
	Flows         []Flow   `json:"flows"`
}

// CPU is the process's CPU time in the window, by getrusage. It does not include the
// kernel's work in softirqs.
type CPU struct {
	User   float64 `json:"user_s"`
	System float64 `json:"system_s"`
}

// Flow has the measurements of one worker.
type Flow struct {
	flow
	Bytes int64 `json:"bytes"`
	// Began is the start of the flow's window: CLOCK_MONOTONIC of this end, ns.
	Began        int64   `json:"began_ns"`
	Seconds      float64 `json:"seconds"`
	Bits         float64 `json:"bps"`
	Calls        int64   `json:"calls"`
	Errors       int64   `json:"errors"`
	Retransmits  int64   `json:"retransmits"`
	Transactions int64   `json:"transactions"`
	Lost         int64   `json:"lost_transactions"`
	// Datagrams in the window of the end's own clock. A sender counts those that it marks as
	// datagrams of the window.
	Datagrams int64 `json:"datagrams"`
	// AllDatagrams counts the whole run, warm-up and cool-down included.
	AllDatagrams int64 `json:"all_datagrams"`
	// At a receiver: the longest time in the window in which it got nothing, ns.
	Silence int64 `json:"longest_silence_ns,omitempty"`
	// At a receiver of numbered datagrams: the datagrams that the sender sent in its
	// window. It is absent if datagrams are too small for a number.
	Numbered *Numbered `json:"numbered,omitempty"`
}

// Numbered counts the datagrams that the sender sent in its window.
type Numbered struct {
	Received   int64   `json:"received"` // without duplicates
	Reordered  int64   `json:"reordered"`
	Duplicates int64   `json:"duplicates"`
	Jitter     float64 `json:"jitter_ns"` // RFC 3550, at the end of the run
	// Missing are the datagrams that did not arrive between the first one of the window and
	// the first one behind it. The receiver's full socket dropped Overflow of them. Both are 0
	// if no datagram from behind the window arrived.
	Missing  int64 `json:"missing"`
	Overflow int64 `json:"overflow"`
}

func (r Result) ends() []End {
	if r.Remote == nil {
		return []End{r.Local}
	}
	return []End{r.Local, *r.Remote}
}

// Flows lists the flows of both ends in a role ("send" or "receive").
func (r Result) Flows(role string) (flows []Flow) {
	for _, e := range r.ends() {
		for _, f := range e.Flows {
			if f.Role == role {
				flows = append(flows, f)
			}
		}
	}
	return flows
}

// Rate sums the rates of the flows of a direction in a role ("send" or
// "receive") over both ends, payload bits per second.
func (r Result) Rate(direction suite.Direction, role string) (bits float64) {
	for _, f := range r.Flows(role) {
		if f.Direction == string(direction) {
			bits += f.Bits
		}
	}
	return bits
}

// Silence returns the longest time in which a stream received nothing, ns.
func (r Result) Silence() (longest int64) {
	for _, e := range r.ends() {
		for _, f := range e.Flows {
			longest = max(longest, f.Silence)
		}
	}
	return longest
}

// Datagrams counts the datagrams of a UDP stream, over both ends and all flows.
type Datagrams struct {
	Sent, Received         int64 // in the sender's window; datagrams without numbers: each in the window of that end
	SentPerS, ReceivedPerS float64
	Lost                   int64 // lost datagrams of Counted
	Counted                int64 // datagrams sent whose loss is known
	Reordered              int64
	Duplicates             int64
	Missing, Overflow      int64 // sums of those in Numbered
	Numbered               bool  // the five fields before are known
}

// Datagrams counts the datagrams of a UDP stream. If they are numbered, the loss is exactly
// that of the sender's window. If they are too small for a number, it is the loss of the
// whole run.
func (r Result) Datagrams() (d Datagrams) {
	for _, f := range r.Flows(roleSend) {
		d.Sent += f.Datagrams
		d.SentPerS += perSecond(f.Datagrams, f.Seconds)
	}
	for _, f := range r.Flows(roleReceive) {
		d.account(f, r.sender(f))
	}
	return d
}

func (d *Datagrams) account(received Flow, sender *Flow) {
	n := received.Numbered
	if sender == nil || n == nil {
		d.Received += received.Datagrams
		d.ReceivedPerS += perSecond(received.Datagrams, received.Seconds)
	}
	if sender == nil {
		return
	}
	sent, got := sender.AllDatagrams, received.AllDatagrams
	if n != nil {
		sent, got = sender.Datagrams, n.Received
		d.Received += got
		d.ReceivedPerS += perSecond(got, sender.Seconds)
		d.Numbered = true
		d.Reordered += n.Reordered
		d.Duplicates += n.Duplicates
		d.Missing += n.Missing
		d.Overflow += n.Overflow
	}
	d.Counted += sent
	d.Lost += max(0, sent-got)
}

// sender returns the other end of a flow that was received.
func (r Result) sender(received Flow) *Flow {
	for _, f := range r.Flows(roleSend) {
		if f.Index == received.Index {
			return &f
		}
	}
	return nil
}

func perSecond(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}

// The roles of a flow's two ends.
const (
	roleSend    = "send"
	roleReceive = "receive"
	roleRequest = "request"
	roleRespond = "respond"
)

// figures returns a worker's counts in the window.
func (w *worker) figures() (Flow, error) {
	a, b := w.begin, w.end
	if w.ended > 0 {
		b.at = min(b.at, w.ended) // the counters have not changed since
	}
	if a.at == 0 || b.at <= a.at {
		return Flow{}, fmt.Errorf("stream %d ended before its window began", w.flow.Index)
	}
	f := Flow{
		flow:         w.flow,
		Bytes:        b.bytes - a.bytes,
		Seconds:      float64(b.at-a.at) / 1e9,
		Calls:        b.calls - a.calls + b.datagrams - a.datagrams,
		Errors:       b.errors - a.errors,
		Retransmits:  w.segments[1] - w.segments[0],
		Transactions: b.transactions - a.transactions,
		Lost:         w.lost,
		Datagrams:    b.datagrams - a.datagrams,
		AllDatagrams: w.tally.read().datagrams,
	}
	if w.marked > 0 {
		f.Datagrams = w.marked
	}
	f.Bits = float64(f.Bytes) * 8 / f.Seconds
	if w.flow.Role == roleReceive {
		f.Silence = w.silence.longest
	}
	if s := &w.sequence; w.flow.Role == roleReceive && !w.tcp && len(w.buf) > headerSize {
		f.Numbered = &Numbered{Received: s.inWindow, Reordered: s.reordered, Duplicates: s.duplicates, Jitter: s.jitter}
		if dropped, missing, ok := w.overflow.result(s.inWindow); ok {
			f.Numbered.Missing, f.Numbered.Overflow = missing, dropped
		}
	}
	return f, nil
}

// end adds up the results of the workers at this end of a run. If the run was
// interrupted, a worker may end early without an error.
func (c *conductor) end(role, peer string, interrupted bool) (End, error) {
	if err := c.crew.fault(); err != nil && !interrupted {
		return End{}, fmt.Errorf("traffic with the %s: %w", peer, err)
	}
	window, err := c.window()
	if err != nil {
		return End{}, err
	}
	e := End{Role: role, Seconds: window.seconds, CPU: window.cpu}
	atEpoch, err := monotonicAtEpoch()
	if err != nil {
		return End{}, err
	}
	histogram := newHistogram()
	var course []sample.RoundTrips
	for _, w := range c.crew.workers {
		f, err := w.figures()
		if err != nil {
			return End{}, err
		}
		f.Began = w.begin.at + atEpoch
		e.Flows = append(e.Flows, f)
		e.Errors += f.Errors
		e.Retransmits += f.Retransmits
		e.Lost += f.Lost
		switch f.Role {
		case roleSend:
			e.SentBytes += f.Bytes
			e.SentBits += f.Bits
		case roleReceive:
			e.ReceivedBytes += f.Bytes
			e.ReceivedBits += f.Bits
		case roleRequest, roleRespond:
			e.Transactions += perSecond(f.Transactions, f.Seconds)
		}
		if w.latency != nil {
			histogram.Merge(w.latency)
			course = append(course, w.course.roundTrips(w.begin.at)...)
		}
	}
	e.Latency, err = summarise(histogram, course)
	return e, err
}
