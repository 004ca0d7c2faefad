package host

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
)

// Device is the network device of a host that carries the traffic.
type Device struct {
	Name      string
	MTU       int
	Addresses []netip.Prefix // the asked addresses, each with its network
	Features  map[string]space.Feature
	// Blocks has the reasons why the device cannot be moved to a network namespace.
	Blocks []string
}

// deviceOf finds the device with all the given addresses. If some is set, it finds the device
// with the first address that a device has, and leaves out the addresses that this device
// lacks. ssh is the session to the engine.
func deviceOf(addresses []netip.Addr, some bool, ssh sshSession) (Device, error) {
	var d Device
	host, err := space.Open("")
	if err != nil {
		return d, err
	}
	defer host.Close()
	all, err := host.Links.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return d, fmt.Errorf("list the addresses of this machine: %w", err)
	}
	index := 0
	for _, want := range addresses {
		i := slices.IndexFunc(all, func(a netlink.Addr) bool { return a.IP.Equal(want.AsSlice()) })
		if some && (i < 0 || index != 0 && all[i].LinkIndex != index) {
			continue
		}
		if i < 0 {
			return d, fmt.Errorf("no device of this machine has the address %s; correct `data`, or add the address to the device (`ip address` lists all)", want)
		}
		if index != 0 && all[i].LinkIndex != index {
			return d, fmt.Errorf("the addresses %v are on different devices; give addresses of one device", addresses)
		}
		index = all[i].LinkIndex
		bits, _ := all[i].Mask.Size()
		d.Addresses = append(d.Addresses, netip.PrefixFrom(want, bits))
	}
	if index == 0 {
		return d, fmt.Errorf("no device of this machine has one of its internal addresses %v; set the kubelet's --node-ip to an address of a device (`ip address` lists all)", addresses)
	}
	l, err := host.Links.LinkByIndex(index)
	if err != nil {
		return d, fmt.Errorf("find device %d: %w", index, err)
	}
	d.Name, d.MTU = l.Attrs().Name, l.Attrs().MTU
	if d.Features, err = host.Features(d.Name); err != nil {
		return d, err
	}
	d.Blocks, err = blocks(host, l, ssh)
	return d, err
}

// blocks lists the reasons why a device cannot be moved to a network namespace. The
// session to the engine must not use it.
func blocks(host *space.Space, l netlink.Link, ssh sshSession) (why []string, err error) {
	if l.Attrs().Flags&net.FlagLoopback != 0 {
		why = append(why, "it is the loopback device")
	}
	if l.Attrs().MasterIndex != 0 {
		why = append(why, "it is a port of a bridge, a bond or a VRF")
	}
	over, err := ssh.over(host, l)
	if err != nil {
		return nil, err
	}
	if over != "" {
		why = append(why, over)
	}
	shared, err := host.Unreturnable(l)
	return append(why, shared...), err
}

const (
	carrierWait = 20 * time.Second
	carrierLook = 20 * time.Millisecond
)

// awaitCarrier waits until a device has its link.
func awaitCarrier(where *space.Space, device string) error {
	for deadline := time.Now().Add(carrierWait); ; time.Sleep(carrierLook) {
		l, err := where.Link(device)
		if err != nil {
			return err
		}
		if l.Attrs().RawFlags&unix.IFF_LOWER_UP != 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("device %s has no link %v after it was set up; check its cable and the other end", device, carrierWait)
		}
	}
}

// readSettings records the settings of a device that affect the figures.
func readSettings(where *space.Space, device string, reply *space.Settings) error {
	reply.Add("", where.Settings())
	l, err := where.Link(device)
	if err != nil {
		return err
	}
	reply.Note(device+" MTU", fmt.Sprint(l.Attrs().MTU))
	reply.Note(device+" kind", l.Type())
	for _, file := range []string{"speed", "gro_flush_timeout", "napi_defer_hard_irqs", "threaded"} {
		value, err := where.ReadSysfs(device + "/" + file)
		if err == nil {
			reply.Note(device+"/"+file, value)
		} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) { // a virtual device has no speed
			return err
		}
	}
	on, err := where.OffloadsOn(device)
	if err != nil {
		return err
	}
	slices.SortFunc(on, cmp.Compare)
	for _, feature := range on {
		if reply.Offloads == nil {
			reply.Offloads = map[string]string{}
		}
		reply.Offloads[device+" "+feature] = "on"
	}
	return nil
}
