package results

import (
	"context"
	"sync/atomic"
	"time"

	"windtunnel/internal/pause"
)

// outage has the limits and the callback for writes that wait for a server.
type outage struct {
	limit   time.Duration // longest wait of a write; 0: writes do not wait
	stop    context.Context
	waiting func(err error, limit time.Duration)
	vain    atomic.Bool // the last wait was in vain, so the next write tries once
}

// finishWithin is the longest time that a write may take after stop has ended, so that an
// interrupted run is stored if the server answers.
const finishWithin = 5 * time.Second

// OnOutage sets what happens while the server of the store does not answer. A write that
// begins to wait calls waiting once, with the error and the longest time of its wait. When
// stop ends, it stops waiting at once, and a first attempt in progress ends within
// finishWithin. OnOutage must be called before the first write.
func (s *Store) OnOutage(stop context.Context, waiting func(err error, limit time.Duration)) {
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
		err := s.tryOnce(what, run, again, f)
		if !s.dialect.away(err) {
			s.outage.vain.Store(false)
			return err
		}
		if !again && s.outage.waiting != nil && !s.outage.vain.Load() && !s.outage.over(deadline) {
			s.outage.waiting(err, s.outage.limit)
		}
		if s.outage.vain.Load() || pause.For(s.outage.stop, retryEvery) != nil || s.outage.over(deadline) {
			s.outage.vain.Store(true)
			return err
		}
	}
}

// tryOnce is one attempt of insist.
func (s *Store) tryOnce(what, run string, again bool, f func(t *tx, again bool) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	rest := finishWithin
	if again {
		rest = 0
	}
	defer context.AfterFunc(s.outage.stop, func() { time.AfterFunc(rest, cancel) })()
	err := s.holds.check(run)
	if err != nil {
		err = s.explain(err, what)
	} else {
		err = s.writeWithin(ctx, what, func(t *tx) error { return f(t, again) })
	}
	if s.dialect.away(err) {
		return withCause(err, "%v; or resume the run later (the store keeps the finished trials)", err)
	}
	return err
}

// over reports whether the wait must end.
func (o *outage) over(deadline time.Time) bool {
	return o.stop.Err() != nil || time.Now().After(deadline)
}
