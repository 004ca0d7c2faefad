package suite

import "time"

// What a trial takes besides its traffic. The typical figures are those of a
// two-node testbed of network namespaces; the worst are the engine's limits.
const (
	typicalSetUp    = 150 * time.Millisecond // testbed and system up
	typicalProof    = 50 * time.Millisecond  // ARP, ping, full-MTU ping, TCP each way
	typicalStart    = 50 * time.Millisecond  // the tool's processes, until traffic flows
	typicalTakeDown = 150 * time.Millisecond
	worstOverhead   = 15 * time.Second // all of these, slow
	worstAttempts   = 3                // a failed trial is repeated at most twice
)

// Estimate is how long a run of the plan takes when nothing fails.
func (p *Plan) Estimate() time.Duration {
	return p.total(typicalSetUp+typicalProof+typicalStart+typicalTakeDown, 1)
}

// WorstCase is how long it takes when every trial is slow and has to be
// repeated as often as the engine does.
func (p *Plan) WorstCase() time.Duration { return p.total(worstOverhead, worstAttempts) }

func (p *Plan) total(overhead time.Duration, attempts int) time.Duration {
	var sum float64 // in float64: many trials of a day each exceed an int64 of nanoseconds
	for _, sc := range p.Scenarios {
		sum += float64(sc.Timing.Total()+overhead) * float64(attempts) * float64(p.Trials)
	}
	const longest = time.Duration(1<<63 - 1)
	if sum >= float64(longest) {
		return longest
	}
	return time.Duration(sum)
}

// Total is the length of the traffic of one trial.
func (t Timing) Total() time.Duration { return t.Warmup + t.Duration + t.Cooldown }
