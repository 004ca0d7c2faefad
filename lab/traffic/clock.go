package traffic

import "time"

// epoch is when the clock reads 0. Only differences matter.
var epoch = time.Now()

// now reads CLOCK_MONOTONIC in nanoseconds. time.Since of a time that holds a
// monotonic reading makes one call of the vDSO and allocates nothing.
func now() int64 { return int64(time.Since(epoch)) }
