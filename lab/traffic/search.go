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
	// try makes a trial at a rate, in payload bits/s of all streams in one direction. The rate 0 means as fast as possible. A long
	// trial has the warm-up and the window of the measurement, and takes at most longest.
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
	searchRates  = 15 // maximum number of rates with short trials; each rate has one or two trials
	searchWindow = 200 * time.Millisecond
	searchWarmup = 50 * time.Millisecond
	longRates    = 6               // maximum number of rates with long trials; each rate has one or two trials
	longStep     = 0.9             // each of these rates is at most this part of the rate before it
	longest      = 2 * time.Second // maximum of warm-up and window of a long trial together
	// SearchLimit is the longest time of a search. A short trial takes 0.4 s, most of it for its
	// connections and for late datagrams.
	SearchLimit = 45 * time.Second
)

// rate returns the highest rate that it found, or 0 if the sender stays within the bound at full speed. It finds a rate by short
// trials. Then it makes long trials at this rate, and at lower rates until one stays within the bound. Short trials are not enough: a router
// in user space has queues of megabytes, and a short trial can end before such a queue is full. Then it loses nothing at too high a rate.
func (s search) rate() (int64, error) {
	found, err := s.brief()
	if err != nil {
		return 0, err
	}
	sent := 0.0
	for range longRates {
		t, err := s.twice(found, true)
		if err != nil || t.loss <= s.bound {
			return found, err
		}
		sent = t.sent
		found = int64(max(min(t.received, longStep*sent), sent/2))
	}
	return 0, fmt.Errorf("in trials as long as the measurement, more than %.3g %% of the datagrams are lost at each of %d rates, also at the lowest one, %.3g bit/s; give a higher loss, or look for the cause", 100*s.bound, longRates, sent)
}

// twice makes a trial. If it loses more than the bound, twice makes a second trial at the same rate. It returns the figures of the trial
// that lost less.
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

// trial makes a trial of a search, with connections of its own.
func (c *client) trial(w suite.Workload, deadline time.Time, long bool) (Result, error) {
	if time.Now().After(deadline) {
		return Result{}, fmt.Errorf("the search for the rate took more than %v; is the machine busy?", SearchLimit)
	}
	trial := *c
	trial.spec = Spec{Workload: w, Timing: searchTiming(c.spec.Timing, long), Search: true}
	r, err := trial.once()
	if err == nil && r.Interrupted {
		err = fmt.Errorf("the search for the rate was interrupted")
	}
	return r, err
}

// searchTiming returns the timing of a trial of a search before a measurement. A long trial has the warm-up and the window of the
// measurement, up to a quarter and three quarters of longest.
func searchTiming(measurement suite.Timing, long bool) suite.Timing {
	if !long {
		return suite.Timing{Warmup: searchWarmup, Duration: searchWindow}
	}
	return suite.Timing{Warmup: min(measurement.Warmup, longest/4), Duration: min(measurement.Duration, longest*3/4)}
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
