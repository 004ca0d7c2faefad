package system

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// plugged is a node with one container whose device is a veth to the node.
func plugged(t *testing.T) *Node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	fresh := func(name string) *space.Space {
		s := must.Get(space.Create(fmt.Sprintf("wt-ep%d-%s", os.Getpid(), name)))(t)
		t.Cleanup(func() {
			if err := errors.Join(s.Close(), space.Delete(s.Name)); err != nil {
				t.Error(err)
			}
		})
		return s
	}
	n := &Node{Space: fresh("node"), CPUs: []int{0, 1}, Endpoints: []Endpoint{{Name: "c1", Space: fresh("c1")}}}
	v := space.Veth{Name: "vifc1", PeerName: EndpointDevice, MTU: 1500}
	must.Succeed(t, n.Space.Pair(v, n.Endpoints[0].Space))
	return n
}

// segmentations are a device's segmentation offloads that are on.
func segmentations(t *testing.T, s *space.Space, device string) (list []string) {
	t.Helper()
	on := must.Get(s.OffloadsOn(device))(t)
	for _, f := range on {
		if strings.HasSuffix(f, "-segmentation") {
			list = append(list, f)
		}
	}
	return list
}

func TestNoSegmentationTakesTheContainersOwnOffloadsAndRecordsIt(t *testing.T) {
	n := plugged(t)
	c := n.Endpoints[0].Space
	before := segmentations(t, n.Space, "vifc1")
	if len(segmentations(t, c, EndpointDevice)) == 0 {
		t.Fatal("the container's device segments nothing to begin with")
	}
	must.Succeed(t, SetEndpoints(n, suite.Endpoint{NoSegmentation: true}))
	if on := segmentations(t, c, EndpointDevice); len(on) > 0 {
		t.Errorf("still on: %v", on)
	}
	if after := segmentations(t, n.Space, "vifc1"); len(after) != len(before) {
		t.Errorf("the vif, which sends what the container receives, has %v, and had %v", after, before)
	}
	for _, f := range []string{"tx-tcp-segmentation", "tx-generic-segmentation"} {
		if got := c.Settings().Offloads[EndpointDevice+" "+f]; got != "off" {
			t.Errorf("%s is recorded as %q", f, got)
		}
	}
}

func TestSpreadSetsAllCPUsOfTheNodeAsReceiversAndRecordsIt(t *testing.T) {
	n := plugged(t)
	c := n.Endpoints[0].Space
	must.Succeed(t, SetEndpoints(n, suite.Endpoint{Spread: true}))
	const file = EndpointDevice + "/queues/rx-0/rps_cpus"
	if got, err := c.ReadSysfs(file); err != nil || strings.TrimLeft(got, "0,") != "3" {
		t.Errorf("rps_cpus is %q (%v), want CPUs 0 and 1", got, err)
	}
	must.Equal(t, "3", c.Settings().Others[file])
}

func TestAPlainContainerAndAVMAreLeftAsTheyAre(t *testing.T) {
	n := plugged(t)
	c := n.Endpoints[0].Space
	for _, e := range []suite.Endpoint{{}, {Kind: suite.VM, Spread: true, NoSegmentation: true}} {
		must.Succeed(t, SetEndpoints(n, e))
	}
	if set := c.Settings(); len(set.Offloads)+len(set.Others) > 0 {
		t.Errorf("these were set: %v", set)
	}
	if len(segmentations(t, c, EndpointDevice)) == 0 {
		t.Error("the offloads are off")
	}
}

func TestAFailedSettingNamesEndpointAndDevice(t *testing.T) {
	n := plugged(t)
	must.Succeed(t, n.Space.Remove("vifc1"))
	for _, e := range []suite.Endpoint{{Spread: true}, {NoSegmentation: true}} {
		must.Fail(t, SetEndpoints(n, e), "c1", EndpointDevice)
	}
}
