package space

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// command returns the command of iproute2 that makes the object.
func (o object) command(device string) string {
	a, d := o.attributes(), o.Data
	ip := func(kind uint16) string { return net.IP(a[kind]).String() }
	bits := fmt.Sprintf("/%d", d[bitsAt])
	switch {
	case o.Type == unix.RTM_NEWADDR && (a[unix.IFA_LOCAL] == nil || string(a[unix.IFA_LOCAL]) == string(a[unix.IFA_ADDRESS])):
		return "ip address add " + ip(unix.IFA_ADDRESS) + bits + " dev " + device
	case o.Type == unix.RTM_NEWADDR:
		return "ip address add " + ip(unix.IFA_LOCAL) + " peer " + ip(unix.IFA_ADDRESS) + bits + " dev " + device
	case o.Type == unix.RTM_NEWNEIGH && d[neighFlagAt]&unix.NTF_PROXY != 0:
		return "ip neighbour add proxy " + ip(unix.NDA_DST) + " dev " + device
	case o.Type == unix.RTM_NEWNEIGH:
		return fmt.Sprintf("ip neighbour add %s lladdr %s dev %s nud permanent", ip(unix.NDA_DST), net.HardwareAddr(a[unix.NDA_LLADDR]), device)
	}
	return "ip route add " + o.route() + " dev " + device + others(a)
}

// routeTypes has iproute2's names of the types other than unicast.
var routeTypes = map[byte]string{
	unix.RTN_LOCAL: "local", unix.RTN_BROADCAST: "broadcast", unix.RTN_ANYCAST: "anycast", unix.RTN_MULTICAST: "multicast",
	unix.RTN_BLACKHOLE: "blackhole", unix.RTN_UNREACHABLE: "unreachable", unix.RTN_PROHIBIT: "prohibit", unix.RTN_THROW: "throw",
}

// route describes a route as iproute2 does: type, destination, gateway, table and metric.
func (o object) route() string {
	a := o.attributes()
	text := "default"
	if dst := a[unix.RTA_DST]; dst != nil {
		text = fmt.Sprintf("%s/%d", net.IP(dst), o.Data[bitsAt])
	} else if o.Data[familyAt] == unix.AF_INET6 {
		text = "::/0"
	}
	if kind := routeTypes[o.Data[typeAt]]; kind != "" {
		text = kind + " " + text
	}
	if gw := a[unix.RTA_GATEWAY]; gw != nil {
		text += " via " + net.IP(gw).String()
	}
	if table := number(a[unix.RTA_TABLE]); table != unix.RT_TABLE_MAIN {
		text += fmt.Sprintf(" table %d", table)
	}
	if metric := number(a[unix.RTA_PRIORITY]); metric != 0 {
		text += fmt.Sprintf(" metric %d", metric)
	}
	return text
}

// others returns a shell comment with the attributes of a route that the method route omits.
func others(route map[uint16][]byte) string {
	var text strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(route)) {
		switch kind {
		case unix.RTA_DST, unix.RTA_OIF, unix.RTA_GATEWAY, unix.RTA_TABLE, unix.RTA_PRIORITY, unix.RTA_PREF, unix.RTA_CACHEINFO:
			continue
		}
		if text.Len() == 0 {
			text.WriteString(" # and with these attributes of linux/rtnetlink.h:")
		}
		fmt.Fprintf(&text, " %d=%x", kind, route[kind])
	}
	return text.String()
}
