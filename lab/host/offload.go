package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/netns"
)

// profileNeeds are the features without which a NIC does not have a profile. Other features
// of a profile, such as segmentation with ECN, may be missing.
var profileNeeds = map[suite.Offload][]string{
	suite.OffloadTCP:    plainTCP,
	suite.OffloadTunnel: append(slices.Clone(plainTCP), "tx-udp_tnl-segmentation", "tx-gre-segmentation"),
}

var plainTCP = []string{"tx-tcp-segmentation", "tx-tcp6-segmentation"}

// segmentation returns the states of the device's segmentation features for a profile.
func (d Device) segmentation(profile suite.Offload) map[string]bool {
	states := netns.NICOffloads(slices.Collect(maps.Keys(d.Features)), profile)
	delete(states, "tx-generic-segmentation") // the kernel's software
	delete(states, "tx-gso-partial")          // how some NICs segment tunnels, if that is on
	return states
}

// Offloads returns the states of the device's segmentation features for a profile, without
// the features that the driver does not change. For OffloadKept these are the states of the
// survey.
func (d Device) Offloads(profile suite.Offload) map[string]bool {
	states := d.segmentation(profile)
	for name := range states {
		if profile == suite.OffloadKept {
			states[name] = d.Features[name].Wanted
		}
		if d.Features[name].Fixed {
			delete(states, name)
		}
	}
	return states
}

// CanOffload returns an error if the lab cannot give the device a profile.
func (d Device) CanOffload(profile suite.Offload) error {
	lacks := d.lacks(profile, true, true)
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("the driver of device %s does not set %s, which the scenario's offload %s needs", d.Name, strings.Join(lacks, ", "), profile)
}

// HasOffload returns an error if the device does not have a profile now. Without tunnels, a
// device that also segments tunnels has the profile OffloadTCP.
func (d Device) HasOffload(profile suite.Offload, tunnels bool) error {
	lacks := d.lacks(profile, false, tunnels)
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("device %s does not have the scenario's offload %s; set it with `ethtool -K %s %s`", d.Name, profile, d.Name, strings.Join(lacks, " "))
}

// lacks lists the features that prevent a profile, with their states in the profile:
// "tx-tcp-segmentation on". With change, features that the driver changes do not prevent it.
func (d Device) lacks(profile suite.Offload, change, tunnels bool) (list []string) {
	if profile == suite.OffloadKept {
		return nil
	}
	states := d.segmentation(profile)
	for _, name := range profileNeeds[profile] { // an old kernel does not list it
		states[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		f, known := d.Features[name]
		on := states[name]
		switch {
		case f.On == on, change && known && !f.Fixed:
		case on && !slices.Contains(profileNeeds[profile], name):
		case !tunnels && profile == suite.OffloadTCP && !slices.Contains(plainTCP, name):
		default:
			list = append(list, name+" "+onOff(on))
		}
	}
	return list
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
