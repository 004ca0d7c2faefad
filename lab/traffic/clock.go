package traffic

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// epoch is the time at which the clock reads 0. Only differences are used.
var epoch = time.Now()

// now returns the nanoseconds since epoch by CLOCK_MONOTONIC. time.Since with a monotonic time needs one
// call of the vDSO and no allocation.
func now() int64 { return int64(time.Since(epoch)) }

// monotonicAtEpoch returns CLOCK_MONOTONIC at epoch, ns.
func monotonicAtEpoch() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return t.Nano() - now(), nil
}
