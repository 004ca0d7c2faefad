package results

import (
	"context"
	"sync/atomic"
	"time"
)

// outage has the limits and the callback for writes that wait for a server.
type outage struct {
	limit   time.Duration // longest wait of a write; 0: writes do not wait
	stop    <-chan struct{}
	waiting func(err error, limit time.Duration)
	vain    atomic.Bool // the last wait was in vain, so the next write tries once
}

// answerWithin is the longest time for one attempt at a write, so that a server that accepts
// connections and does not answer is noticed. Tests shorten it.
var answerWithin = time.Minute

// OnOutage sets what happens while the server of the store does not answer. A write that
// begins to wait calls waiting once, with the error and the longest time of its wait. It
// stops waiting when stop is closed. OnOutage must be called before the first write.
func (s *Store) OnOutage(stop <-chan struct{}, waiting func(err error, limit time.Duration)) {
	s.outage.stop, s.outage.waiting = stop, waiting
}

// insist runs f in one transaction for a run. While the server does not answer, insist
// tries again within the limit. again tells f that an earlier attempt may be stored although
// the server did not confirm it. insist fails if another engine measures the run meanwhile.
func (s *Store) insist(what, run string, f func(t *tx, again bool) error) error {
	if s.outage.limit == 0 {
		return s.write(what, func(t *tx) error { return f(t, false) })
	}
	deadline := time.Now().Add(s.outage.limit)
	for again := false; ; again = true {
		err := s.tryOnce(what, run, func(t *tx) error { return f(t, again) })
		if !s.dialect.away(err) {
			s.outage.vain.Store(false)
			return err
		}
		if s.outage.vain.Load() || s.outage.over(deadline) {
			s.outage.vain.Store(true)
			return err
		}
		if !again && s.outage.waiting != nil {
			s.outage.waiting(err, s.outage.limit)
		}
		s.outage.pause()
	}
}

func (s *Store) tryOnce(what, run string, f func(t *tx) error) error {
	if err := s.holds.check(run); err != nil {
		return s.explain(err, what)
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	return s.writeWithin(ctx, what, f)
}

// over reports whether the wait must end.
func (o *outage) over(deadline time.Time) bool {
	select {
	case <-o.stop:
		return true
	default:
		return time.Now().After(deadline)
	}
}

// pause waits before the next attempt.
func (o *outage) pause() {
	select {
	case <-o.stop:
	case <-time.After(retryEvery):
	}
}
