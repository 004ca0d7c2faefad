package traffic

import (
	"fmt"
	"math"
	"slices"
	"time"

	"windtunnel/lab/suite"
)

// search finds the highest rate at which at most the fraction bound of the datagrams is lost: the
// throughput of RFC 1242 and RFC 2544, with a bound above 0. A run with one rate is a trial.
type search struct {
	bound float64
	// try makes a trial at a rate of all streams in one direction, payload bits/s; 0 is as fast as possible. A long trial
	// takes as long as the measurement.
	try func(rate int64, long bool) (searched, error)
}

// searched has the figures of a trial of the search.
type searched struct {
	sent, received float64 // in one direction, payload bits/s
	loss           float64 // fraction of the datagrams sent
}

const (
	// searchWidth is the ratio of the lowest rate that loses too much to the highest that does
	// not, at which the search ends.
	searchWidth  = 1.02
	searchRates  = 15 // of short trials, after one at full speed; at most two trials at each rate
	searchWindow = 200 * time.Millisecond
	searchWarmup = 50 * time.Millisecond
	longRates    = 6               // of long trials; at most two at each
	longStep     = 0.9             // highest ratio of such a rate to the one before
	longest      = 2 * time.Second // warm-up and window of a long trial at most
	// SearchLimit is the longest time of a search. A short trial takes 0.4 s, most of it for its
	// connections and for late datagrams.
	SearchLimit = 45 * time.Second
)

// rate returns the rate, 0 if the sender at full speed stays within the bound. Long trials confirm the rate that short ones
// have found: the queues of a router in user space hold megabytes, and a short trial at too high a rate does not fill them.
func (s search) rate() (int64, error) {
	found, err := s.brief()
	for range longRates {
		if err != nil {
			return 0, err
		}
		var t searched
		if t, err = s.twice(found, true); err != nil || t.loss <= s.bound {
			return found, err
		}
		found = int64(max(min(t.received, longStep*t.sent), t.sent/2))
	}
	return 0, fmt.Errorf("more than %.3g %% of the datagrams are lost in trials as long as the measurement, at the last of %d rates above %.3g bit/s; give a higher loss, or look for the cause", 100*s.bound, longRates, float64(found))
}

// twice makes a trial, and another one if the first loses too much. It returns the figures of the better trial.
func (s search) twice(rate int64, long bool) (searched, error) {
	t, err := s.try(rate, long)
	if err != nil || t.loss <= s.bound {
		return t, err
	}
	again, err := s.try(rate, long)
	if again.loss < t.loss {
		t = again
	}
	return t, err
}

// brief finds the rate by short trials.
//
// It first sends as fast as possible. The rate that then arrives is the first guess: where a queue
// overflows, a lower rate brings no more. From a rate that passes it goes up by 5 %, 10 %, 22 %
// and so on, until a rate fails; then it divides the interval until it is narrow. A rate fails if
// two trials lose too much, because one stall of the machine of some ms loses as much as a search
// trial may lose.
func (s search) brief() (int64, error) {
	full, err := s.try(0, false)
	if err != nil || full.loss <= s.bound {
		return 0, err
	}
	low, high, guess, step := 0.0, full.sent, full.received, 1.05
	for rates := 0; high > low*searchWidth; rates++ {
		if rates == searchRates && low > 0 {
			return 0, fmt.Errorf("the search ended after %d rates, and the highest one can be anywhere between %.3g and %.3g bit/s; look for what makes the loss change at the same rate", rates, low, high)
		}
		if rates == searchRates {
			return 0, fmt.Errorf("more than %.3g %% of the datagrams are lost even at %.3g bit/s; give a higher loss, or look for the cause", 100*s.bound, high)
		}
		guess = min(guess, high/searchWidth)
		t, err := s.twice(int64(guess), false)
		switch {
		case err != nil:
			return 0, err
		case t.loss <= s.bound:
			low = guess
			guess = min(low*step, math.Sqrt(low*high))
			step *= step
		default:
			high = guess
			guess = max(math.Sqrt(low*high), high/2)
		}
	}
	return int64(low), nil
}

// search makes the trials for the highest rate, or for a share of the capacity, and sets the rate.
func (c *client) search() (err error) {
	w, deadline := &c.spec.Workload, time.Now().Add(SearchLimit)
	switch {
	case w.Loss > 0:
		w.Rate, err = search{w.Loss, func(rate int64, long bool) (searched, error) {
			trial := *w
			trial.Rate = rate
			r, err := c.trial(trial, deadline, long)
			return searchedOf(r), err
		}}.rate()
	case w.OfCapacity > 0:
		rates := make([]float64, 3)
		for i := range rates {
			trial := *w
			trial.OfCapacity = 0
			r, err := c.trial(trial, deadline, false)
			if err != nil {
				return err
			}
			rates[i] = r.Local.Transactions
		}
		slices.Sort(rates)
		w.Pace = w.OfCapacity * rates[len(rates)/2]
	}
	return err
}

// trial makes a run with connections of its own: a short one, or a long one, whose warm-up and window are those of the measurement.
func (c *client) trial(w suite.Workload, deadline time.Time, long bool) (Result, error) {
	if time.Now().After(deadline) {
		return Result{}, fmt.Errorf("the search for the rate took more than %v; is the machine busy?", SearchLimit)
	}
	timing := suite.Timing{Warmup: searchWarmup, Duration: searchWindow}
	if own := c.spec.Timing; long {
		timing = suite.Timing{Warmup: min(own.Warmup, longest/4), Duration: min(own.Duration, longest*3/4)}
	}
	trial := *c
	trial.spec = Spec{Workload: w, Timing: timing, Search: true}
	r, err := trial.once()
	if err == nil && r.Interrupted {
		err = fmt.Errorf("the search for the rate was interrupted")
	}
	return r, err
}

// searchedOf returns the figures of a direction; of two directions the slower one's, because both
// get the same rate.
func searchedOf(r Result) searched {
	s := searched{sent: math.Inf(1), received: math.Inf(1)}
	for _, d := range []suite.Direction{suite.Forward, suite.Reverse} {
		if sent := r.Rate(d, roleSend); sent > 0 {
			s.sent, s.received = min(s.sent, sent), min(s.received, r.Rate(d, roleReceive))
		}
	}
	d := r.Datagrams()
	s.loss = float64(d.Lost) / float64(max(1, d.Counted))
	return s
}
