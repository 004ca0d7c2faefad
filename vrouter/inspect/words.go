package inspect

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"windtunnel/vrouter/model"
)

// none is the text of a cell without a value.
const none = "-"

// protocols are names of IANA protocol numbers.
var protocols = map[uint8]string{0: "hop-by-hop", 1: "icmp", 6: "tcp", 17: "udp", 47: "gre", 50: "esp", 58: "icmp6", 132: "sctp"}

// ProtocolName is the name of an IP protocol, or its number if it has no name
// here.
func ProtocolName(p uint8) string {
	if name, ok := protocols[p]; ok {
		return name
	}
	return strconv.Itoa(int(p))
}

// ParseProtocol parses a protocol's name or number.
func ParseProtocol(s string) (uint8, error) {
	for p, name := range protocols {
		if strings.EqualFold(s, name) {
			return p, nil
		}
	}
	n, err := strconv.ParseUint(s, 10, 8)
	if err != nil {
		return 0, fmt.Errorf("%q is not a protocol; write tcp, udp, icmp, icmp6, sctp, or a number up to 255", s)
	}
	return uint8(n), nil
}

func number[N ~int | ~uint16 | ~uint32 | ~uint64](n N) string {
	return strconv.FormatUint(uint64(n), 10)
}

// numberOrNone formats a number; zero means that there is no value.
func numberOrNone[N ~int | ~uint16 | ~uint32 | ~uint64](n N) string {
	if n == 0 {
		return none
	}
	return number(n)
}

func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

func mac(m model.MAC) string {
	if m.IsZero() {
		return none
	}
	return m.String()
}

func list(words []string) string { return orNone(strings.Join(words, " ")) }

func prefixes(all []netip.Prefix) string {
	words := make([]string, len(all))
	for i, p := range all {
		if p.IsSingleIP() {
			words[i] = p.Addr().String()
		} else {
			words[i] = p.String()
		}
	}
	return list(words)
}

// Duration formats a duration in at most two units: 850ms, 4.2s, 3m05s, 2h10m,
// 3d04h.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}
