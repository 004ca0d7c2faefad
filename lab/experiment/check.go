package experiment

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/tool"
)

const (
	// tolerance is the accepted difference between the throughput of the tool and
	// that of the fabric, as a share.
	tolerance = 0.10
	// slack is the uncertainty of the edges of the tool's window: tools connect
	// after their start, and the series has steps of 100 ms.
	slack = 0.1 // s
)

// check fails if a stream's throughput contradicts the fabric's counters.
func (m *meters) check(said tool.Measurement) error {
	w := m.traffic.bench.scenario.Workload
	if m.colocated() || !w.Kind.Stream() {
		return nil
	}
	from, to := m.measured(said)
	if err := contradiction(m.traffic.sample, w.Kind, from, to); err != nil {
		return failed(sample.Invalid, "%s: %w%s", m.traffic.bench.scenario.tool.Name(), err, unread(w))
	}
	return nil
}

// unread returns a remedy if received data can wait in the socket buffers, where the tool does not count it. That is so
// if a workload has several streams and no receive_buffer. Otherwise unread returns "".
func unread(w suite.Workload) string {
	if w.Kind != suite.TCPStream || w.Streams < 2 || w.ReceiveBuffer > 0 {
		return ""
	}
	return fmt.Sprintf(". Received data can wait in the socket buffers of the %d connections, where the tool does not count it: limit the buffers, for example with receive_buffer: 256k in the workload", w.Streams)
}

// measured returns the period over which the tool's rates are means, s since the start of
// the meter's window. A busy CPU delays a tool's clocks and the meter's reading, each by
// tenths of a second. So the real times count, if the tool prints them by the clock of the
// engine's kernel.
func (m *meters) measured(said tool.Measurement) (from, to float64) {
	sc, start := m.traffic.bench.scenario, m.start.nodes[0].Mono
	foreign := sc.Endpoint.Kind == suite.VM || slices.ContainsFunc(m.traffic.bench.clocks, func(ahead time.Duration) bool { return ahead != 0 })
	if said.Ended > 0 && !foreign {
		return time.Duration(said.Began - start).Seconds(), time.Duration(said.Ended - start).Seconds()
	}
	began, ended := said.Span(sc.Timing)
	traffic := time.Duration(m.began - start)
	return (began + traffic).Seconds(), (ended + traffic).Seconds()
}

// contradiction compares a sample's throughput with the fabric's count. from and to
// are the edges of the tool's window, in s since the start of the meter's window.
//
// The fabric also counts datagrams that the receiver's socket drops, and can count
// datagrams that are lost after the fabric. Its count lies between the datagrams
// that arrived at the socket and the datagrams that were sent.
func contradiction(s *sample.Sample, kind suite.Kind, from, to float64) error {
	said, ok1 := s.Metrics[sample.Throughput]
	counted, ok2 := s.Metrics[sample.FabricGoodput]
	if !ok1 || !ok2 {
		return nil
	}
	arrived, sent := said, said
	if loss := s.Metrics[sample.LossRatio]; kind == suite.UDPStream && loss > 0 && loss < 1 {
		sent = said / (1 - loss)
		if way, ok := s.Metrics[sample.PathLoss]; ok {
			arrived = sent * (1 - way)
		}
	}
	least, most := carried(counted, s.Series, s.Metrics[sample.WindowSeconds], from, to)
	if most >= arrived*(1-tolerance) && least <= sent*(1+tolerance) {
		return nil
	}
	text := fmt.Sprintf("it reports %.0f bit/s", said)
	if sent > said {
		text += fmt.Sprintf(" delivered, %.0f bit/s at the receiver's socket and %.0f bit/s sent", arrived, sent)
	}
	return errors.New(text + fmt.Sprintf(", and the fabric's counters stand for %.0f to %.0f bit/s of payload: more than %.0f %% apart", least, most, 100*tolerance))
}

// carried returns the least and the most payload, in bits per second, that the
// fabric carried between from and to, if each edge can be wrong by slack. counted
// is the rate in the meter's window, 0 to window. The series gives the ratio of the
// rates in the two windows. Without a series both results are counted.
func carried(counted float64, series []sample.Point, window, from, to float64) (least, most float64) {
	own, ok := meanBits(series, 0, window)
	if !ok || own <= 0 {
		return counted, counted
	}
	var others []float64
	for _, a := range []float64{-slack, 0, slack} {
		for _, b := range []float64{-slack, 0, slack} {
			if mean, ok := meanBits(series, from+a, to+b); ok {
				others = append(others, counted*mean/own)
			}
		}
	}
	if len(others) == 0 {
		return counted, counted
	}
	return slices.Min(others), slices.Max(others)
}

// lost returns the share of a UDP stream's datagrams that were lost, by the tool's
// report; nil if it reports none.
func lost(kind suite.Kind, said tool.Measurement) *float64 {
	loss, ok := said.Metrics[sample.LossRatio]
	if !ok || kind != suite.UDPStream {
		return nil
	}
	return &loss
}

// meanBits returns the mean rate of a series in [from, to]; ok is false if the
// series covers less than nine tenths of that time.
func meanBits(series []sample.Point, from, to float64) (mean float64, ok bool) {
	bits, seconds := 0.0, 0.0
	for i := 1; i < len(series); i++ {
		if inside := min(series[i].At, to) - max(series[i-1].At, from); inside > 0 {
			bits += series[i].Bits * inside
			seconds += inside
		}
	}
	return bits / seconds, seconds > 0 && seconds >= 0.9*(to-from)
}
