package suite

import "time"

// What a trial takes besides its traffic. The typical figures are those of a
// two-node testbed of network namespaces; the worst are the engine's limits.
const (
	typicalSetUp    = 150 * time.Millisecond // testbed and system up
	typicalProof    = 50 * time.Millisecond  // ARP, ping, full-MTU ping, TCP each way
	typicalStart    = 50 * time.Millisecond  // the tool's processes, until traffic flows
	typicalTakeDown = 150 * time.Millisecond
	typicalBoot     = 8 * time.Second  // of VMs besides, all at once, without KVM
	worstOverhead   = 15 * time.Second // all of these but the boot, slow
	worstBoot       = 60 * time.Second // the engine's limit, and the search for KVM
)

// Estimate is how long a run of the plan takes when nothing fails; with a
// precision, when the fewest trials reach it.
func (p *Plan) Estimate() time.Duration {
	block := p.block(typicalSetUp+typicalProof+typicalStart+typicalTakeDown, typicalBoot)
	for _, sc := range p.Scenarios {
		if p.Skipped[sc.ID] == "" {
			block += float64(p.SetUp[sc.System])
		}
	}
	return clamp(block * float64(p.Trials))
}

// WorstCase is how long it takes when every trial is slow and all repeats are
// used up. Where the plan has a longest time, a block that began before it is
// finished, and the plan's trials are run in any case.
func (p *Plan) WorstCase() time.Duration {
	block, scenarios := p.block(worstOverhead, worstBoot), p.scenarios()
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

// Repeats is how many trials a run of so many blocks may make beyond these:
// repeats, and blocks that replace lost ones. It is half as many as the run's
// trials, and at least 3 for each block. A machine that spoils more is not one to
// measure on.
func (p *Plan) Repeats(blocks int) int { return blocks * max(3, (p.scenarios()+1)/2) }

// Replacements is how many blocks may be added, at most, for those of the given
// number that lost a trial: half of them, rounded up.
func (p *Plan) Replacements(blocks int) int { return blocks/2 + blocks%2 }

// scenarios counts those that are not skipped.
func (p *Plan) scenarios() (n int) {
	for _, sc := range p.Scenarios {
		if p.Skipped[sc.ID] == "" {
			n++
		}
	}
	return n
}

// block is the nanoseconds that one block takes, in float64: trials of a day
// each exceed an int64 soon.
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

// Total is the length of the traffic of one trial.
func (t Timing) Total() time.Duration { return t.Warmup + t.Duration + t.Cooldown }
