package validity

// Limits are what a trial may show and still count.
type Limits struct {
	Foreign      float64 // percent of a node's CPUs
	Steal        float64 // percent of a node's CPUs
	Stray        float64 // percent of one CPU
	StartUp      float64 // percent of the steady rate: a start-up of half of the window that is further off
	Trend        float64 // percent of the median rate, over the whole window
	TrendP       float64 // only a trend of at most this p is one
	Spread       float64 // percent: robust coefficient of variation of an unlimited TCP stream's rate
	SpreadWindow float64 // s; the spread of a shorter window is not judged
	Points       int     // fewest points of the series that steadiness is judged by
	Target       float64 // percent of the rate that was asked for
	Moving       float64 // percent of the window's bits per second
	MovingFloor  float64 // bits per second that are nobody's traffic
	ClockStep    float64 // ms
	Stall        float64 // ms
}

// Default are the limits of every run.
var Default = Limits{
	// A node on one CPU that loses 3 % of it is 3 % slower where the CPU is the
	// bottleneck: as much as the differences that one looks for. A machine that
	// does nothing else shows well below 1 % (shells, timers, the engine's own
	// terminal).
	Foreign: 3,
	// The same loss, by the host of the virtual machine. /proc/stat counts steal
	// in steps of 10 ms, 1 % of a window of 1 s: 2 % is the least that cannot be
	// one step.
	Steal: 2,
	// A CPU that has no part in the experiment has nothing to do with its
	// packets. One that is full of softirq work takes them off the nodes' CPUs
	// unseen; less may be another program's traffic.
	Stray: 90,
	// A start-up is left out where the steadiness of the rest is judged, but the
	// window's figures hold it: one of half of the window that is a quarter off
	// moves their mean by an eighth. The halves of a series of ten noisy steps
	// differ by 10 % now and then.
	StartUp: 25,
	// A rate that changes by a tenth within the window has no one value. The
	// neighbours in a series are alike, which makes p too small, hence 0.01.
	Trend: 10, TrendP: 0.01,
	// 1.4826 × MAD over the median. Streams on a quiet machine stay below 10 %;
	// a quarter is where half of the steps lie 17 % and more beside the median.
	Spread: 25, SpreadWindow: 1,
	// Eight points can still show a trend at 0.01 when one pair is out of order;
	// seven would need to be flawless.
	Points: 8,
	// What a generator offers is the trial's independent variable. Pacing that
	// works is within 1 %; the rest is room for short windows and full seconds.
	Target: 90,
	// Address resolution and what the tools' ends send goes on for a moment; a
	// hundredth of the traffic is a tool that goes on.
	Moving: 1, MovingFloor: 1e6,
	// Clocks are slewed together; only a step parts them. 5 ms are half a
	// percent of a window of 1 s.
	ClockStep: 5,
	// The agents wake for the series among the busiest processes of their CPU,
	// which delays them by milliseconds. Tens of them mean that the machine
	// itself stood still, and TCP took that for loss.
	Stall: 50,
}
