package suites

import (
	"strings"
	"testing"
	"time"

	"windtunnel/lab/suite"
)

// The suites that show every system in a matrix compare each with the bridge in every
// workload.
func TestMatricesHaveEveryWorkloadOfEverySystemBesideTheBridge(t *testing.T) {
	for name, workloads := range map[string]int{"packets": 10, "loaded-latency": 9} {
		p := plan(t, name)
		parts := map[string][]string{}
		for _, s := range p.Scenarios {
			parts[suite.Group(s.ID)] = append(parts[suite.Group(s.ID)], suite.Part(s.ID))
		}
		compared := map[string]bool{}
		for _, c := range p.Comparisons {
			compared[c.Subject] = true
		}
		for group, list := range parts {
			if len(list) != workloads {
				t.Errorf("%s: %s has %v, want %d workloads", name, group, list, workloads)
			}
			for _, part := range list {
				if !strings.HasPrefix(group, "bridge") && !compared[group+"/"+part] {
					t.Errorf("%s: %s/%s is compared with nothing", name, group, part)
				}
			}
		}
		if short := planned(t, name, suite.ExpandOptions{Short: true}); short.Estimate() > 12*time.Minute {
			t.Errorf("%s: the short form takes %v", name, short.Estimate())
		}
	}
}

func TestDatagramsAndMessagesHaveTheirSizes(t *testing.T) {
	p := plan(t, "packets")
	for id, want := range map[string]int64{"udp-64": 64, "udp-256": 256, "udp-1024": 1024, "udp-1400": 1400, "rr-1": 1, "rr-128": 128, "rr-1024": 1024} {
		w := scenario(t, p, "vrouter-vxlan/"+id).Workload
		if w.Kind == suite.UDPStream && w.Buffer != want || w.Kind == suite.TCPRR && (w.Request != want || w.Response != want) {
			t.Errorf("%s: %+v", id, w)
		}
	}
}

func TestRequestsAreLoadedWithOneAndEightStreamsEitherWay(t *testing.T) {
	p := plan(t, "loaded-latency")
	for id, want := range map[string]struct {
		load      int
		direction suite.Direction
	}{
		"idle": {}, "up-1": {1, suite.Forward}, "up-8": {8, suite.Forward}, "down-1": {1, suite.Reverse}, "down-8": {8, suite.Reverse}, "both-8": {8, suite.Both},
	} {
		for _, group := range []string{"bridge", "wireguard", "bridge-100M"} {
			if w := scenario(t, p, group+"/"+id).Workload; w.Kind != suite.TCPRR || w.Load != want.load || w.Direction != want.direction {
				t.Errorf("%s/%s: %+v", group, id, w)
			}
		}
	}
}
