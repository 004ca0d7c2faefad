package tool

// step is an amount that a tool counted between two times: bits, datagrams or
// transactions. Times are seconds on a clock of the tool.
type step struct {
	from, to float64
	amount   float64
}

// steps has the progress of one flow, as its tool counted it, in time order.
type steps []step

// over returns the amount in [from, to], and the seconds of this period that the steps
// cover. A step that is partly inside counts in proportion, because tools print no
// finer steps.
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

// enough is the share of the window that steps must cover. If steps cover less, the
// run was shorter than planned, or the tool's intervals are too long.
const enough = 0.9

// rate returns the amount per second within [from, to]. ok is false if the steps
// cover too little of it.
func (ss steps) rate(from, to float64) (perSecond float64, ok bool) {
	amount, seconds := ss.over(from, to)
	if seconds <= 0 || seconds < enough*(to-from) {
		return 0, false
	}
	return amount / seconds, true
}
