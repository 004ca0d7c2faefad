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

// pairNames are an endpoint's devices: on the node, and the one that moves into
// the container. They follow from its id, so that a plugin that was started anew
// finds them.
func pairNames(endpoint string) (host, inside string) {
	sum := sha256.Sum256([]byte(endpoint))
	text := hex.EncodeToString(sum[:5])
	return "vr-d" + text, "vr-c" + text
}

// makePair makes an endpoint's devices anew.
func makePair(endpoint string, mac model.MAC) (host, inside string, err error) {
	host, inside = pairNames(endpoint)
	if err := removePair(endpoint); err != nil {
		return "", "", err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = host
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: inside, PeerHardwareAddr: net.HardwareAddr(mac[:])}
	if err := netlink.LinkAdd(pair); err != nil {
		return "", "", fmt.Errorf("make the devices %s and %s: %w", host, inside, err)
	}
	return host, inside, nil
}

// removePair deletes an endpoint's devices, wherever the inner one is.
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
			return fmt.Errorf("give device %s the MTU %d: %w", name, mtu, err)
		}
	}
	return nil
}
