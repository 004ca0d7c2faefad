package experiment

import (
	"slices"
	"testing"
	"time"

	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// The kernel merges sends of 1390 bytes into segments of 1448 and superframes, with
// TCP_NODELAY too. packet_per_send prevents both, whatever the system.
func TestEachSendIsAPacketIfTheWorkloadRequestsIt(t *testing.T) {
	const buffer = 1390
	for _, c := range []struct {
		name, system string
		perSend      bool
	}{
		{"merged", "bridge", false},
		{"bridge", "bridge", true},
		{"tunnel", "vxlan", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := runOK(t, scenario(c.system, func(sc *suite.Scenario) {
				sc.Timing.Duration = time.Second
				sc.Workload.Rate, sc.Workload.Buffer = 0, buffer
				sc.Fabric.Rate = 100e6 // sends wait for the link: only waiting sends are merged
				sc.Workload.NoDelay, sc.Workload.PacketPerSend = true, c.perSend
			}))
			got := s.Metrics[sample.SentPacket]
			t.Logf("%.1f bytes a packet", got)
			flagged := slices.ContainsFunc(s.Flags, func(g sample.Gate) bool { return g.Name == sample.PacketSize })
			if !c.perSend {
				if got < 1.05*buffer {
					t.Errorf("%.0f bytes a packet without packet_per_send: the test shows nothing", got)
				}
				return
			}
			if got < 0.9*buffer || got > 1.02*buffer || flagged {
				t.Errorf("%.1f bytes a packet, flagged %v", got, flagged)
			}
		})
	}
}
