package model

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
)

// ParseMAC parses an Ethernet address: six hexadecimal bytes, separated by colons
// or dashes.
func ParseMAC(s string) (MAC, error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(s) != len("02:00:00:00:00:01") || len(hw) != 6 {
		return MAC{}, fmt.Errorf("%q is not a MAC address; write six bytes such as 02:00:00:00:00:01", phrase.Clip(s))
	}
	return MAC(hw), nil
}

// MarshalText implements encoding.TextMarshaler. An absent address is empty.
func (m MAC) MarshalText() ([]byte, error) {
	if m.IsZero() {
		return nil, nil
	}
	return []byte(m.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. Empty text is an absent
// address.
func (m *MAC) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*m = MAC{}
		return nil
	}
	*m, err = ParseMAC(string(text))
	return err
}

// IsUnicast reports whether this is the address of one device.
func (m MAC) IsUnicast() bool { return m[0]&1 == 0 && !m.IsZero() }

// protocols are the names that rules can use, with IANA's numbers.
var protocols = map[string]uint8{"icmp": 1, "tcp": 6, "udp": 17, "gre": 47, "icmp6": 58, "sctp": 132}

// ProtocolNumber is IANA's number of the protocol; 0: any.
func (r Rule) ProtocolNumber() (uint8, error) {
	if r.Protocol == "" {
		return 0, nil
	}
	if n, ok := protocols[strings.ToLower(r.Protocol)]; ok {
		return n, nil
	}
	n, err := strconv.ParseUint(r.Protocol, 10, 8)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("protocol %q is not known; write tcp, udp, icmp, icmp6, sctp, gre, or a number from 1 to 255", r.Protocol)
	}
	return uint8(n), nil
}

// PortRange returns the destination ports that a rule matches; 0 to 65535: any.
func (r Rule) PortRange() (first, last uint16, err error) {
	if r.Ports == "" {
		return 0, 65535, nil
	}
	low, high, isRange := strings.Cut(r.Ports, "-")
	if !isRange {
		high = low
	}
	a, err1 := strconv.ParseUint(strings.TrimSpace(low), 10, 16)
	b, err2 := strconv.ParseUint(strings.TrimSpace(high), 10, 16)
	if err1 != nil || err2 != nil || a == 0 || b < a {
		return 0, 0, fmt.Errorf("ports %q is not a port or a range; write 80 or 8000-8080", r.Ports)
	}
	return uint16(a), uint16(b), nil
}
