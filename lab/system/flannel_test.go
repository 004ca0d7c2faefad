package system

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func TestFlannelsMTULeavesRoomForItsEncapsulation(t *testing.T) {
	for backend, want := range map[string]int{flannelVXLAN: 1450, flannelUDP: 1472, flannelHostGW: 1500} {
		if got := MTU(Flannel{backend}, 1500); got != want {
			t.Errorf("%s on a fabric of 1500: MTU %d, want %d", backend, got, want)
		}
	}
}

func TestFlannelNeedsTheFeaturesOfItsBackend(t *testing.T) {
	for backend, want := range map[string]string{flannelVXLAN: "vxlan", flannelUDP: "tun"} {
		if features, _ := (Flannel{backend}).Needs(); !slices.Contains(features, want) {
			t.Errorf("%s does not ask for %s", backend, want)
		}
		if features, _ := (Flannel{flannelHostGW}).Needs(); slices.Contains(features, want) {
			t.Errorf("host-gw asks for %s", want)
		}
	}
	must.Fail(t, Supports(Flannel{flannelVXLAN}, suite.TwoNodes, suite.Fabric{Links: 2}), "one fabric device")
	if !(Flannel{flannelVXLAN}).About().IPv4Only {
		t.Error("it claims to carry IPv6")
	}
}

// The network contains every node's subnet, also the first and the last.
func TestTheConfigurationHasEveryNodesSubnet(t *testing.T) {
	text := must.Get(flannelConfig(flannelUDP))(t)
	var c struct {
		Network              netip.Prefix
		SubnetLen            int
		SubnetMin, SubnetMax netip.Addr
		Backend              struct{ Type string }
	}
	must.Succeed(t, json.Unmarshal([]byte(text), &c))
	if c.Network.String() != "10.31.0.0/16" || c.SubnetLen != 20 || c.Backend.Type != "udp" {
		t.Errorf("the configuration is %+v, want 10.31.0.0/16 in parts of 20 bits by UDP", c)
	}
	if c.SubnetMin.String() != "10.31.0.0" || c.SubnetMax.String() != "10.31.240.0" {
		t.Errorf("subnets from %s to %s", c.SubnetMin, c.SubnetMax)
	}
	for i := range 16 {
		v4, _ := routedSubnets(i)
		if v4.Bits() != c.SubnetLen || v4.Addr().Less(c.SubnetMin) || c.SubnetMax.Less(v4.Addr()) {
			t.Errorf("node %d's subnet %s is not in flannel's network", i, v4)
		}
	}
}

// A subnet file as flannel 0.28 writes it.
const writtenLease = "FLANNEL_NETWORK=10.31.0.0/16\nFLANNEL_SUBNET=10.31.16.1/20\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n"

func TestALeaseIsReadFromTheFileOfFlanneld(t *testing.T) {
	lease, err := parseFlannelLease(writtenLease)
	if err != nil || lease.Gateway.String() != "10.31.16.1/20" || lease.MTU != 1450 {
		t.Errorf("the lease is %+v (%v), want 10.31.16.1/20 with an MTU of 1450", lease, err)
	}
	v4, _ := routedSubnets(1)
	if _, err := parseFlannelLease(earlierLease(v4)); !errors.Is(err, errNoLease) {
		t.Errorf("the file that the lab wrote counts as flanneld's: %v", err)
	}
	for text, say := range map[string]string{
		"":                      errNoLease.Error(),
		"FLANNEL_MTU=1450\n":    errNoLease.Error(),
		"FLANNEL_SUBNET=x":      errNoLease.Error(),
		"rubbish\x00=\n\n=\nno": errNoLease.Error(),
		"FLANNEL_SUBNET=10.31.16.1\nFLANNEL_MTU=1450":      "FLANNEL_SUBNET",
		"FLANNEL_SUBNET=10.31.16.1/20\nFLANNEL_MTU=-1":     `"-1" is not an MTU`,
		"FLANNEL_SUBNET=10.31.16.1/20\nFLANNEL_MTU=plenty": `"plenty" is not an MTU`,
	} {
		if lease, err := parseFlannelLease(text); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%q was read as %+v (%v), want %q", text, lease, err, say)
		}
	}
}

func TestAFlannelThatDiffersFromTheLabIsRefused(t *testing.T) {
	n := &Node{Index: 1, Name: "wt-none-b", MTU: 1500}
	right := flannelLease{netip.MustParsePrefix("10.31.16.1/20"), 1450}
	f := Flannel{flannelVXLAN}
	must.Succeed(t, f.check(n, right))
	for say, wrong := range map[string]flannelLease{
		"gateway 10.31.32.1/20 instead of 10.31.16.1/20": {netip.MustParsePrefix("10.31.32.1/20"), 1450},
		"MTU of 1400 on a fabric of 1500, want 1450":     {right.Gateway, 1400},
	} {
		must.Fail(t, f.check(n, wrong), say)
	}
}

func TestOnlyRoutesToPartsOfTheRoutedNetworkAreRemoved(t *testing.T) {
	for text, want := range map[string]bool{
		"10.31.16.0/20": true, "10.31.0.0/16": true, "10.31.240.1/32": true,
		"10.0.0.0/8": false, "172.31.0.0/24": false, "0.0.0.0/0": false, "10.32.0.0/20": false,
	} {
		_, network, err := net.ParseCIDR(text)
		must.Succeed(t, err)
		if got := inRoutedNetwork(network); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func FuzzFlannelLease(f *testing.F) {
	f.Add(writtenLease)
	f.Add("FLANNEL_SUBNET=10.31.16.1/20\nFLANNEL_MTU=99999999999999999999\n")
	f.Add("=\n==FLANNEL_MTU=1=2")
	f.Fuzz(func(t *testing.T, text string) {
		lease, err := parseFlannelLease(text)
		if err == nil && (!lease.Gateway.IsValid() || lease.MTU <= 0) {
			t.Errorf("%q was read as %+v", text, lease)
		}
	})
}
