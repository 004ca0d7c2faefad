package system

import (
	"fmt"
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
		if err := routeAll(inside, via); err != nil {
			return err
		}
	}
	cpus := make([]int, runtime.NumCPU()) // the guest numbers them from 0 without gaps
	for i := range cpus {
		cpus[i] = i
	}
	return Endpoint{Name: "the guest", Space: inside}.set(e, cpus)
}
