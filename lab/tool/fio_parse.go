package tool

import (
	"fmt"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// fioRun has the documents of both ends of one job. A server that was ended early may
// have no documents.
type fioRun struct {
	job            Job
	client, server []fioDocument
}

// Parse uses the figures of the end that receives. If the server's output does not
// cover the window, Parse uses the data that the client sent: TCP loses no data.
func (t Fio) Parse(job Job, outputs map[string]Output) (Measurement, error) {
	out, err := outputOf(t.Name(), "client", outputs)
	if err != nil {
		return Measurement{}, err
	}
	run := &fioRun{job: job}
	if run.client, err = readFio(out.Stdout); err != nil {
		return Measurement{}, noResult(t.Name(), "%v: %q", err, lastWords(out.Stdout+" "+out.Stderr))
	}
	if last := run.client[len(run.client)-1].Jobs[0]; last.Error != 0 {
		return Measurement{}, reportedError(t.Name(), "the client reports error %d (errno): %s", last.Error, lastWords(out.Stderr))
	}
	if server := outputs["server"].Stdout; server != "" {
		run.server, _ = readFio(server) // a missing document is handled below
	}
	m := Measurement{Metrics: sample.Metrics{}, Warnings: fragments(job)}
	switch {
	case job.Workload.Kind.Exchange():
		err = run.transactions(m.Metrics)
	case job.Workload.Kind == suite.UDPStream:
		err = run.datagrams(m.Metrics)
	default:
		err = run.stream(&m)
	}
	if err != nil {
		return Measurement{}, noResult(t.Name(), "%v", err)
	}
	return sound(t.Name(), m)
}

// clientRate returns transfers per second at the client. The client's clock begins at
// the end of its warm-up. The output of a client that ended without error is complete.
func (r *fioRun) clientRate(side func(fioDocument) fioSide) (float64, fioFlow, error) {
	f, err := fioCourse(r.client, side)
	if err != nil || f.took == 0 {
		return 0, f, err
	}
	const most = 0.95 // of the planned time; below it the output is truncated
	t := r.job.Timing
	rate, ok := f.rate(0, t.Duration)
	if planned := (t.Duration + t.Cooldown).Seconds(); !ok || f.took < most*planned {
		return 0, f, fmt.Errorf("the client's output covers %.3f s of its traffic, and %.3f s were planned", f.took, planned)
	}
	return rate, f, nil
}

// serverRate returns transfers per second at the server. The server's clock begins
// with the connection. The rate is 0 if the server was ended before its output covered
// the window.
func (r *fioRun) serverRate(side func(fioDocument) fioSide) (float64, error) {
	f, err := fioCourse(r.server, side)
	if err != nil {
		return 0, err
	}
	rate, _ := f.rate(fioWarmup(r.job.Timing), r.job.Timing.Duration)
	return rate, nil
}

// stream sets throughputs.
func (r *fioRun) stream(m *Measurement) error {
	bits := float64(r.job.Workload.Buffer) * 8
	clientSends, _, err1 := r.clientRate(writing)
	clientReceives, _, err2 := r.clientRate(reading)
	serverSends, err3 := r.serverRate(writing)
	serverReceives, err4 := r.serverRate(reading)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return err
		}
	}
	ms := m.Metrics
	way := r.job.Workload.Direction
	received := clientReceives + serverReceives
	if way != suite.Reverse && serverReceives == 0 {
		received += clientSends
		m.Warnings = append(m.Warnings, "fio's server printed no figures for the window: forward throughput is the data that the client sent")
	} else {
		ms.Set(sample.ReceiverThroughput, received*bits)
	}
	ms.Set(sample.Throughput, received*bits)
	if way == suite.Forward || way == "" || serverSends > 0 { // else the server's part is unknown
		ms.Set(sample.SenderThroughput, (clientSends+serverSends)*bits)
	}
	if way == suite.Both {
		if clientSends == 0 || clientReceives == 0 {
			return fmt.Errorf("one of the two directions carried no data")
		}
		ms.Set(sample.ForwardThroughput, (received-clientReceives)*bits)
		ms.Set(sample.ReverseThroughput, clientReceives*bits)
	}
	return nil
}

// datagrams sets the figures of a UDP stream. The data is counted within windows of
// the same length at both ends.
func (r *fioRun) datagrams(ms sample.Metrics) error {
	sent, _, err := r.clientRate(writing)
	if err != nil {
		return err
	}
	arrived, err := r.serverRate(reading)
	if err != nil {
		return err
	}
	if arrived == 0 {
		return fmt.Errorf("the server's output does not cover the window, so the received data is unknown")
	}
	bits := float64(r.job.Workload.Buffer) * 8
	ms.Set(sample.Throughput, arrived*bits)
	ms.Set(sample.ReceiverThroughput, arrived*bits)
	ms.Set(sample.SenderThroughput, sent*bits)
	setDatagrams(r.job.Workload, sent, arrived, ms)
	return nil
}

// transactions sets rates within the window, and latencies after the warm-up. In
// pingpong mode a write ends when its answer arrives.
func (r *fioRun) transactions(ms sample.Metrics) error {
	rate, flow, err := r.clientRate(writing)
	if err != nil {
		return err
	}
	l := flow.whole.Latency
	if rate <= 0 || l.N <= 0 || l.Mean <= 0 {
		return fmt.Errorf("the result has no transactions")
	}
	ms.Set(sample.Transactions, rate)
	ms.Set(sample.LatencyMin, l.Min)
	ms.Set(sample.LatencyMean, l.Mean)
	ms.Set(sample.LatencyMax, l.Max)
	for key, metric := range map[string]sample.Metric{
		"50.000000": sample.LatencyP50, "90.000000": sample.LatencyP90, "99.000000": sample.LatencyP99, "99.900000": sample.LatencyP999,
	} {
		if v, found := l.Percentiles[key]; found {
			ms.Set(metric, v)
		}
	}
	return nil
}
