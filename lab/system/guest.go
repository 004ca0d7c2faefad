package system

import (
	"fmt"
	"net/netip"
	"runtime"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// Dress configures the only device of a guest as the system wants it. It runs in the
// guest, whose namespace is inside.
func Dress(inside *space.Space, a Attire, e suite.Endpoint) error {
	if err := inside.Workloads(); err != nil {
		return err
	}
	l, err := inside.Link(EndpointDevice)
	if err != nil {
		return err
	}
	if err := inside.Links.LinkSetMTU(l, a.MTU); err != nil {
		return fmt.Errorf("set the MTU of %s in the guest to %d: %w", EndpointDevice, a.MTU, err)
	}
	if err := inside.DeviceSysctl("ipv6", EndpointDevice, "accept_ra", "0"); err != nil {
		return err
	}
	for _, device := range []string{"lo", EndpointDevice} {
		if err := inside.Up(device); err != nil {
			return err
		}
	}
	for _, p := range a.Addresses {
		if err := inside.Connect(EndpointDevice, p); err != nil {
			return err
		}
	}
	for _, via := range a.Gateways {
		everything := netip.PrefixFrom(zeroOf(netip.PrefixFrom(via, via.BitLen())), 0)
		if err := routeVia(inside, via, everything); err != nil {
			return err
		}
	}
	return settle(inside, e)
}

// settle applies the suite's settings to the endpoint's device.
func settle(inside *space.Space, e suite.Endpoint) error {
	c := Endpoint{Space: inside}
	if e.Spread {
		cpus := make([]int, runtime.NumCPU()) // the guest numbers them from 0 without gaps
		for i := range cpus {
			cpus[i] = i
		}
		if err := c.spread(cpus); err != nil {
			return fmt.Errorf("spread the guest's receive work over its CPUs %v: %w", cpus, err)
		}
	}
	if e.NoSegmentation {
		if err := c.cut(); err != nil {
			return fmt.Errorf("turn off the send offload of the guest's device: %w", err)
		}
	}
	return nil
}
