package meter

import (
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
)

func TestAReadingWaitsAsLongAsItsLastStepTookAtMostTwoMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		breathe := breather()
		for step, want := range map[time.Duration]time.Duration{time.Millisecond: time.Millisecond, time.Second: 2 * time.Millisecond} {
			time.Sleep(step)
			began := time.Now()
			breathe()
			must.Equal(t, want, time.Since(began))
		}
	})
}
