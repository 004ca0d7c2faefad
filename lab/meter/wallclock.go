package meter

import (
	"time"

	"golang.org/x/sys/unix"
)

// WallStep is by how much the wall clock went further than the monotonic clock
// between two readings; negative where it was set back. Both clocks are slewed
// together (adjtimex), so that only a step parts them. ok is false where a
// reading has no wall clock.
func WallStep(a, b Reading) (step time.Duration, ok bool) {
	if a.Wall == 0 || b.Wall == 0 {
		return 0, false
	}
	return time.Duration(b.Wall-a.Wall) - time.Duration(b.Mono-a.Mono), true
}

func wallClock() (int64, error) { return readClock(unix.CLOCK_REALTIME, "CLOCK_REALTIME") }
