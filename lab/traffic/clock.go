package traffic

import "time"

// epoch is the time at which the clock reads 0. Only differences are used.
var epoch = time.Now()

// now returns CLOCK_MONOTONIC in nanoseconds. time.Since with a monotonic time needs one
// call of the vDSO and no allocation.
func now() int64 { return int64(time.Since(epoch)) }
