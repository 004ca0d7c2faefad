package tool

import "windtunnel/lab/suite"

// step is what a tool counted between two moments: bits, datagrams or
// transactions. Times are seconds on a clock of the tool's own choosing.
type step struct {
	from, to float64
	amount   float64
}

// steps is the course of one flow as its tool told it, in time order.
type steps []step

// over returns what was counted in [from, to] and how many seconds of it the
// steps cover. A step that lies only partly inside counts in proportion: tools
// tell no finer.
func (ss steps) over(from, to float64) (amount, seconds float64) {
	for _, s := range ss {
		length := s.to - s.from
		inside := min(s.to, to) - max(s.from, from)
		if length <= 0 || inside <= 0 {
			continue
		}
		amount += s.amount * inside / length
		seconds += inside
	}
	return amount, seconds
}

// enough is the share of the window that steps have to cover before they are
// trusted for it. Less means that the run was shorter than planned or that the
// tool told its course too coarsely.
const enough = 0.9

// rate returns the amount per second within [from, to]; ok is false where the
// steps cover too little of it.
func (ss steps) rate(from, to float64) (perSecond float64, ok bool) {
	amount, seconds := ss.over(from, to)
	if seconds <= 0 || seconds < enough*(to-from) {
		return 0, false
	}
	return amount / seconds, true
}

// window is the part of a run that counts, in seconds since traffic began.
func window(t suite.Timing) (from, to float64) {
	return t.Warmup.Seconds(), (t.Warmup + t.Duration).Seconds()
}
