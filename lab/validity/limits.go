package validity

// Limits are the bounds of all gates and flags.
type Limits struct {
	Foreign      float64 // percent of a node's CPUs
	Steal        float64 // percent of a node's CPUs
	Quota        float64 // percent of the periods of a control group's CPU quota
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
	Merged       float64 // percent that a sent packet's payload may be above the buffer
	Divided      float64 // percent that it may be below the buffer
	DSCP         float64 // least percentage of the bytes on the wire with the DSCP of the workload
	ClockStep    float64 // ms
	Stall        float64 // ms
}

// Default are the limits of every run.
var Default = Limits{
	// If a node has one CPU, loses 3 % of its time and the CPU is the bottleneck, the
	// node is 3 % slower. The differences to be found are as large. An idle machine
	// shows well below 1 % (shells, timers, the engine's terminal).
	Foreign: 3,
	// Steal is the same loss, caused by the host of the virtual machine. /proc/stat
	// counts steal in steps of 10 ms: 1 % of a window of 1 s. 2 % needs two steps.
	Steal: 2,
	// A quota stops a process for most of a period of 100 ms, which also delays the other
	// node. No trial with a quota that took effect is one of the machine without it.
	Quota: 0,
	// A CPU outside the experiment must not process the experiment's packets. If
	// softirq work fills such a CPU, the nodes' figures lack this work. A smaller
	// share can be another program's traffic.
	Stray: 90,
	// The check of steadiness leaves out a start-up, but the window's figures include
	// it. If the rate is a quarter too low in half of the window, the mean is an eighth
	// too low. The halves of a series of ten noisy steps can differ by 10 %.
	StartUp: 25,
	// If the rate changes by a tenth within the window, one value cannot describe it.
	// Neighbouring points of a series are correlated. This makes p too small, so the
	// limit of p is 0.01.
	Trend: 10, TrendP: 0.01,
	// The spread is 1.4826 × MAD divided by the median. Streams on a quiet machine stay
	// below 10 %. At 25 % half of the steps differ from the median by 17 % or more.
	Spread: 25, SpreadWindow: 1,
	// Eight points can show a trend at 0.01 with one pair out of order; seven
	// cannot.
	Points: 8,
	// The offered rate is the trial's independent variable. Correct pacing is within
	// 1 %. The rest is a margin for short windows and for tools with whole seconds.
	Target: 90,
	// Address resolution and closing connections continue shortly after a trial. If a
	// hundredth of the traffic remains, a tool still runs.
	Moving: 1, MovingFloor: 1e6,
	// A merged segment has 1448 bytes instead of 1390, which is 4 % more. Packets that
	// are sent again or carry no payload make the mean smaller: 2 % on a busy machine. A
	// buffer above the MSS becomes two packets, and the mean half of it.
	Merged: 2, Divided: 10,
	// With a tunnel that hides the DSCP the figure is 0 %, and with a tool that marks one of two directions 50 %.
	// Frames of neighbour discovery have no DSCP; with few requests per second they are some percent of the bytes.
	DSCP: 90,
	// The wall clock and the monotonic clock advance equally unless the wall clock is
	// set. 5 ms are half a percent of a window of 1 s.
	ClockStep: 5,
	// The agents share their CPU with busy processes, which delay a reading by
	// milliseconds. A delay of tens of milliseconds means that the machine stood
	// still. TCP can take such a pause for loss.
	Stall: 50,
}
