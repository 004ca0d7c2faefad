package profile

import "errors"

// share is how one CPU's part of the window divides: each of its samples
// stands for Each nanoseconds, and none for Rest.
type share struct {
	first, end int // the samples within the window: [first, end)
	each       uint64
	rest       uint64
}

// weigh finds the samples of one CPU that lie in the window and what each
// stands for: the sampling period, which the kernel keeps to a fixed grid
// (hrtimer_forward_now, perf_swevent_hrtimer). What the grid has no sample for
// is idle time: a host is slow to wake an idle virtual CPU, and some kernels
// take no samples of a secondary CPU's idle task. Samples that were lost for
// want of room were as likely of any kind, so the others stand in for them.
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
