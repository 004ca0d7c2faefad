package meter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// Roles of devices on the path.
const (
	RoleEndpoint = "endpoint" // inside a container
	RoleVif      = "vif"      // the container's device on the node
	RoleBridge   = "bridge"
	RoleTunnel   = "tunnel"
	RoleFabric   = "fabric" // the node's NIC
	RolePort     = "port"   // of the wire
)

// Device is a hop to meter.
type Device struct {
	Namespace string // one of the meter's namespaces; empty for the node itself
	Name      string
	Role      string
	Series    bool // the light readings contain it too
	Order     int  // position on the path, counted from the endpoint, from 0
}

// DeviceReading has the counters of a device and its queues since the device
// was made.
type DeviceReading struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Order   int    `json:"order"` // see Device
	Index   int    `json:"ifindex"`
	Traffic        // counts buffers: a segment train of 64 KiB is one packet
	// RxBare is the number of RxPackets whose bytes in RxBytes lack the
	// Ethernet header.
	RxBare  uint64 `json:"rx_bare_packets,omitempty"`
	RxDrops uint64 `json:"rx_dropped"`
	TxDrops uint64 `json:"tx_dropped"`
	Qdisc   Qdisc  `json:"qdisc"`
}

// Qdisc is the state of a device's queues: its root qdisc, whose figures
// include those of its children, and the drops of its clsact or ingress hook.
type Qdisc struct {
	Kind         string `json:"kind,omitempty"`
	Handle       uint32 `json:"handle,omitempty"`
	Drops        uint64 `json:"dropped"`      // 32 bits, wraps
	IngressDrops uint64 `json:"hook_dropped"` // by programs and actions; 32 bits, wraps
}

// ReceivedBytes returns the received bytes with all Ethernet headers.
func (r DeviceReading) ReceivedBytes() uint64 { return r.RxBytes + EthernetHeader*r.RxBare }

// barePackets counts the packets that a veth received by polling (NAPI). The
// veth counts their bytes without the Ethernet header, and the bytes of all
// other packets with it (veth_xdp_rcv and veth_xmit, drivers/net/veth.c). The
// offloads of both ends decide which packets are polled; the driver's
// statistics count them.
func barePackets(stats map[string]uint64) (n uint64) {
	for name, value := range stats {
		if strings.HasPrefix(name, "rx_queue_") && strings.HasSuffix(name, "_xdp_packets") {
			n += value
		}
	}
	return n
}

// readDevices reads the wanted devices of one namespace. Devices and queues
// come from one dump each: with many containers, a request for every device
// would cost more than the dump.
func readDevices(links *netlink.Handle, drivers *ethtool.Ethtool, want []Device) ([]DeviceReading, error) {
	all, err := retryDump(links.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	queues, err := retryDump(func() ([]netlink.Qdisc, error) { return links.QdiscList(nil) })
	if err != nil {
		return nil, fmt.Errorf("list queueing disciplines: %w", err)
	}
	byName := make(map[string]netlink.Link, len(all))
	for _, l := range all {
		byName[l.Attrs().Name] = l
	}
	readings := make([]DeviceReading, 0, len(want))
	for _, w := range want {
		l, ok := byName[w.Name]
		if !ok {
			return nil, errGone("device " + w.Name)
		}
		r := deviceReading(l, queues, w)
		if l.Type() == "veth" {
			stats, err := drivers.Stats(w.Name)
			if err != nil {
				return nil, fmt.Errorf("read driver statistics of %s: %w", w.Name, err)
			}
			r.RxBare = barePackets(stats)
		}
		readings = append(readings, r)
	}
	return readings, nil
}

func deviceReading(l netlink.Link, queues []netlink.Qdisc, w Device) DeviceReading {
	a := l.Attrs()
	r := DeviceReading{Name: a.Name, Role: w.Role, Order: w.Order, Index: a.Index}
	if s := a.Statistics; s != nil {
		r.Traffic = Traffic{RxBytes: s.RxBytes, RxPackets: s.RxPackets, TxBytes: s.TxBytes, TxPackets: s.TxPackets}
		r.RxDrops, r.TxDrops = s.RxDropped, s.TxDropped
	}
	for _, q := range queues {
		qa := q.Attrs()
		if qa.LinkIndex != a.Index || qa.Statistics == nil || qa.Statistics.Queue == nil {
			continue
		}
		s := qa.Statistics.Queue
		switch qa.Parent {
		case netlink.HANDLE_ROOT:
			r.Qdisc.Kind, r.Qdisc.Handle = q.Type(), qa.Handle
			r.Qdisc.Drops = uint64(s.Drops)
		case netlink.HANDLE_INGRESS:
			r.Qdisc.IngressDrops = uint64(s.Drops)
		}
	}
	return r
}

const dumpAttempts = 3

// retryDump repeats a netlink dump that the kernel marked as inconsistent
// because of a change during the dump. If the namespace changes all the time,
// the last attempt is used: its entries are complete.
func retryDump[T any](dump func() ([]T, error)) (list []T, err error) {
	for range dumpAttempts {
		list, err = dump()
		if !errors.Is(err, netlink.ErrDumpInterrupted) {
			return list, err
		}
	}
	return list, nil
}
