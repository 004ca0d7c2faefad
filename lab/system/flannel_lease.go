package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// flannelLease is the content of flanneld's subnet file: the node's subnet and the
// containers' MTU (WriteSubnetFile, pkg/subnet/subnet.go).
type flannelLease struct {
	Gateway netip.Prefix // address of the node's bridge, with the length of its subnet
	MTU     int
}

const (
	flannelPrefix    = "/coreos.com/network"
	flannelConfigKey = flannelPrefix + "/config"
)

// flannelConfig returns the configuration of flannel's network as JSON
// (Documentation/configuration.md). The network includes the first subnet, which
// flannel omits by default.
func flannelConfig(backend string) (string, error) {
	whole := 1 << (routedBits4 - routedNetwork.Bits())
	first, _ := routedSubnets(0)
	last, _ := routedSubnets(whole - 1)
	config, err := json.Marshal(map[string]any{
		"Network":   routedNetwork.String(),
		"SubnetLen": routedBits4,
		"SubnetMin": first.Addr().String(),
		"SubnetMax": last.Addr().String(),
		"Backend":   map[string]string{"Type": backend},
	})
	if err != nil {
		return "", fmt.Errorf("write flannel's network configuration: %w", err)
	}
	return string(config), nil
}

// earlierLease returns a subnet file as an earlier flanneld would leave it. The file
// has no MTU, so it differs from the file that flanneld writes.
func earlierLease(subnet netip.Prefix) string {
	return fmt.Sprintf("FLANNEL_NETWORK=%s\nFLANNEL_SUBNET=%s\n", routedNetwork, gateway(subnet))
}

// errNoLease: flanneld has not written its file yet.
var errNoLease = errors.New("flanneld has no subnet yet")

// parseFlannelLease parses a subnet file: KEY=value, one on each line.
func parseFlannelLease(text string) (flannelLease, error) {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			values[key] = value
		}
	}
	if values["FLANNEL_MTU"] == "" || values["FLANNEL_SUBNET"] == "" {
		return flannelLease{}, errNoLease
	}
	gw, err := netip.ParsePrefix(values["FLANNEL_SUBNET"])
	if err != nil {
		return flannelLease{}, fmt.Errorf("flanneld's subnet file: FLANNEL_SUBNET: %w", err)
	}
	mtu, err := strconv.Atoi(values["FLANNEL_MTU"])
	if err != nil || mtu <= 0 {
		return flannelLease{}, fmt.Errorf("flanneld's subnet file: FLANNEL_MTU=%q is not an MTU", values["FLANNEL_MTU"])
	}
	return flannelLease{gw, mtu}, nil
}
