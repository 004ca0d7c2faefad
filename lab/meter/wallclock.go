package meter

import (
	"time"

	"golang.org/x/sys/unix"
)

// WallStep is the step of the wall clock against the monotonic clock between
// two readings; negative if it was set back. Slewing (adjtimex) affects both
// clocks, so that only a step separates them. ok is false if a reading has no
// wall clock.
func WallStep(a, b Reading) (step time.Duration, ok bool) {
	if a.Wall == 0 || b.Wall == 0 {
		return 0, false
	}
	return time.Duration(b.Wall-a.Wall) - time.Duration(b.Mono-a.Mono), true
}

func wallClock() (int64, error) { return readClock(unix.CLOCK_REALTIME, "CLOCK_REALTIME") }
