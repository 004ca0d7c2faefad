package experiment

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/program"
	"windtunnel/lab/sample"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
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

// A link of the team is cut while datagrams pass. The test cuts the other link too, until the sender has sent 100
// more datagrams: otherwise a sender that stalls until the team has noticed the first cut loses none. The
// datagrams of this time are lost, and the interruption is as long.
func TestAFailoverHasItsLossAndItsTime(t *testing.T) {
	const flows, size, rate, least = 16, 1400, 100e6, 100
	const madeUp = 50e-3 // seconds: a late sender sends at once the datagrams of this time
	n := &notebook{}
	e := lab(t, n, scenario("bridge", func(sc *suite.Scenario) {
		sc.Fabric.Links, sc.Fabric.Team, sc.Fabric.Cut = 2, suite.Bond, 400*time.Millisecond
		sc.Workload = suite.Workload{Name: "datagrams", Kind: suite.UDPStream, Direction: suite.Forward, Streams: flows, Buffer: size, Rate: rate, IPVersion: 4}
		sc.Timing.Duration = 1500 * time.Millisecond
	}))
	n.up = func(b *Bench) {
		b.Testbed = cutTestbed{b.Testbed, func() error {
			wire, err := space.Open(space.TestbedPrefix(e.ID) + "wire")
			if err != nil {
				return err
			}
			defer wire.Close()
			port, err := wire.Link("porta0")
			if err != nil {
				return err
			}
			if err := wire.Links.LinkSetDown(port); err != nil {
				return err
			}
			sent := func() uint64 { return received(t, e.ID, "a", []string{"vifc1"})[0] }
			end := time.Now().Add(3 * time.Second)
			for before := sent(); sent() < before+least*size && time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
			return wire.Up("porta0")
		}}
	}
	must.Succeed(t, e.Run(t.Context()))
	s := n.samples[0]
	lost, seconds := s.Metrics[sample.LostDatagrams], s.Metrics[sample.Interruption]/1e9
	t.Logf("%.0f datagrams lost, interrupted for %.0f ms", lost, 1e3*seconds)
	if lost < least || seconds > 1 {
		t.Errorf("%.0f datagrams lost, interrupted for %.3f s; want at least %d, and less than 1 s: %v", lost, seconds, least, s.Failure)
	}
	if most := rate / 8 / size * (seconds + madeUp); lost > 1.2*most+flows {
		t.Errorf("%.0f datagrams lost in %.3f s; at most %.0f were sent", lost, seconds, most)
	}
}

// cutTestbed calls the function `also` after it has cut the fabric.
type cutTestbed struct {
	testbed.Testbed
	also func() error
}

func (c cutTestbed) Fabric() testbed.Fabric { return cutFabric{c.Testbed.Fabric(), c.also} }

type cutFabric struct {
	testbed.Fabric
	also func() error
}

func (c cutFabric) Cut() error { return errors.Join(c.Fabric.Cut(), c.also()) }

// The node's own virtual NIC is on the bridge beside a container, with a share of its own.
func TestTheHostsVNICSharesTheSwitchWithAContainer(t *testing.T) {
	s := runOK(t, scenario("bridge", func(sc *suite.Scenario) { sc.Pairs, sc.Endpoint.HostVNIC = 2, true }))
	sharesSwitch(t, s)
	assertFabricAgrees(t, &s)
}

func TestTheHostsVNICSharesTheSwitchWithAVM(t *testing.T) {
	must.Long(t)
	sharesSwitch(t, runVMs(t, vmScenario(t, "bridge", func(sc *suite.Scenario) {
		sc.Pairs, sc.Endpoint.HostVNIC = 2, true
		// An emulated CPU reaches half of it on a busy machine too, which starts the host's
		// client late.
		sc.Workload.Rate, sc.Timing.Cooldown = 8e6, 3*time.Second
	})))
}

// sharesSwitch asserts that one of two pairs with equal rates runs on the host's virtual NIC.
func sharesSwitch(t *testing.T, s sample.Sample) {
	t.Helper()
	share := s.Metrics[sample.HostShare]
	if share < 0.4 || share > 0.6 || math.Abs(s.Metrics[sample.HostThroughput]-share*s.Metrics[sample.Throughput]) > 1 {
		t.Errorf("the host's NIC has a share of %.3f and %.0f bit/s of %.0f", share, s.Metrics[sample.HostThroughput], s.Metrics[sample.Throughput])
	}
	hosts := map[string]uint64{}
	for _, h := range s.Hops {
		if h.Device == "vif" || h.Role == "endpoint" && h.Endpoint == "" {
			hosts[h.Node+" "+h.Device] = max(h.RxBytes, h.TxBytes)
		}
	}
	least := min(hosts["a vif"], hosts["a eth0"], hosts["b vif"], hosts["b eth0"])
	if bytes := s.Metrics[sample.HostThroughput] / 8 * s.Metrics[sample.WindowSeconds]; float64(least) < 0.8*bytes {
		t.Errorf("the host's virtual NICs counted %v bytes, want %.0f or more", hosts, bytes)
	}
}

// upBench brings up the bench of a scenario until the test ends.
func upBench(t *testing.T, e *Experiment, sc *suite.Scenario) *Bench {
	t.Helper()
	b := must.Get(NewBench(context.Background(), e.Executor, e.ID, sc, 2))(t)
	t.Cleanup(func() {
		if err := b.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestAnEndpointsSettingsAreAppliedAndRecorded(t *testing.T) {
	sc := scenario("bridge", func(sc *suite.Scenario) { sc.Endpoint.NoSegmentation = true })
	e := lab(t, &notebook{}, sc)
	b := upBench(t, e, &sc)
	must.Succeed(t, b.Prove(context.Background(), 4))
	for _, key := range []string{"a c1 eth0 tx-tcp-segmentation", "b c1 eth0 tx-generic-segmentation"} {
		if got := b.Settings().Offloads[key]; !strings.EqualFold(got, "off") {
			t.Errorf("setting %q is %q", key, got)
		}
	}
}

// vrouter's XDP program is on the first NIC alone; what arrives on another is
// for its tc program.
func TestOverlaysPassTrafficOverEveryLinkOfATeam(t *testing.T) {
	must.Long(t)
	for _, name := range []string{"vxlan", "vrouter-mpls-udp", "vrouter-mpls-gre", "vrouter-vxlan"} {
		t.Run(name, func(t *testing.T) {
			if _, err := program.Beside("vrouter"); err != nil && name != "vxlan" {
				t.Skip(err)
			}
			sc := scenario(name, func(sc *suite.Scenario) { sc.Fabric.Links, sc.Fabric.Team = 2, suite.Bond })
			e := lab(t, &notebook{}, sc)
			b := upBench(t, e, &sc)
			// Ports, and so links, are by chance: until every link has had a flow.
			team := b.Testbed.Nodes()[1].Attachment().Team
			for range 24 {
				must.Succeed(t, b.Prove(context.Background(), 4))
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
	s := must.Get(space.Open(space.TestbedPrefix(id) + node))(t)
	defer s.Close()
	for _, d := range devices {
		l := must.Get(s.Link(d))(t)
		bytes = append(bytes, l.Attrs().Statistics.RxBytes)
	}
	return bytes
}
