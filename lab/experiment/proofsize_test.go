package experiment

import "testing"

func TestTheProofIsSmallerOnSlowLinks(t *testing.T) {
	for rate, want := range map[int64]int{
		0: 10 << 20, 5e6: 256 << 10, 100e6: 3_125_000, 400e6: 10 << 20, 10e9: 10 << 20,
	} {
		if got := proofSize(rate); got != want {
			t.Errorf("at %d bit/s %d bytes, want %d", rate, got, want)
		}
	}
}
