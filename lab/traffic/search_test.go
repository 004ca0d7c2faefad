package traffic

import (
	"errors"
	"math"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

// network is a queue in front of a receiver that takes 100 Mbit/s, and a sender that sends at most
// the given rate. It counts the trials. stalls names trials in which a stall loses 1 %.
type network struct {
	sender float64
	stalls map[int]bool
	leaks  bool // if the sender is faster than the capacity, a tenth of the datagrams is lost
	deep   bool // a short trial of less than 150 Mbit/s ends before the queue is full, so it loses nothing
	trials int
}

func (n *network) try(rate int64, long bool) (searched, error) {
	const capacity = 100e6
	n.trials++
	sent := n.sender
	if rate > 0 {
		sent = min(sent, float64(rate))
	}
	s := searched{sent: sent, received: min(sent, capacity)}
	if n.deep && !long && sent < 1.5*capacity {
		s.received = sent
	}
	if n.leaks && sent > capacity {
		s.received = 0.9 * sent
	}
	s.loss = 1 - s.received/s.sent
	if n.stalls[n.trials] {
		s.loss += 0.01
	}
	return s, nil
}

func TestTheSearchFindsTheHighestRateWithinTheLoss(t *testing.T) {
	for _, c := range []struct {
		name        string
		sender      float64
		stalls      map[int]bool
		leaks, deep bool
		most        int // trials
	}{
		{"a sender a little faster", 101e6, nil, false, false, 7},
		{"a sender far faster", 5e9, nil, false, false, 13},
		{"single stalls", 400e6, map[int]bool{3: true, 5: true, 8: true}, false, false, 1 + 2*searchRates},
		{"an overloaded network that carries most", 1e9, nil, true, false, 1 + 2*searchRates},
		{"a deep queue", 1e9, nil, false, true, 1 + 2*searchRates + 2},
		{"a deep queue that a sender does not fill", 140e6, nil, false, true, 4},
	} {
		n := &network{sender: c.sender, stalls: c.stalls, leaks: c.leaks, deep: c.deep}
		rate := must.Get(search{0.001, n.try}.rate())(t)
		least := 1 / searchWidth
		if c.deep {
			least = longStep
		}
		if highest := 100e6 / (1 - 0.001); float64(rate) > highest || float64(rate) < least*highest/1.001 {
			t.Errorf("%s: the search found %d bit/s of %.0f", c.name, rate, highest)
		}
		if n.trials > c.most {
			t.Errorf("%s: the search made %d trials, want at most %d", c.name, n.trials, c.most)
		}
	}
}

func TestASenderThatLosesNothingIsNotPaced(t *testing.T) {
	n := &network{sender: 90e6}
	must.Equal(t, 0, must.Get(search{0.001, n.try}.rate())(t))
	must.Equal(t, 2, n.trials) // a short one and a long one
}

func TestALossAtEachRateEndsTheSearch(t *testing.T) {
	trials := 0
	_, err := search{0.001, func(int64, bool) (searched, error) {
		trials++
		return searched{sent: 1e9, received: 9e8, loss: 0.1}, nil
	}}.rate()
	must.Fail(t, err, "0.1 % of the datagrams are lost", "look for the cause")
	must.Equal(t, 1+2*searchRates, trials)
}

func TestALossInEachLongTrialEndsTheSearch(t *testing.T) {
	trials := 0
	_, err := search{0.001, func(rate int64, long bool) (searched, error) {
		if !long {
			return searched{sent: 1e9, received: 1e9}, nil
		}
		trials++
		return searched{sent: 1e9, received: 9e8, loss: 0.1}, nil
	}}.rate()
	must.Fail(t, err, "in trials as long as the measurement", "0.1 % of the datagrams are lost", "look for the cause")
	must.Equal(t, 2*longRates, trials)
}

func TestALongTrialTakesAsLongAsTheMeasurement(t *testing.T) {
	own := suite.Timing{Warmup: 300 * time.Millisecond, Duration: 800 * time.Millisecond}
	must.Equal(t, own, searchTiming(own, true))
	must.Equal(t, suite.Timing{Warmup: searchWarmup, Duration: searchWindow}, searchTiming(own, false))
	must.Equal(t, suite.Timing{Warmup: longest / 4, Duration: longest * 3 / 4}, searchTiming(suite.Timing{Warmup: time.Minute, Duration: time.Hour}, true))
}

func TestAFailedTrialEndsTheSearch(t *testing.T) {
	_, err := search{0.001, func(int64, bool) (searched, error) { return searched{}, errors.New("gone") }}.rate()
	must.Fail(t, err, "gone")
}

func TestAServerForOneClientServesItsSearchToo(t *testing.T) {
	r := run(t, "127.0.0.1", "-kind", "udp_stream", "-buffer", "64", "-loss", "0.01", "-duration", "300ms")
	w := r.Spec.Workload
	must.Equal(t, 0.01, w.Loss)
	if sent := float64(w.Rate); sent > 0 && r.Local.SentBits > 1.1*sent || math.IsNaN(r.Local.SentBits) || r.Local.SentBits <= 0 {
		t.Errorf("the sender sent %.0f bit/s; the search found %d", r.Local.SentBits, w.Rate)
	}
	if d := r.Datagrams(); !d.Numbered || d.Counted == 0 {
		t.Errorf("the datagrams of the window are not counted: %+v", d)
	}
}

// A request that waited behind a late response counts from the time at which it was due.
func TestPacedRequestsCountFromTheTimeAtWhichTheyAreDue(t *testing.T) {
	const interval = int64(1e6)
	w := &worker{stage: &stage{}, until: stopping, pace: pacer{interval: float64(interval)}}
	start := now()
	first, more := w.next(start)
	if !more || first < start+interval {
		t.Errorf("the first request went %d ns after the start, want %d", first-start, interval)
	}
	for i := int64(2); i <= 4; i++ {
		began, _ := w.next(start + 10*interval)
		must.Equal(t, start+i*interval, began)
	}
	w.stage.phase.Store(stopping)
	if _, more := w.next(start); more {
		t.Error("requests are still sent after the end of the run")
	}
}

func TestAShareOfTheCapacityIsThePace(t *testing.T) {
	for _, kind := range []string{"tcp_rr", "udp_rr", "tcp_crr"} {
		r := run(t, "127.0.0.1", "-kind", kind, "-of-capacity", "0.5", "-warmup", "100ms", "-duration", "300ms", "-cooldown", "50ms")
		// Requests are due from the start of the warm-up. So in the window go at most those of 400 ms.
		if pace := r.Spec.Workload.Pace; r.Local.Transactions > 1.5*pace {
			t.Errorf("%s: %v transactions/s at a pace of %v/s", kind, r.Local.Transactions, pace)
		}
		if r.Spec.Workload.Pace <= 0 || r.Local.Latency == nil || r.Local.Transactions <= 0 {
			t.Errorf("%s: pace %v, %v transactions/s, latency %v", kind, r.Spec.Workload.Pace, r.Local.Transactions, r.Local.Latency)
		}
	}
}
