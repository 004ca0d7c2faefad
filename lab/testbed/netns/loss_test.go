package netns

import (
	"context"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
	"windtunnel/lab/suite"
)

// A link loses its share of the frames, with every offload profile. No frame that arrives is larger than the MTU.
func TestALinkLosesItsShareOfTheFrames(t *testing.T) {
	const share = 0.02
	x := executor(t)
	for _, profile := range profiles {
		t.Run(string(profile), func(t *testing.T) {
			tb := up(t, x, 2, fabric(func(f *suite.Fabric) { f.Offload, f.Loss = profile, share }))
			largest, before := watchFrames(t, tb), countersOf(t, tb)
			var bytes int64
			var c counters
			for c.segments < 5000 { // then the bounds below are more than six standard deviations from the mean
				bytes += int64(flow{network: "tcp", duration: time.Second}.run(t, tb, ""))
				c = countersOf(t, tb).since(before)
			}
			lost := float64(c.lost()) / float64(c.segments+c.again)
			t.Logf("%d bytes, %d of %d segments again, %.4f lost, %.1f segments a buffer, largest frame %d", bytes, c.again, c.segments, lost, float64(c.frames)/float64(c.buffers), largest())
			if lost < share/3 || lost > share*2 {
				t.Errorf("%.2f %% of the segments were lost, want about %.0f %%", 100*lost, 100*share)
			}
			if n := largest(); n > 1500+meter.EthernetHeader {
				t.Errorf("the largest frame at the receiver has %d bytes; the MTU allows 1514", n)
			}
		})
	}
}

func TestThreeNodesReachEachOtherByLinksThatLoseAndDelayFrames(t *testing.T) {
	tb := up(t, executor(t), 3, fabric(func(f *suite.Fabric) { f.Loss, f.Delay = 0.001, 100*time.Microsecond }))
	for from := range 3 {
		for to := range 3 {
			if from != to {
				prove(t, tb, "", from, to, 4, 1500)
			}
		}
	}
	must.Succeed(t, tb.Down(context.Background()))
}
