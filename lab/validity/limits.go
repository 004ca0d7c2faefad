package validity

// Limits are the bounds of all gates and flags.
type Limits struct {
	Foreign      float64 // percent of a node's CPUs
	Steal        float64 // percent of a node's CPUs
	Stray        float64 // percent of one CPU
	StartUp      float64 // percent of the steady rate: difference of a start-up of half of the window
	Trend        float64 // percent of the median rate, over the whole window
	TrendP       float64 // highest p of a trend
	Spread       float64 // percent: robust coefficient of variation of an unlimited TCP stream's rate
	SpreadWindow float64 // s; shortest window whose spread is judged
	Points       int     // minimum of points of the series for a judgement of steadiness
	Target       float64 // percent of the requested rate
	Moving       float64 // percent of the window's bits per second
	MovingFloor  float64 // bits per second of protocols that never stop
	ClockStep    float64 // ms
	Stall        float64 // ms
}

// Default are the limits of every run.
var Default = Limits{
	// A node on one CPU that loses 3 % of it is 3 % slower if the CPU is the
	// bottleneck: as much as the differences to be found. An idle machine shows
	// well below 1 % (shells, timers, the engine's terminal).
	Foreign: 3,
	// The same loss, caused by the host of the virtual machine. /proc/stat counts
	// steal in steps of 10 ms, 1 % of a window of 1 s. 2 % cannot be one step.
	Steal: 2,
	// A CPU outside the experiment must not process its packets. If such a CPU is
	// full of softirq work, that work is missing in the nodes' figures. Less may be
	// another program's traffic.
	Stray: 90,
	// The judgement of steadiness leaves out a start-up, but the window's figures
	// include it: if half of the window is off by a quarter, the mean is off by an
	// eighth. The halves of a series of ten noisy steps can differ by 10 %.
	StartUp: 25,
	// A rate that changes by a tenth within the window has no single value.
	// Neighbours in a series are correlated, which makes p too small, hence 0.01.
	Trend: 10, TrendP: 0.01,
	// 1.4826 × MAD over the median. Streams on a quiet machine stay below 10 %. At
	// 25 % half of the steps differ from the median by 17 % or more.
	Spread: 25, SpreadWindow: 1,
	// Eight points can show a trend at 0.01 with one pair out of order; seven
	// cannot.
	Points: 8,
	// The offered rate is the trial's independent variable. Working pacing is
	// within 1 %; the rest is for short windows and tools with full seconds.
	Target: 90,
	// Address resolution and the ends of connections continue for a moment. A
	// hundredth of the traffic means that a tool still runs.
	Moving: 1, MovingFloor: 1e6,
	// Only a step of the wall clock changes the difference of both clocks. 5 ms are
	// half a percent of a window of 1 s.
	ClockStep: 5,
	// The agents share their CPU with busy processes, which delay a reading by
	// milliseconds. After tens of milliseconds the machine stood still, and TCP took
	// that for loss.
	Stall: 50,
}
