package inspect

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Match selects flows as `flow --match` does: by one end or both ends, in either
// order, and by protocol.
//
//	10.0.0.1                        one end's address
//	10.0.0.0/24:80                  one end's prefix and port
//	:443                            one end's port
//	10.0.0.1,[2001:db8::1]:80       both ends
//	10.0.0.1:80&proto tcp           and the protocol
type Match struct {
	Ends     []End // at most 2
	Protocol *uint8
}

// End is one end of a flow. Zero fields match everything.
type End struct {
	Prefix netip.Prefix
	Port   uint16
}

// ParseMatch parses a match.
func ParseMatch(s string) (Match, error) {
	var m Match
	ends, rest, more := strings.Cut(s, "&")
	if strings.TrimSpace(ends) != "" {
		for _, text := range strings.Split(ends, ",") {
			end, err := parseEnd(strings.TrimSpace(text))
			if err != nil {
				return Match{}, fmt.Errorf("match %q: %w", s, err)
			}
			m.Ends = append(m.Ends, end)
		}
	}
	if len(m.Ends) > 2 {
		return Match{}, fmt.Errorf("match %q: it has %d ends, a flow has two", s, len(m.Ends))
	}
	if more {
		word, name, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if word != "proto" {
			return Match{}, fmt.Errorf(`match %q: write "proto NAME" after &`, s)
		}
		p, err := ParseProtocol(strings.TrimSpace(name))
		if err != nil {
			return Match{}, fmt.Errorf("match %q: %w", s, err)
		}
		m.Protocol = &p
	}
	if len(m.Ends) == 0 && m.Protocol == nil {
		return Match{}, fmt.Errorf(`match %q has no end and no protocol; write one such as "10.0.0.1:80"`, s)
	}
	return m, nil
}

// parseEnd parses an address or prefix with an optional port. IPv6 with a port
// needs brackets.
func parseEnd(s string) (End, error) {
	address, port := s, ""
	if inner, rest, ok := strings.Cut(strings.TrimPrefix(s, "["), "]"); ok && strings.HasPrefix(s, "[") {
		if rest != "" && !strings.HasPrefix(rest, ":") {
			return End{}, fmt.Errorf("%q: write :PORT after the bracket", s)
		}
		address, port = inner, rest
	} else if strings.Count(s, ":") == 1 {
		at := strings.IndexByte(s, ':')
		address, port = s[:at], s[at:]
	}
	var e End
	if port != "" {
		n, err := strconv.ParseUint(port[1:], 10, 16)
		if err != nil || n == 0 {
			return End{}, fmt.Errorf("%q: a port is a number from 1 to 65535", s)
		}
		e.Port = uint16(n)
	}
	if address == "" && e.Port != 0 {
		return e, nil
	}
	prefix, err := parsePrefix(address)
	if err != nil {
		return End{}, err
	}
	e.Prefix = prefix.Masked()
	return e, nil
}

// parsePrefix parses a prefix, or an address as a prefix of full length.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a prefix", s)
	}
	return p, nil
}

// Covers reports whether the flow is selected.
func (m Match) Covers(f Flow) bool {
	if m.Protocol != nil && *m.Protocol != f.Protocol {
		return false
	}
	switch len(m.Ends) {
	case 1:
		return m.Ends[0].Covers(f.Local) || m.Ends[0].Covers(f.Remote)
	case 2:
		return m.Ends[0].Covers(f.Local) && m.Ends[1].Covers(f.Remote) ||
			m.Ends[1].Covers(f.Local) && m.Ends[0].Covers(f.Remote)
	}
	return true
}

// Covers reports whether an end of a flow matches.
func (e End) Covers(a netip.AddrPort) bool {
	return (!e.Prefix.IsValid() || e.Prefix.Contains(a.Addr().Unmap())) && (e.Port == 0 || e.Port == a.Port())
}
