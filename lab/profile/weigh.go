package profile

import "errors"

// share divides a CPU's part of the window: each of its samples stands for Each
// nanoseconds, and no sample stands for Rest.
type share struct {
	first, end int // the samples within the window: [first, end)
	each       uint64
	rest       uint64
}

// weigh returns the samples of one CPU in the window and the time for which each stands:
// the sampling period, which the kernel keeps on a fixed grid (hrtimer_forward_now,
// perf_swevent_hrtimer). Points of the grid without a sample are idle time: a host is slow
// to wake an idle virtual CPU, and some kernels do not sample the idle task of secondary
// CPUs. A full ring loses samples of every kind alike, so the other samples also stand for
// the lost ones.
func weigh(samples []sample, w Window, rate int, lost uint64) (share, error) {
	s := share{each: uint64(1e9) / uint64(rate)}
	for s.first < len(samples) && samples[s.first].time <= uint64(w.From) {
		s.first++
	}
	s.end = s.first
	for s.end < len(samples) && samples[s.end].time <= uint64(w.To) {
		s.end++
	}
	n, window := uint64(s.end-s.first), uint64(w.To-w.From)
	if n == 0 {
		if len(samples) == 0 && lost > 0 {
			return s, errors.New("every sample was lost")
		}
		s.rest = window
		return s, nil
	}
	if lost > 0 {
		s.each = uint64(float64(s.each) * (1 + float64(lost)/float64(len(samples))))
	}
	s.each = min(s.each, window/n)
	s.rest = window - n*s.each
	return s, nil
}
