package experiment

import "time"

const (
	proofBytes = 10 << 20 // each way
	// leastProof is still dozens of full frames, and crosses a link of 5 Mbit/s
	// in half a second.
	leastProof = 256 << 10
	proofTime  = 250 * time.Millisecond // what the bulk takes of a slow link, each way
)

// proofSize is how much the proof of connectivity moves each way over a fabric
// whose links have this rate, bit/s, or none.
func proofSize(rate int64) int {
	if rate <= 0 {
		return proofBytes
	}
	carried := float64(rate) / 8 * proofTime.Seconds()
	return int(min(proofBytes, max(leastProof, carried)))
}
