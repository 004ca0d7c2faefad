package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/model"
)

// pairNames returns the names of an endpoint's veth pair: on the node, and in the
// container. They derive from the id, so that a restarted plugin finds them.
func pairNames(endpoint string) (host, inside string) {
	sum := sha256.Sum256([]byte(endpoint))
	text := hex.EncodeToString(sum[:5])
	return "vr-d" + text, "vr-c" + text
}

// makePair creates an endpoint's veth pair. It deletes an existing one first.
func makePair(endpoint string, mac model.MAC) (host, inside string, err error) {
	host, inside = pairNames(endpoint)
	if err := removePair(endpoint); err != nil {
		return "", "", err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = host
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: inside, PeerHardwareAddr: net.HardwareAddr(mac[:])}
	if err := netlink.LinkAdd(pair); err != nil {
		return "", "", fmt.Errorf("create the veth pair %s and %s: %w", host, inside, err)
	}
	return host, inside, nil
}

// removePair deletes an endpoint's veth pair, also if one end is in a container.
func removePair(endpoint string) error {
	host, _ := pairNames(endpoint)
	l, err := netlink.LinkByName(host)
	var none netlink.LinkNotFoundError
	if errors.As(err, &none) {
		return nil
	}
	if err == nil {
		err = netlink.LinkDel(l)
	}
	if err != nil {
		return fmt.Errorf("delete device %s: %w", host, err)
	}
	return nil
}

func setMTU(mtu int, devices ...string) error {
	for _, name := range devices {
		l, err := netlink.LinkByName(name)
		if err == nil && mtu > 0 {
			err = netlink.LinkSetMTU(l, mtu)
		}
		if err != nil {
			return fmt.Errorf("set the MTU of device %s to %d: %w", name, mtu, err)
		}
	}
	return nil
}
