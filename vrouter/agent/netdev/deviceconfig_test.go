package netdev

import (
	"net/netip"
	"slices"
	"testing"

	"windtunnel/vrouter/model"
)

func prefixes(all ...string) (p []netip.Prefix) {
	for _, s := range all {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

func addresses(all ...string) (a []netip.Addr) {
	for _, s := range all {
		a = append(a, netip.MustParseAddr(s))
	}
	return a
}

func TestAWorkloadHasItsSubnetsLengthsAndOneGatewayAFamily(t *testing.T) {
	n := model.Network{Subnets: prefixes("10.0.0.0/24", "10.9.0.0/16", "fd00::/64"), Forwarding: model.L3}
	o := DeviceConfigOf(n, model.Port{IPs: addresses("10.0.0.7", "10.9.1.1", "fd00::7")})
	if want := prefixes("10.0.0.7/24", "10.9.1.1/16", "fd00::7/64"); !slices.Equal(o.Addresses, want) {
		t.Errorf("addresses %v, want %v", o.Addresses, want)
	}
	if want := addresses("10.0.0.1", "fd00::1"); !slices.Equal(o.Gateways, want) {
		t.Errorf("gateways %v, want %v", o.Gateways, want)
	}
}

func TestANetworkThatOnlyBridgesHasNoGateway(t *testing.T) {
	n := model.Network{Subnets: prefixes("10.0.0.0/24"), Forwarding: model.L2}
	if o := DeviceConfigOf(n, model.Port{IPs: addresses("10.0.0.7")}); len(o.Gateways) != 0 || !slices.Equal(o.Addresses, prefixes("10.0.0.7/24")) {
		t.Errorf("the device gets %+v, want the address 10.0.0.7/24 and no gateway", o)
	}
}

func TestUnconfiguredAddressesAreRemovedAndTheWorkloadsOwnStay(t *testing.T) {
	n := model.Network{Subnets: prefixes("10.0.0.0/24", "fd00::/64"), Forwarding: model.L3}
	o := DeviceConfigOf(n, model.Port{IPs: addresses("10.0.0.7", "fd00::7"), AllowSources: prefixes("10.0.0.64/28")})
	for name, c := range map[string]struct{ have, add, remove []netip.Prefix }{
		"nothing there":       {nil, prefixes("10.0.0.7/24", "fd00::7/64"), nil},
		"all right":           {prefixes("10.0.0.7/24", "fd00::7/64", "fe80::1/64"), nil, nil},
		"wrong length":        {prefixes("10.0.0.7/32", "fd00::7/64"), prefixes("10.0.0.7/24"), prefixes("10.0.0.7/32")},
		"another's address":   {prefixes("10.0.0.7/24", "10.0.0.8/24", "fd00::7/64"), nil, prefixes("10.0.0.8/24")},
		"allowed as a source": {prefixes("10.0.0.7/24", "10.0.0.66/32", "fd00::7/64"), nil, nil},
		"outside the subnets": {prefixes("10.0.0.7/24", "172.16.0.1/24", "fd00::7/64"), nil, nil},
		"one missing":         {prefixes("fd00::7/64"), prefixes("10.0.0.7/24"), nil},
	} {
		add, remove := o.addressChanges(c.have)
		if !slices.Equal(add, c.add) || !slices.Equal(remove, c.remove) {
			t.Errorf("%s: add %v remove %v, want %v and %v", name, add, remove, c.add, c.remove)
		}
	}
}
