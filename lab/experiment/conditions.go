package experiment

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"windtunnel/lab/cpudistance"
	"windtunnel/lab/meter"
	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
	"windtunnel/lab/validity"
)

// conditions measures the state of the machine during a run: the distance of the nodes'
// CPUs, and their memory speed.
type conditions struct {
	validity.Distance
	probe *cpudistance.Probe
	cpus  [2]int // of the probe
}

// between returns the probe of two CPUs, and opens it if needed.
func (c *conditions) between(a, b int) (*cpudistance.Probe, error) {
	if c.probe != nil && c.cpus == [2]int{a, b} {
		return c.probe, nil
	}
	c.close()
	var err error
	c.probe, err = cpudistance.Open(a, b)
	c.cpus = [2]int{a, b}
	return c.probe, err
}

func (c *conditions) close() {
	if c.probe != nil {
		c.probe.Close()
		c.probe = nil
	}
}

// conditionLog has the conditions and the fabric's clock during one trial.
type conditionLog struct {
	stop chan struct{}
	done sync.WaitGroup

	readings []cpudistance.Reading
	wire     []meter.WireReading
	err      error
}

// record reads every interval until finish is called. probe is nil where the
// nodes share their CPUs.
func record(every time.Duration, probe *cpudistance.Probe, clock func() (map[int]float64, error)) *conditionLog {
	r := &conditionLog{stop: make(chan struct{})}
	r.done.Go(func() {
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			if r.err = r.read(probe, clock); r.err != nil {
				return
			}
			select {
			case <-r.stop:
				r.err = r.read(nil, clock)
				return
			case <-ticks.C:
			}
		}
	})
	return r
}

func (r *conditionLog) read(probe *cpudistance.Probe, clock func() (map[int]float64, error)) error {
	used, err := clock()
	if err != nil {
		return err
	}
	mono, err := meter.Now()
	if err != nil {
		return err
	}
	if used != nil {
		r.wire = append(r.wire, meter.WireReading{Mono: mono, Used: used})
	}
	if probe == nil {
		return nil
	}
	d, err := probe.Persist()
	r.readings = append(r.readings, d)
	return err
}

func (r *conditionLog) finish() error {
	select {
	case <-r.stop:
	default:
		close(r.stop)
	}
	r.done.Wait()
	return r.err
}

// annotate sets distance and memory speed in the points of the series. origin is
// the Mono at the start of the window.
func annotate(points []sample.Point, readings []cpudistance.Reading, origin int64) {
	for i := range points {
		p := &points[i]
		var trips, senders, receivers []float64
		for _, r := range during(p, readings, origin) {
			if r.RoundTrip > 0 {
				trips = append(trips, r.RoundTrip)
			}
			if r.Copy[0] > 0 {
				senders, receivers = append(senders, 8*r.Copy[0]), append(receivers, 8*r.Copy[1])
			}
		}
		p.CPUDistance, _, _ = stats.Median(trips)
		p.SenderMemoryCopy, _, _ = stats.Median(senders)
		p.ReceiverMemoryCopy, _, _ = stats.Median(receivers)
	}
}

// during lists the readings within a slice.
func during(p *sample.Point, readings []cpudistance.Reading, origin int64) []cpudistance.Reading {
	from, to := origin+int64(1e9*(p.At-p.Seconds)), origin+int64(1e9*p.At)
	at := func(mono int64) int {
		i, _ := slices.BinarySearchFunc(readings, mono, func(r cpudistance.Reading, mono int64) int { return cmp.Compare(r.Mono, mono) })
		return i
	}
	return readings[at(from):at(to)]
}
