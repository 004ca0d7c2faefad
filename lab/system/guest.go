package system

import (
	"fmt"
	"net/netip"
	"runtime"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// ConfigureGuest configures the network device of a VM. It runs inside the VM;
// inside is the VM's network namespace.
func ConfigureGuest(inside *space.Space, c GuestConfig, e suite.Endpoint) error {
	if err := inside.Workloads(); err != nil {
		return err
	}
	l, err := inside.Link(EndpointDevice)
	if err != nil {
		return err
	}
	if err := inside.Links.LinkSetMTU(l, c.MTU); err != nil {
		return fmt.Errorf("set the MTU of %s in the guest to %d: %w", EndpointDevice, c.MTU, err)
	}
	if err := inside.DeviceSysctl("ipv6", EndpointDevice, "accept_ra", "0"); err != nil {
		return err
	}
	for _, device := range []string{"lo", EndpointDevice} {
		if err := inside.Up(device); err != nil {
			return err
		}
	}
	for _, p := range c.Addresses {
		if err := inside.Connect(EndpointDevice, p); err != nil {
			return err
		}
	}
	for _, via := range c.Gateways {
		everything := netip.PrefixFrom(zeroOf(netip.PrefixFrom(via, via.BitLen())), 0)
		if err := routeVia(inside, via, everything); err != nil {
			return err
		}
	}
	return setEndpoint(inside, e)
}

// setEndpoint applies the suite's endpoint settings to the guest's device.
func setEndpoint(inside *space.Space, e suite.Endpoint) error {
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
		if err := c.disableSegmentation(); err != nil {
			return fmt.Errorf("turn off segmentation by the guest's device: %w", err)
		}
	}
	return nil
}
