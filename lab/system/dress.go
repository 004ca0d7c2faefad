package system

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// Dress gives the one device of a guest what the system wants it to have. It
// runs in the guest, whose own namespace inside is.
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

// settle applies what the suite asks of the endpoint's device.
func settle(inside *space.Space, e suite.Endpoint) error {
	c := Endpoint{Space: inside}
	if e.Spread {
		cpus, err := onlineCPUs()
		if err != nil {
			return err
		}
		if err := c.spread(cpus); err != nil {
			return fmt.Errorf("spread the guest's receive work over its CPUs %v: %w", cpus, err)
		}
	}
	if e.NoSegmentation {
		if err := c.cut(); err != nil {
			return fmt.Errorf("turn the send offload of the guest's device off: %w", err)
		}
	}
	return nil
}

// onlineCPUs are the guest's, which it numbers from 0 without gaps.
func onlineCPUs() ([]int, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return nil, fmt.Errorf("list the guest's CPUs: %w", err)
	}
	_, last, ok := strings.Cut(strings.TrimSpace(string(text)), "-")
	if !ok {
		return []int{0}, nil
	}
	n, err := strconv.Atoi(last)
	if err != nil {
		return nil, fmt.Errorf("list the guest's CPUs: %q", text)
	}
	cpus := make([]int, n+1)
	for i := range cpus {
		cpus[i] = i
	}
	return cpus, nil
}
