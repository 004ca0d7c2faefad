package tool

import (
	"cmp"
	"errors"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// iperf3Flow has the figures of both ends for one direction of a run.
type iperf3Flow struct {
	sent, sentPackets, retransmits steps // from the sending end; bits, datagrams, segments
	received, packets, lost        steps // from the receiving end; packets includes lost
	totalSent, totalReceived       *iperf3Sum
}

// iperf3Flows sorts the sums of both ends by direction. An end and its "sender" flag
// give the direction of a sum.
func iperf3Flows(client *iperf3Report, d suite.Direction) (forward, reverse *iperf3Flow) {
	forward, reverse = &iperf3Flow{}, &iperf3Flow{}
	clientSends := d != suite.Reverse
	client.sort(forward, reverse, clientSends)
	if client.Server != nil {
		client.Server.sort(reverse, forward, !clientSends)
	}
	forward.totalSent, forward.totalReceived = client.End.Sent, client.End.Received
	reverse.totalSent, reverse.totalReceived = client.End.SentReverse, client.End.ReceivedReverse
	if d == suite.Reverse {
		reverse.totalSent, reverse.totalReceived = client.End.Sent, client.End.Received
	}
	return forward, reverse
}

// sort adds the intervals of one end to the flows: out is the flow that the end sends,
// in the flow that it receives. Old versions print no "sender" flag. Then sends is
// true if the end sends in the first sum of an interval.
func (r *iperf3Report) sort(out, in *iperf3Flow, sends bool) {
	for _, i := range r.Intervals {
		i.Sum.addTo(out, in, sends)
		i.Reverse.addTo(out, in, !sends)
	}
}

func (s *iperf3Sum) addTo(out, in *iperf3Flow, sends bool) {
	if s == nil || s.Omitted || s.Start == nil || s.End == nil || s.Bytes == nil {
		return
	}
	if s.Sender != nil {
		sends = *s.Sender
	}
	at := func(amount *float64) step { return step{from: *s.Start, to: *s.End, amount: *amount} }
	bits := *s.Bytes * 8
	if sends {
		out.sent = append(out.sent, at(&bits))
		if s.Packets != nil {
			out.sentPackets = append(out.sentPackets, at(s.Packets))
		}
		if s.Retransmits != nil {
			out.retransmits = append(out.retransmits, at(s.Retransmits))
		}
		return
	}
	in.received = append(in.received, at(&bits))
	if s.Packets != nil && s.Lost != nil {
		in.packets = append(in.packets, at(s.Packets))
		in.lost = append(in.lost, at(s.Lost))
	}
}

// iperf3Result has the figures of one flow, or the sums of several flows. Rates are
// per second. An unknown figure is nil.
type iperf3Result struct {
	received                 float64  // bits per second
	sent                     *float64 // bits per second
	sentPackets              *float64 // datagrams per second
	packets, lost, seconds   float64  // expected datagrams, lost datagrams, and the seconds of their period; 0 if unknown
	retransmits              *float64 // segments
	whole                    bool     // over the whole run, not the window
	receivedPacketsPerSecond float64
}

// result returns the figures within the window if both ends cover enough of it, else
// over the whole run.
func (f *iperf3Flow) result(t suite.Timing) (iperf3Result, error) {
	from, to := t.Warmup.Seconds(), (t.Warmup + t.Duration).Seconds()
	received, ok := f.received.rate(from, to)
	sent, both := f.sent.rate(from, to)
	if !ok || !both {
		return f.wholeRun()
	}
	r := iperf3Result{received: received, sent: &sent}
	if n, found := f.sentPackets.rate(from, to); found {
		r.sentPackets = &n
	}
	if n, seconds := f.retransmits.over(from, to); seconds > 0 {
		r.retransmits = &n
	}
	r.packets, r.seconds = f.packets.over(from, to)
	r.lost, _ = f.lost.over(from, to)
	r.countDatagrams()
	if received <= 0 {
		return r, errors.New("no data arrived within the measured part of the run")
	}
	return r, nil
}

// wholeRun returns the figures over the whole run, from the sums that iperf3 prints.
func (f *iperf3Flow) wholeRun() (iperf3Result, error) {
	s := f.totalReceived
	if s == nil || s.Bits == nil {
		return iperf3Result{}, errors.New("the JSON has no sum of the received data")
	}
	if *s.Bits == 0 {
		return iperf3Result{}, errors.New("no data arrived in the whole run")
	}
	r := iperf3Result{received: *s.Bits, whole: true}
	if s.Packets != nil && s.Lost != nil && s.Seconds != nil {
		r.packets, r.lost, r.seconds = *s.Packets, *s.Lost, *s.Seconds
	}
	r.countDatagrams()
	if sent := f.totalSent; sent != nil {
		r.sent, r.retransmits = sent.Bits, sent.Retransmits
		if sent.Packets != nil && sent.Seconds != nil && *sent.Seconds > 0 {
			perSecond := *sent.Packets / *sent.Seconds
			r.sentPackets = &perSecond
		}
	}
	return r, nil
}

// countDatagrams computes the loss. If a datagram arrives late, iperf3 subtracts it
// from the lost datagrams. So the loss in a part of a run can be negative.
func (r *iperf3Result) countDatagrams() {
	r.lost = max(0, r.lost)
	if r.seconds > 0 {
		r.receivedPacketsPerSecond = (r.packets - r.lost) / r.seconds
	}
}

// add sums two flows that ran at once.
func (r *iperf3Result) add(o iperf3Result) {
	r.received += o.received
	r.packets += o.packets
	r.lost += o.lost
	r.seconds = max(r.seconds, o.seconds)
	r.receivedPacketsPerSecond += o.receivedPacketsPerSecond
	r.sent = plus(r.sent, o.sent)
	r.sentPackets = plus(r.sentPackets, o.sentPackets)
	r.retransmits = plus(r.retransmits, o.retransmits)
}

// plus adds two values. If one is unknown, the sum is the other value.
func plus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	sum := *a + *b
	return &sum
}

// udp sets the figures of a UDP stream.
func (r *iperf3Result) udp(w suite.Workload, ms sample.Metrics) {
	setOfferedRate(w, ms)
	if r.sentPackets != nil {
		ms.Set(sample.DatagramsSent, *r.sentPackets)
	}
	if r.packets > 0 && r.seconds > 0 {
		ms.Set(sample.LossRatio, r.lost/r.packets)
		ms.Set(sample.DatagramsReceived, r.receivedPacketsPerSecond)
	}
}
