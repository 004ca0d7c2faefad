package netdev

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Maximum sizes of superpackets (GSO and GRO), in bytes.
const (
	// BigSuperpacket is the size that the agent sets (BIG TCP). The number is unusual, so that the agent recognizes the
	// sizes that it has set. It resets only these.
	BigSuperpacket   = 179_978
	plainSuperpacket = 65_536 // the kernel's default, GSO_LEGACY_MAX_SIZE
)

// superpacketAttributes are the attributes of a device with these sizes (linux/if_link.h).
var superpacketAttributes = [4]int{unix.IFLA_GSO_MAX_SIZE, unix.IFLA_GRO_MAX_SIZE, unix.IFLA_GSO_IPV4_MAX_SIZE, unix.IFLA_GRO_IPV4_MAX_SIZE}

// superpacketSizes returns the values of superpacketAttributes. The kernel does not report all of
// them before Linux 6.3: then they are 0.
func superpacketSizes(a *netlink.LinkAttrs) [4]*uint32 {
	return [4]*uint32{&a.GSOMaxSize, &a.GROMaxSize, &a.GSOIPv4MaxSize, &a.GROIPv4MaxSize}
}

// SetSuperpackets sets the sizes of a device from the kernel's default to BigSuperpacket, or back.
// It keeps all other sizes. It reports whether it has changed a size.
func (s *Space) SetSuperpackets(l netlink.Link, big bool) (changed bool, err error) {
	from, to := uint32(BigSuperpacket), uint32(plainSuperpacket)
	if big {
		from, to = to, from
	}
	r := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	index := nl.NewIfInfomsg(unix.AF_UNSPEC)
	index.Index = int32(l.Attrs().Index)
	r.AddData(index)
	sizes := superpacketSizes(l.Attrs())
	var want [4]uint32
	for i, size := range sizes {
		if want[i] = *size; *size == from {
			want[i], changed = to, true
		}
		r.AddData(nl.NewRtAttr(superpacketAttributes[i], nl.Uint32Attr(want[i]))) // all four, also unchanged ones: the kernel sets GRO_IPV4_MAX_SIZE when it sets GRO_MAX_SIZE
	}
	if !changed || slices.Contains(want[:], 0) {
		return false, nil
	}
	err = s.Do(func() error {
		_, err := r.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("set the maximum size of superpackets of device %s to %d: %w", l.Attrs().Name, to, err)
	}
	for i, size := range sizes {
		*size = want[i]
	}
	return true, nil
}

// RestoreSuperpackets sets the sizes of the fabric devices back.
func RestoreSuperpackets(s *Space, fabric []netlink.Link) error {
	var errs []error
	for _, l := range fabric {
		_, err := s.SetSuperpackets(l, false)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// PassesBig reports whether all sizes of a device are BigSuperpacket or more.
func PassesBig(l netlink.Link) bool {
	for _, size := range superpacketSizes(l.Attrs()) {
		if *size < BigSuperpacket {
			return false
		}
	}
	return true
}

// FabricRefusesBig returns why a fabric device cannot send superpackets of BigSuperpacket bytes; "" if it can after
// SetSuperpackets has raised its sizes. A virtual device, such as a bond or a veth device, must have
// the sizes already, because the agent does not know the devices behind it.
func FabricRefusesBig(l netlink.Link) string {
	a := l.Attrs()
	if PassesBig(l) {
		return ""
	}
	if t := l.Type(); t != "device" {
		return fmt.Sprintf("fabric device %s is virtual (%s), and its maximum sizes are not raised", a.Name, t)
	}
	if a.TSOMaxSize < BigSuperpacket {
		return fmt.Sprintf("fabric device %s segments at most %d bytes (tso_max_size)", a.Name, a.TSOMaxSize)
	}
	for _, size := range superpacketSizes(a) {
		if *size < BigSuperpacket && *size != plainSuperpacket {
			return fmt.Sprintf("fabric device %s has other maximum sizes than the kernel's default of %d", a.Name, plainSuperpacket)
		}
	}
	return ""
}

// ForwardingRefusesBig returns why the node must not receive superpackets of BigSuperpacket bytes; "" if it may. The reason is
// that IP forwarding is on, and that the node can forward them to a device with smaller sizes.
func ForwardingRefusesBig(here *Devices, node string, fabric map[string]bool) (why string, err error) {
	forwards, err := here.space.forwards()
	if err != nil || !forwards {
		return "", err
	}
	for _, l := range here.byIndex {
		a := l.Attrs()
		_, ours := PortOf(node, a.Alias)
		ours = ours || a.Name == GRODevice || strings.HasPrefix(a.Name, ownPrefix) && isPair(l)
		if a.Flags&net.FlagUp == 0 || a.RawFlags&unix.IFF_LOWER_UP == 0 || a.Flags&net.FlagLoopback != 0 || ours || fabric[a.Name] || PassesBig(l) {
			continue
		}
		return fmt.Sprintf("the node forwards packets, and device %s has smaller maximum sizes", a.Name), nil
	}
	return "", nil
}

// forwards reports whether IPv4 or IPv6 forwarding is on.
func (s *Space) forwards() (forwards bool, err error) {
	err = s.Do(func() error {
		for _, path := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
			text, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("read whether the node forwards packets: %w", err)
			}
			forwards = forwards || err == nil && strings.TrimSpace(string(text)) != "0"
		}
		return nil
	})
	return forwards, err
}
