package netdev

import (
	"net/netip"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/kerneltest"
	"windtunnel/vrouter/model"
)

// On a kernel without IPv6, a locator is refused with the reason. A node without a locator needs
// no IPv6.
func TestAKernelWithoutIPv6RefusesALocator(t *testing.T) {
	must.Long(t)
	if !kerneltest.In() {
		kerneltest.Run(t, kerneltest.Guest{Seconds: 600, Megabyte: 512, Parameters: "ipv6.disable=1"})
		return
	}
	must.Succeed(t, kerneltest.Prepare())
	s := must.Get(Open(""))(t)
	defer s.Close()
	locator := netip.MustParsePrefix("fd77:0:0:1::/64")
	must.Fail(t, KeepLocator(s, model.Node{Locator: locator}, netip.Prefix{}), "check that the kernel has IPv6")
	if err := KeepLocator(s, model.Node{}, locator); err != nil {
		t.Errorf("without a locator: %v", err)
	}
	if use, err := HostUseOf(s); err != nil || use.Check(locator) != nil {
		t.Errorf("the host uses a part of the locator: %v, %v; want that it does not", err, use.Check(locator))
	}
}
