package experiment

import (
	"time"

	"windtunnel/lab/suite"
)

const (
	proofBytes = 10 << 20 // each way
	// guestProof is less, because an emulated CPU of a busy machine receives some Mbit/s.
	guestProof = 1 << 20
	// leastProof is still dozens of full frames, and crosses a link of 5 Mbit/s
	// in a tenth of a second.
	leastProof = 64 << 10
	proofTime  = 50 * time.Millisecond // duration of the transfer on a slow link, each way
)

// proofSize returns the bytes that the proof of connectivity moves each way in a scenario.
func proofSize(sc *suite.Scenario) int {
	most := proofBytes
	if sc.Endpoint.Kind == suite.VM {
		most = guestProof
	}
	if sc.Fabric.Rate <= 0 {
		return most
	}
	carried := float64(sc.Fabric.Rate) / 8 * proofTime.Seconds()
	return int(min(float64(most), max(leastProof, carried)))
}
