package meter

import (
	"bytes"
	"fmt"
	"time"
)

// ReadLight takes a light reading into l. It reuses slices of l that are large
// enough.
func (m *Meter) ReadLight(l *Light) error {
	m.light.Lock()
	defer m.light.Unlock()
	l.Idle, l.Steal = resize(l.Idle, len(m.config.CPUs)), resize(l.Steal, len(m.config.CPUs))
	l.Traffic = resize(l.Traffic, len(m.series))
	clear(l.Traffic)
	var err error
	if l.Mono, err = m.readCPUs(); err != nil {
		return err
	}
	for i, t := range m.times {
		l.Idle[i], l.Steal[i] = -1, int64(t.Steal)*tickNanoseconds
		if m.seen[i] {
			l.Idle[i] = t.idle() + l.Steal[i]
		}
	}
	for i, s := range m.series {
		if i > 0 && s.namespace == m.series[i-1].namespace {
			continue // read together with the previous device
		}
		if err := m.readSeries(s.namespace, l.Traffic); err != nil {
			return err
		}
	}
	return nil
}

// idle is idle and iowait time in nanoseconds.
func (t CPUTimes) idle() int64 {
	if t.FineIdle > 0 {
		return t.FineIdle
	}
	return int64(t.Idle+t.IOWait) * tickNanoseconds
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// readSeries fills in the traffic of the series devices of one namespace.
func (m *Meter) readSeries(n *namespace, to []Traffic) error {
	text, err := n.dev.read(&m.buf)
	if err != nil {
		return n.wrap(err)
	}
	err = eachNetDev(text, func(name []byte, t Traffic) {
		for i, s := range m.series {
			if s.namespace == n && string(name) == s.name {
				to[i] = t
			}
		}
	})
	if err != nil {
		return n.wrap(err)
	}
	return nil
}

// Record takes a light reading at once, then one every interval without drift
// until stop is closed, and one more at the end. It stops by itself after most
// readings.
func (m *Meter) Record(every time.Duration, most int, stop <-chan struct{}) ([]Light, error) {
	if every <= 0 || most <= 0 {
		return nil, fmt.Errorf("record a series every %v, at most %d readings: both must be positive", every, most)
	}
	series := make([]Light, 0, min(most, 1024))
	take := func() error {
		series = append(series, Light{})
		return m.ReadLight(&series[len(series)-1])
	}
	if err := take(); err != nil {
		return nil, err
	}
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for len(series) < most {
		select {
		case <-stop:
			err := take() // before series is read: take makes it longer
			return series, err
		case <-ticks.C:
			if err := take(); err != nil {
				return series, err
			}
		}
	}
	<-stop
	return series, nil
}

// Traffic has the received and sent bytes and packets of a device since it was
// made.
type Traffic struct {
	RxBytes   uint64 `json:"rx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	TxBytes   uint64 `json:"tx_bytes"`
	TxPackets uint64 `json:"tx_packets"`
}

const netDevFile = "/proc/net/dev"

// eachNetDev visits the devices of /proc/net/dev. The name is valid only during
// the visit.
func eachNetDev(text []byte, visit func(name []byte, t Traffic)) error {
	s := scanner{text}
	for row := 0; ; row++ {
		line, ok := s.line()
		if !ok {
			return nil
		}
		if row < 2 {
			continue // two lines of headings
		}
		// A device name contains no colon, space or slash (dev_valid_name,
		// net/core/dev.c). The counters may follow the colon without a space.
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if name = bytes.TrimLeft(name, " "); !ok || len(name) == 0 {
			return badLine(netDevFile, line, "a device name and a colon")
		}
		t, ok := traffic(scanner{rest})
		if !ok {
			return badLine(netDevFile, line, "16 decimal counters")
		}
		visit(name, t)
	}
}

func traffic(fields scanner) (t Traffic, ok bool) {
	to := [16]*uint64{0: &t.RxBytes, 1: &t.RxPackets, 8: &t.TxBytes, 9: &t.TxPackets}
	for i := range to {
		n, ok := decimal(fields.field())
		if !ok {
			return t, false
		}
		if to[i] != nil {
			*to[i] = n
		}
	}
	return t, true
}
