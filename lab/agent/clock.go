package agent

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"windtunnel/lab/meter"
)

// Boot identifies the running kernel; empty where it cannot be read.
var Boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it the clock's offset is measured
	return strings.TrimSpace(string(id))
})

// clockReadings is the number of readings of which ClockOffset takes the
// fastest.
const clockReadings = 8

// Clock returns the node's CLOCK_MONOTONIC, ns.
func (s *Service) Clock(_ struct{}, reply *int64) (err error) {
	*reply, err = meter.Now()
	return err
}

// ClockOffset measures how far the node's CLOCK_MONOTONIC is ahead of this
// machine's. The error of the offset is at most half of the fastest round trip.
func (c *Client) ClockOffset(ctx context.Context) (offset time.Duration, err error) {
	fastest := int64(-1)
	for range clockReadings {
		asked, err := meter.Now()
		if err != nil {
			return 0, err
		}
		said, err := ask[int64](ctx, c, "Clock", struct{}{})
		if err != nil {
			return 0, err
		}
		answered, err := meter.Now()
		if err != nil {
			return 0, err
		}
		if trip := answered - asked; fastest < 0 || trip < fastest {
			fastest, offset = trip, time.Duration(said-asked-trip/2)
		}
	}
	return offset, nil
}
