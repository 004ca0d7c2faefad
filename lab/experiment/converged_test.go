package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"

	"windtunnel/lab/program"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
)

// Every NIC of a team is metered, each once; that they add up to what the tool
// says is a condition of every sample.
func TestATeamIsMeteredOverAllItsLinks(t *testing.T) {
	sc := scenario("bridge", func(sc *suite.Scenario) {
		sc.Fabric.Links, sc.Fabric.Team = 2, suite.Bond
		sc.Workload.Streams = 16
	})
	s := runOK(t, sc)
	assertFabricAgrees(t, &s)
	var nics []string
	var least uint64
	for _, h := range s.Hops {
		if h.Role == "fabric" && h.Node == "b" {
			nics = append(nics, h.Device)
			if least == 0 || h.RxBytes < least {
				least = h.RxBytes
			}
		}
	}
	slices.Sort(nics)
	if !slices.Equal(nics, []string{"fabb0", "fabb1"}) || least < 1<<20 {
		t.Errorf("NICs %v, of which one received %d bytes", nics, least)
	}
}

func TestAnEndpointsSettingsAreMadeAndStandInTheRecord(t *testing.T) {
	sc := scenario("bridge", func(sc *suite.Scenario) { sc.Endpoint.NoSegmentation = true })
	e := lab(t, &notebook{}, sc)
	b, err := NewBench(context.Background(), e.Executor, e.ID, &sc, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := b.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if err := b.Prove(context.Background(), 4); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"a c1 eth0 tx-tcp-segmentation", "b c1 eth0 tx-generic-segmentation"} {
		if got := b.Settings().Offloads[key]; !strings.EqualFold(got, "off") {
			t.Errorf("setting %q is %q", key, got)
		}
	}
}

// vrouter's XDP program is on the first NIC alone; what arrives on another is
// for its tc program.
func TestOverlaysPassTrafficOverEveryLinkOfATeam(t *testing.T) {
	for _, name := range []string{"vxlan", "vrouter-mpls-udp", "vrouter-mpls-gre", "vrouter-vxlan"} {
		t.Run(name, func(t *testing.T) {
			if _, err := program.Beside("vrouter"); err != nil && name != "vxlan" {
				t.Skip(err)
			}
			sc := scenario(name, func(sc *suite.Scenario) { sc.Fabric.Links, sc.Fabric.Team = 2, suite.Bond })
			e := lab(t, &notebook{}, sc)
			b, err := NewBench(context.Background(), e.Executor, e.ID, &sc, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := b.Down(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			// Ports, and so links, are by chance: until every link has had a flow.
			team := b.Testbed.Nodes()[1].Attachment().Team
			for range 24 {
				if err := b.Prove(context.Background(), 4); err != nil {
					t.Fatal(err)
				}
				bytes := received(t, e.ID, "b", team)
				if slices.Min(bytes) > proofBytes {
					return
				}
				// Between two nodes GRE, which has no ports, is on one link.
				if name == "vrouter-mpls-gre" && slices.Max(bytes) > proofBytes {
					return
				}
			}
			t.Errorf("in 24 flows the links carried %v bytes", received(t, e.ID, "b", team))
		})
	}
}

// received is what each of a node's devices counted.
func received(t *testing.T, id, node string, devices []string) (bytes []uint64) {
	t.Helper()
	s, err := space.Open(netns.SpacePrefix(id) + node)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, d := range devices {
		l, err := s.Link(d)
		if err != nil {
			t.Fatal(err)
		}
		bytes = append(bytes, l.Attrs().Statistics.RxBytes)
	}
	return bytes
}
