package netns

import (
	"fmt"
	"time"

	"windtunnel/lab/suite"
)

// coalescing stands for a NIC's interrupt moderation: after a poll that found
// nothing, the device's NAPI polls again after flush instead of waiting for an
// interrupt, up to emptyPolls times in a row. GRO holds packets for that long.
type coalescing struct {
	emptyPolls int
	flush      time.Duration
}

func coalescingOf(f suite.Fabric) coalescing {
	if f.NoCoalescing {
		return coalescing{}
	}
	return coalescing{emptyPolls: 10, flush: 50 * time.Microsecond}
}

func (c coalescing) String() string {
	if c.flush == 0 {
		return "no coalescing"
	}
	return fmt.Sprintf("coalescing %d µs", c.flush.Microseconds())
}
