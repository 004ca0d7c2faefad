package ssh

import (
	"context"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/host"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// segmentation returns the states of three features of a host's data device: TCP and VXLAN
// segmentation, and the segmentation of UDP.
func segmentation(t *testing.T, sp *space.Space) (states string) {
	t.Helper()
	features := must.Get(sp.Features("data"))(t)
	for _, name := range []string{"tx-tcp-segmentation", "tx-udp_tnl-segmentation", "tx-udp-segmentation"} {
		if features[name].On {
			states += "+"
		} else {
			states += "-"
		}
	}
	return states
}

func TestOffloadsAreSetOnDedicatedDevicesAndRestored(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	s.Must(s.spaces[1].Offloads("data", map[string]bool{"tx-udp-segmentation": false}))
	before := []string{segmentation(t, s.spaces[0]), segmentation(t, s.spaces[1])}
	if before[0] != "+++" || before[1] != "++-" {
		t.Fatalf("the devices have the features %v: the test does not test", before)
	}
	s.hosts.Dedicated = true
	x := s.connect()
	s.hold(x)
	for _, c := range []struct {
		profile    suite.Offload
		want       []string
		recorded   string
		unrecorded string
	}{
		{suite.OffloadTCP, []string{"+--", "+--"}, "data tx-tcp-segmentation", "data tx-udp_tnl-segmentation"},
		{suite.OffloadNone, []string{"---", "---"}, "data rx-checksum", "data tx-tcp-segmentation"},
		{suite.OffloadTunnel, []string{"++-", "++-"}, "data tx-udp_tnl-segmentation", "data tx-udp-segmentation"},
		{suite.OffloadKept, before, "data tx-tcp-segmentation", ""},
	} {
		tb, err := x.Up(context.Background(), testbed.Spec{ID: runID(), Nodes: 2, Fabric: suite.Fabric{Kind: suite.Existing, MTU: 1500, Offload: c.profile}})
		s.Must(err)
		for i, n := range tb.Nodes() {
			sp, err := space.Open(n.Attachment().SpaceBase)
			s.Must(err)
			if got := segmentation(t, sp); got != c.want[i] {
				t.Errorf("offload %q on host %s: features %s, want %s", c.profile, n.Name(), got, c.want[i])
			}
			s.Must(sp.Close())
		}
		offloads := tb.Settings().Offloads
		if offloads["a "+c.recorded] != "on" || offloads["a "+c.unrecorded] == "on" {
			t.Errorf("offload %q: the record has the offloads %v", c.profile, offloads)
		}
		if says := strings.Contains(tb.Fabric().Describe(), "the lab set offload"); says != (c.profile != suite.OffloadKept) {
			t.Errorf("offload %q: the fabric is %q", c.profile, tb.Fabric().Describe())
		}
		s.Must(tb.Down(context.Background()))
	}
	s.Must(x.Close(context.Background()))
	for i, sp := range s.spaces {
		if after := segmentation(t, sp); after != before[i] {
			t.Errorf("host %s had the features %s before the run, and has %s after it", s.hosts.Hosts[i].Name, before[i], after)
		}
	}
}

// Without checksums, the kernel turns off the requested segmentation.
func TestADeviceThatKeepsARequestedFeatureOffIsUsedAsItIs(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	s.Must(s.spaces[0].Offloads("data", map[string]bool{"tx-checksum-ip-generic": false}))
	before, err := s.spaces[0].Features("data")
	s.Must(err)
	if f := before["tx-tcp-segmentation"]; f.On || !f.Wanted {
		t.Fatalf("TCP segmentation is %+v: the test does not test", f)
	}
	s.hosts.Dedicated = true
	x := s.connect()
	s.hold(x)
	sc := scenario("raw", time.Second)
	_, err = requires(x, &sc)
	must.Fail(t, err, "host a: the driver of device data does not set tx-tcp-segmentation on")
	for _, profile := range []suite.Offload{suite.OffloadKept, suite.OffloadNone, suite.OffloadKept} {
		tb, err := x.Up(context.Background(), testbed.Spec{ID: runID(), Nodes: 2, Fabric: suite.Fabric{Kind: suite.Existing, MTU: 1500, Offload: profile}})
		if err != nil {
			t.Fatalf("offload %q: %v", profile, err)
		}
		s.Must(tb.Down(context.Background()))
	}
	s.Must(x.Close(context.Background()))
	if after, err := s.spaces[0].Features("data"); err != nil || after["tx-tcp-segmentation"] != before["tx-tcp-segmentation"] {
		t.Errorf("TCP segmentation was %+v, and is %+v (%v)", before["tx-tcp-segmentation"], after["tx-tcp-segmentation"], err)
	}
}

// A device that is not dedicated must not change. So the lab refuses other offloads.
func TestOtherOffloadsAreRefusedOnDevicesThatAreNotDedicated(t *testing.T) {
	must.Long(t)
	s := newSite(t)
	s.Must(s.spaces[1].Offloads("data", map[string]bool{"tx-tcp-segmentation": false}))
	x := s.connect()
	for profile, want := range map[suite.Offload]string{
		suite.OffloadTCP: "host b: device data does not have the scenario's offload tcp; set it with `ethtool -K data tx-tcp-segmentation on`", suite.OffloadNone: "host a: device data does not have the scenario's offload none", suite.OffloadKept: "",
	} {
		sc := scenario("raw", time.Second)
		sc.Fabric.Offload = profile
		_, err := requires(x, &sc)
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "dedicated: true")) {
			t.Errorf("offload %q: error %v, want %q", profile, err, want)
		}
	}
}

func TestADriverThatKeepsAFeatureIsNamed(t *testing.T) {
	d := host.Device{Name: "eth0", MTU: 1500, Features: map[string]space.Feature{"tx-tcp-segmentation": {Fixed: true}}}
	x := &Executor{dedicated: true, machines: []*machine{{Host: Host{Name: "a"}, survey: &host.Survey{Device: d, Root: true}}}}
	sc := scenario("raw", time.Second)
	_, err := requires(x, &sc)
	must.Fail(t, err, "host a: the driver of device eth0 does not set tx-tcp-segmentation on, which")
}
