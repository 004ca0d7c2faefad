package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// needs returns the features without which a NIC does not have a profile for traffic of an IP
// version. Other features of a profile, such as segmentation with ECN, may be missing.
func needs(profile suite.Offload, version int) (features []string) {
	if profile == suite.OffloadTCP || profile == suite.OffloadTunnel {
		features = append(features, "tx-tcp-segmentation")
	}
	if len(features) > 0 && version == 6 {
		features = append(features, "tx-tcp6-segmentation")
	}
	if profile == suite.OffloadTunnel {
		features = append(features, "tx-udp_tnl-segmentation", "tx-gre-segmentation")
	}
	return features
}

// segmentation returns the states of the device's segmentation features for a profile.
func (d Device) segmentation(profile suite.Offload) map[string]bool {
	states := testbed.NICOffloads(slices.Collect(maps.Keys(d.Features)), profile)
	delete(states, "tx-generic-segmentation") // the kernel's software
	delete(states, "tx-gso-partial")          // how some NICs segment tunnels, if that is on
	if profile != suite.OffloadNone {
		delete(states, "tx-tcp-accecn-segmentation") // plain TCP
	}
	return states
}

// Offloads returns the states of the device's segmentation features for a profile, without
// the features that the driver does not change. A feature that the profile leaves as it was
// has the requested state of the survey, because an earlier profile may have changed it.
// The profile OffloadKept has all requested states, also those that the device does not reach.
func (d Device) Offloads(profile suite.Offload) map[string]bool {
	named, states := d.segmentation(profile), map[string]bool{}
	for name := range d.segmentation(suite.OffloadNone) {
		f := d.Features[name]
		on, ok := named[name]
		if !ok || profile == suite.OffloadKept {
			on = f.Wanted
		}
		if !f.Fixed && (!on || !staysOff(f) || profile == suite.OffloadKept) {
			states[name] = on
		}
	}
	return states
}

// staysOff reports whether a feature is off although it is requested: "off [requested on]" of
// ethtool.
func staysOff(f space.Feature) bool { return f.Wanted && !f.On }

// CanOffload returns an error if the lab cannot give the device a profile for traffic of an
// IP version.
func (d Device) CanOffload(profile suite.Offload, version int) error {
	lacks := d.lacks(profile, version, true, true)
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("the driver of device %s does not set %s, which the scenario's offload %s needs", d.Name, strings.Join(lacks, ", "), profile)
}

// HasOffload returns an error if the device does not have a profile now, for traffic of an IP
// version. Without tunnels, a device that also segments tunnels has the profile OffloadTCP.
func (d Device) HasOffload(profile suite.Offload, version int, tunnels bool) error {
	lacks := d.lacks(profile, version, false, tunnels)
	if len(lacks) == 0 {
		return nil
	}
	return fmt.Errorf("device %s does not have the scenario's offload %s; set it with `ethtool -K %s %s`", d.Name, profile, d.Name, strings.Join(lacks, " "))
}

// lacks lists the features that prevent a profile, with their states in the profile:
// "tx-tcp-segmentation on". With change, features that the driver changes do not prevent it.
func (d Device) lacks(profile suite.Offload, version int, change, tunnels bool) (list []string) {
	if profile == suite.OffloadKept {
		return nil
	}
	states, needs := d.segmentation(profile), needs(profile, version)
	for _, name := range needs { // an old kernel does not list it
		states[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		f, known := d.Features[name]
		on := states[name]
		switch {
		case f.On == on, change && known && !f.Fixed && !staysOff(f):
		case on && !slices.Contains(needs, name):
		case !on && !tunnels && profile == suite.OffloadTCP:
		default:
			list = append(list, name+" "+space.OnOff(on))
		}
	}
	return list
}
