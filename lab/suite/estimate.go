package suite

import "time"

// Durations of the parts of a trial before and after its traffic. The typical values
// are for a two-node testbed of network namespaces; the worst values are the engine's
// limits.
const (
	typicalSetUp    = 150 * time.Millisecond // testbed and system up
	typicalProof    = 50 * time.Millisecond  // ARP, ping, full-MTU ping, TCP each way
	typicalStart    = 50 * time.Millisecond  // the tool's processes, until traffic flows
	typicalTakeDown = 150 * time.Millisecond
	typicalBoot     = 8 * time.Second   // additional time if VMs boot without KVM, all at the same time
	worstOverhead   = 15 * time.Second  // all parts above without the boot, on a slow machine
	worstBoot       = 115 * time.Second // the engine's limit for the boot, including the test for KVM
)

// Estimate returns the duration of a run of the plan without failures. If the plan has
// a precision, it is the duration with the minimum number of trials.
func (p *Plan) Estimate() time.Duration {
	block := p.block(typicalSetUp+typicalProof+typicalStart+typicalTakeDown, typicalBoot)
	for _, sc := range p.Scenarios {
		if p.Skipped[sc.ID] == "" {
			block += float64(p.SetUp[sc.System])
		}
	}
	return clamp(p.overPairs(block) * float64(p.Trials))
}

// overPairs returns the duration of a block with all pairs of hosts. block is the
// duration with one pair.
func (p *Plan) overPairs(block float64) float64 {
	if p.Matrix == nil {
		return block
	}
	return block * float64(p.Matrix.Len()) / float64(p.Matrix.Concurrent())
}

// WorstCase returns the duration if every trial is slow and all repeats are used. The
// plan's trials always run, even beyond the maximum time. A block that began before
// the maximum time is finished.
func (p *Plan) WorstCase() time.Duration {
	block, scenarios := p.overPairs(p.block(worstOverhead, worstBoot)), p.Cells()
	if scenarios == 0 {
		return 0
	}
	all := func(blocks int) float64 {
		return block * (float64(blocks) + float64(p.Repeats(blocks))/float64(scenarios))
	}
	worst := all(max(p.Trials, p.Stop.MaxTrials))
	if limit := p.Stop.MaxTime; limit > 0 {
		worst = min(worst, max(float64(limit)+block, all(p.Trials)))
	}
	return clamp(worst)
}

// Repeats returns the maximum number of additional trials in a run of the given number
// of blocks. Additional trials are repeats, and trials of blocks that replace lost
// trials. The maximum is half of the run's trials, and at least 3 for each
// block. A machine that needs more is not suitable for measurements.
func (p *Plan) Repeats(blocks int) int { return blocks * max(3, (p.Cells()+1)/2) }

// Attempts is the maximum number of attempts at a trial.
const Attempts = 3

// Forecast is what a plan says about the duration of its attempts.
type Forecast struct {
	Each    time.Duration // time that an attempt adds to the run
	Cells   int           // trials in a block
	Repeats int           // maximum number of repeats in the run
}

// Forecast returns the forecast of a run of the plan.
func (p *Plan) Forecast() Forecast {
	cells := max(1, p.Cells())
	return Forecast{p.Estimate() / time.Duration(max(1, p.Trials*cells)), cells, p.Repeats(max(p.Trials, p.Stop.MaxTrials))}
}

// Pace is the progress of a run so far.
type Pace struct {
	Elapsed    time.Duration // time of the finished attempts
	Attempts   int           // finished attempts
	Rejected   int           // finished attempts whose trial must be repeated
	Unfinished int           // trials that need another attempt
	Most       int           // maximum number of attempts at a trial
}

// Left estimates the remaining time of a run: one attempt for each unfinished trial, and
// repeats as often as so far, within the maximum for a trial and for the run. For the
// mean time of an attempt, the forecast counts as much as one block of finished attempts.
func (f Forecast) Left(p Pace) time.Duration {
	known := p.Attempts + f.Cells
	mean := (p.Elapsed + time.Duration(f.Cells)*f.Each) / time.Duration(known)
	rejected := float64(p.Rejected) / float64(known)
	each, share := 1.0, 1.0
	for range p.Most - 1 {
		share *= rejected
		each += share
	}
	unfinished := float64(p.Unfinished)
	return time.Duration(float64(mean) * min(unfinished*each, unfinished+float64(max(0, f.Repeats-p.Rejected))))
}

// Replacements returns the maximum number of blocks that replace lost trials: half of
// the given number of blocks, rounded up.
func (p *Plan) Replacements(blocks int) int { return blocks/2 + blocks%2 }

// block returns the duration of one block in ns. It is a float64, because the sum of
// very long trials exceeds an int64.
func (p *Plan) block(overhead, boot time.Duration) (sum float64) {
	for _, sc := range p.Scenarios {
		if p.Skipped[sc.ID] != "" {
			continue
		}
		traffic, ok := p.Traffic[sc.ID]
		if !ok {
			traffic = sc.Timing.Total()
		}
		sum += float64(traffic) + float64(overhead)
		if sc.Endpoint.Kind == VM {
			sum += float64(boot)
		}
	}
	return sum
}

func clamp(ns float64) time.Duration {
	const longest = time.Duration(1<<63 - 1)
	if ns >= float64(longest) {
		return longest
	}
	return time.Duration(ns)
}

// Total returns the duration of the traffic of one trial.
func (t Timing) Total() time.Duration { return t.Warmup + t.Duration + t.Cooldown }
