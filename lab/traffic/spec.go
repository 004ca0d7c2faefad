package traffic

import (
	"fmt"
	"time"

	"windtunnel/lab/suite"
)

// Spec has the settings of a run. The client sends them to the server.
type Spec struct {
	Workload suite.Workload `json:"workload"`
	Timing   suite.Timing   `json:"timing"`
	// Search: a short run before the run, which finds its rate. The server prints no result, and
	// does not end after it.
	Search bool `json:"search,omitempty"`
}

const (
	maxStreams  = 4096
	maxBuffer   = 1 << 30
	maxDatagram = 65507 // largest UDP payload over IPv4
	maxTime     = 24 * time.Hour
	maxRate     = int64(1e15) // bits per second
	maxWork     = 1e6         // ns per byte
	maxLoss     = 0.5
	maxPace     = 1e7 // requests per second
	maxDSCP     = 63
	maxSocket   = 1 << 30 // SO_SNDBUF and SO_RCVBUF are doubled by the kernel in an int
)

// Check returns an error for an invalid spec, with the names of the flags. Each end checks
// the spec, because the other end can be another version or another program.
func (s Spec) Check() error {
	if err := s.checkTiming(); err != nil {
		return err
	}
	w := s.Workload
	if err := s.checkLimits(); err != nil {
		return err
	}
	switch w.Kind {
	case suite.TCPStream, suite.UDPStream:
		return s.checkStream()
	case suite.TCPRR, suite.TCPCRR, suite.UDPRR:
		return s.checkTransactions()
	}
	return fmt.Errorf("-kind %q is unknown; there are tcp_stream, tcp_rr, tcp_crr, udp_stream and udp_rr", w.Kind)
}

func (s Spec) checkTiming() error {
	t := s.Timing
	if t.Duration <= 0 || t.Duration > maxTime {
		return fmt.Errorf("-duration %v is not above 0 and at most %v", t.Duration, maxTime)
	}
	if t.Warmup < 0 || t.Warmup > maxTime || t.Cooldown < 0 || t.Cooldown > maxTime {
		return fmt.Errorf("-warmup %v and -cooldown %v must lie between 0 and %v", t.Warmup, t.Cooldown, maxTime)
	}
	return nil
}

func (s Spec) checkLimits() error {
	w := s.Workload
	for _, l := range []struct {
		flag             string
		value, low, high int64
	}{
		{"-streams", int64(w.Streams), 1, maxStreams},
		{"-sndbuf", w.SendBuffer, 0, maxSocket},
		{"-rcvbuf", w.ReceiveBuffer, 0, maxSocket},
		{"-rate", w.Rate, 0, maxRate},
		{"-load", int64(w.Load), 0, maxStreams},
		{"-dscp", int64(w.DSCP), 0, maxDSCP},
	} {
		if l.value < l.low || l.value > l.high {
			return fmt.Errorf("%s %d does not lie between %d and %d", l.flag, l.value, l.low, l.high)
		}
	}
	if !(w.ReceiverWork >= 0 && w.ReceiverWork <= maxWork) {
		return fmt.Errorf("-work %v does not lie between 0 and %v ns", w.ReceiverWork, maxWork)
	}
	if w.ReceiverWork > 0 && w.Kind != suite.TCPStream {
		return fmt.Errorf("-work is of the receivers of tcp_stream, not of %s", w.Kind)
	}
	if w.Load > 0 && w.Kind != suite.TCPRR {
		return fmt.Errorf("-load adds streams beside tcp_rr, not beside %s", w.Kind)
	}
	if !(w.Loss >= 0 && w.Loss <= maxLoss) {
		return fmt.Errorf("-loss %v does not lie between 0 and %v", w.Loss, maxLoss)
	}
	if w.Loss > 0 && (w.Kind != suite.UDPStream || w.Buffer < headerSize) {
		return fmt.Errorf("-loss is of a udp_stream with datagrams of %d bytes or more, which have numbers", headerSize)
	}
	if w.IMIX && (w.Kind != suite.UDPStream || w.Buffer != suite.LargestIMIX) {
		return fmt.Errorf("-imix needs -kind udp_stream and -buffer %d, the size of its largest datagram", suite.LargestIMIX)
	}
	if !(w.OfCapacity >= 0 && w.OfCapacity <= 1 && w.Pace >= 0 && w.Pace <= maxPace) {
		return fmt.Errorf("-of-capacity %v and -pace %v must lie between 0 and 1, and 0 and %v", w.OfCapacity, w.Pace, maxPace)
	}
	if w.OfCapacity+w.Pace > 0 && !w.Kind.Exchange() {
		return fmt.Errorf("-of-capacity and -pace are of requests, not of %s", w.Kind)
	}
	if w.PacketPerSend && (w.Kind != suite.TCPStream || w.Sendfile) {
		return fmt.Errorf("-packet-per-send is of a tcp_stream without -sendfile")
	}
	if w.IPVersion != 4 && w.IPVersion != 6 {
		return fmt.Errorf("IP version %d is neither 4 nor 6", w.IPVersion)
	}
	return nil
}

func (s Spec) checkStream() error {
	w := s.Workload
	most, what := int64(maxBuffer), "a buffer"
	if w.Kind == suite.UDPStream {
		most, what = maxDatagram, "a datagram"
		if w.Sendfile {
			return fmt.Errorf("-sendfile sends TCP streams only, not %s", w.Kind)
		}
	}
	if w.Buffer < 1 || w.Buffer > most {
		return fmt.Errorf("-buffer %d: %s is of 1 to %d bytes", w.Buffer, what, most)
	}
	return s.checkDirection()
}

func (s Spec) checkDirection() error {
	switch s.Workload.Direction {
	case suite.Forward, suite.Reverse, suite.Both:
		return nil
	}
	return fmt.Errorf("-direction %q is unknown; there are forward, reverse and both", s.Workload.Direction)
}

func (s Spec) checkTransactions() error {
	w := s.Workload
	most := int64(maxBuffer)
	if w.Kind == suite.UDPRR {
		most = maxDatagram
	}
	if w.Request < 1 || w.Request > most || w.Response < 1 || w.Response > most {
		return fmt.Errorf("-request %d and -response %d must lie between 1 and %d bytes", w.Request, w.Response, most)
	}
	if w.Rate > 0 {
		return fmt.Errorf("-rate paces streams; %s runs as fast as its round trips allow", w.Kind)
	}
	if w.Load > 0 {
		return s.checkDirection()
	}
	return nil
}

// flows lists the connections or socket pairs between the ends. The streams beside
// request/response come last.
func (s Spec) flows() []flow {
	w := s.Workload
	if !w.Kind.Exchange() {
		return appendFlows(nil, w.Direction, w.Streams, false)
	}
	flows := appendFlows(nil, suite.Forward, w.Streams, false)
	if w.Load > 0 {
		flows = appendFlows(flows, w.Direction, w.Load, true)
	}
	return flows
}

// appendFlows appends this number of flows in each direction.
func appendFlows(flows []flow, direction suite.Direction, number int, load bool) []flow {
	directions := []suite.Direction{direction}
	if direction == suite.Both {
		directions = []suite.Direction{suite.Forward, suite.Reverse}
	}
	for _, d := range directions {
		for range number {
			flows = append(flows, flow{Index: len(flows), Direction: string(d), Load: load})
		}
	}
	return flows
}

// loadBuffer is the size of a send call of a stream beside request/response, bytes.
const loadBuffer = 128 << 10

// load returns the spec of the streams beside request/response.
func (s Spec) load() Spec {
	w := s.Workload
	s.Workload = suite.Workload{Kind: suite.TCPStream, Direction: w.Direction, Streams: w.Load, Buffer: loadBuffer, IPVersion: w.IPVersion}
	return s
}

func (s Spec) socketOptions() socketOptions {
	w := s.Workload
	return socketOptions{send: int(w.SendBuffer), receive: int(w.ReceiveBuffer), noDelay: w.NoDelay, pacing: w.StreamRate(), tos: tosOf(w)}
}
