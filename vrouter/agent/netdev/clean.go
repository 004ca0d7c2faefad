package netdev

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// RemovePairs deletes the device pairs of a node's ports. From ports with an existing device, such as a tap, it
// removes the bandwidth limit.
func RemovePairs(s *Space, node string) error {
	here := NewDevices(s)
	if err := here.List(); err != nil {
		return err
	}
	w := NewWire(here, node, config.Config{}, func(string, string) {})
	defer w.Close()
	var errs []error
	for _, l := range w.Strays(nil, func(string) bool { return false }) {
		errs = append(errs, w.Remove(l))
	}
	for index := range here.byIndex {
		errs = append(errs, w.RemoveLimit(index))
	}
	return errors.Join(errs...)
}

// RemovePlane detaches the programs and deletes the pins.
func RemovePlane(c config.Config) error {
	pins, there := existingPins(c)
	if !there {
		return nil
	}
	return datapath.RemoveStopped(pins)
}

// RemovePins deletes the pins, without detaching the programs of other pins.
func RemovePins(c config.Config) error {
	pins, there := existingPins(c)
	if !there {
		return nil
	}
	return datapath.RemovePins(pins)
}

// existingPins finds the pins without creating their directory.
func existingPins(c config.Config) (path string, there bool) {
	if _, err := os.Stat(c.NodeDir()); errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	path, err := datapath.MountPins(c.PinsDir())
	return path, err == nil
}

// RemoveManaged deletes the address and the route of the node's locator. On the fabric
// devices it deletes the managed neighbour entries and the labels of direct, and restores the sizes of superpackets. underlay are
// the node's last underlay addresses.
func RemoveManaged(s *Space, c config.Config, underlay []netip.Addr) error {
	if err := KeepLocator(s, model.Node{}, netip.Prefix{}); err != nil {
		return err
	}
	if len(underlay) == 0 && len(c.Fabric) == 0 {
		return nil // the fabric devices are unknown
	}
	n := &Neighbours{Space: s, Kept: map[Neighbour]bool{}}
	managed, _, err := n.List()
	if err != nil {
		return err
	}
	fabric, _, err := FabricDevices(NewDevices(s), c.Fabric, underlay)
	if err != nil {
		return err
	}
	if err := RestoreSuperpackets(s, fabric); err != nil {
		return err
	}
	labels := Labels{Space: s}
	if err := labels.Keep(fabric, underlay, nil, nil, nil, true); err != nil {
		return err
	}
	for k := range managed {
		for _, l := range fabric {
			if l.Attrs().Index == k.OIF {
				n.Kept[k] = true
			}
		}
	}
	return n.Keep(nil)
}
