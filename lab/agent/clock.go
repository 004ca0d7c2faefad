package agent

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"windtunnel/lab/meter"
)

// Boot returns the boot ID of the running kernel; "" if it cannot be read.
var Boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // on an error the ID is "", and the engine measures the clock offset
	return strings.TrimSpace(string(id))
})

// clockReadings is the number of readings that ClockOffset makes of the node's clock.
// It uses the reading with the shortest round trip.
const clockReadings = 8

// Clock returns the node's CLOCK_MONOTONIC, ns.
func (s *Service) Clock(_ struct{}, reply *int64) (err error) {
	*reply, err = meter.Now()
	return err
}

// ClockOffset returns the node's CLOCK_MONOTONIC minus the one of this machine. The
// result is wrong by at most half of the shortest round trip.
func (c *Client) ClockOffset(ctx context.Context) (offset time.Duration, err error) {
	fastest := int64(-1)
	for range clockReadings {
		sent, err := meter.Now()
		if err != nil {
			return 0, err
		}
		remote, err := ask[int64](ctx, c, "Clock", struct{}{})
		if err != nil {
			return 0, err
		}
		received, err := meter.Now()
		if err != nil {
			return 0, err
		}
		if trip := received - sent; fastest < 0 || trip < fastest {
			fastest, offset = trip, time.Duration(remote-sent-trip/2)
		}
	}
	return offset, nil
}
