package experiment

import "time"

const (
	proofBytes = 10 << 20 // each way
	// leastProof is still dozens of full frames, and crosses a link of 5 Mbit/s
	// in half a second.
	leastProof = 256 << 10
	proofTime  = 250 * time.Millisecond // duration of the transfer on a slow link, each way
)

// proofSize returns the bytes that the proof of connectivity moves each way over
// links of a rate, in bit/s; 0 means no limit.
func proofSize(rate int64) int {
	if rate <= 0 {
		return proofBytes
	}
	carried := float64(rate) / 8 * proofTime.Seconds()
	return int(min(proofBytes, max(leastProof, carried)))
}
