package model

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
)

// RouteTarget names a set of routes. A network exports its routes with the targets in Network.Export,
// and imports the routes that have a target in Network.Import. The bytes are those of the extended
// community of BGP (RFC 4364 section 4.3.1, RFC 5668).
type RouteTarget [8]byte

// RouteDistinguisher makes the prefixes of networks with the same addresses different in BGP (RFC
// 4364 section 4.2). The zero value is automatic: Network.Distinguisher chooses it.
type RouteDistinguisher [8]byte

// maxTargets is the maximum number of route targets that a network imports, and the same for those that it exports. So many
// fit into one BGP message together with the other attributes.
const maxTargets = 64

const (
	routeTargetSubtype = 2      // second byte of the extended community
	automatic          = "auto" // text of the zero RouteDistinguisher
)

// Types of an administrator in RFC 4364. The value after the type has 6 bytes: the administrator,
// and the number that it assigned.
const (
	shortAS  = iota // 2 bytes of administrator
	ipv4Host        // 4 bytes
	longAS          // 4 bytes
)

// ParseRouteTarget parses ADMINISTRATOR:NUMBER. The administrator is an AS number or an IPv4
// address. Routers can send other values: their text is hexadecimal.
func ParseRouteTarget(text string) (RouteTarget, error) {
	kind, value, ok := parseAdministered(text)
	if !ok {
		if t := RouteTarget(parseHexadecimal(text)); t[0] <= longAS && t[1] == routeTargetSubtype && t.String() == text {
			return t, nil
		}
		return RouteTarget{}, fmt.Errorf("%q is not a route target; write %s", phrase.Clip(text), administeredForms)
	}
	return RouteTarget(slices.Concat([]byte{kind, routeTargetSubtype}, value[:])), nil
}

func (t RouteTarget) String() string {
	text := administeredText(t[0], t[2:])
	if kind, value, ok := parseAdministered(text); !ok || t != RouteTarget(slices.Concat([]byte{kind, routeTargetSubtype}, value[:])) {
		return hexadecimal(t)
	}
	return text
}

// MarshalText implements encoding.TextMarshaler.
func (t RouteTarget) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *RouteTarget) UnmarshalText(text []byte) (err error) {
	*t, err = ParseRouteTarget(string(text))
	return err
}

// parseRouteDistinguisher parses "auto" or a route distinguisher, whose text has the same forms as a route target's.
func parseRouteDistinguisher(text string) (RouteDistinguisher, error) {
	if text == automatic {
		return RouteDistinguisher{}, nil
	}
	kind, value, ok := parseAdministered(text)
	if !ok {
		if d := RouteDistinguisher(parseHexadecimal(text)); d.String() == text {
			return d, nil
		}
		return RouteDistinguisher{}, fmt.Errorf("%q is not a route distinguisher; write auto, or %s", phrase.Clip(text), administeredForms)
	}
	return RouteDistinguisher(slices.Concat([]byte{0, kind}, value[:])), nil
}

func (d RouteDistinguisher) String() string {
	if d.IsZero() {
		return automatic
	}
	text := administeredText(d[1], d[2:])
	if kind, value, ok := parseAdministered(text); !ok || d != RouteDistinguisher(slices.Concat([]byte{0, kind}, value[:])) {
		return hexadecimal(d)
	}
	return text
}

// IsZero reports whether the route distinguisher is automatic.
func (d RouteDistinguisher) IsZero() bool { return d == RouteDistinguisher{} }

// MarshalText implements encoding.TextMarshaler.
func (d RouteDistinguisher) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *RouteDistinguisher) UnmarshalText(text []byte) (err error) {
	*d, err = parseRouteDistinguisher(string(text))
	return err
}

// Distinguisher returns the route distinguisher with which a node announces the network. If it is
// automatic, it has type 1: the router id of the node, and the id of the network. So a route
// reflector keeps the routes of all nodes to one prefix.
func (n Network) Distinguisher(routerID netip.Addr) RouteDistinguisher {
	if !n.RD.IsZero() {
		return n.RD
	}
	d := RouteDistinguisher{1: ipv4Host}
	id := routerID.As4()
	copy(d[2:], id[:])
	binary.BigEndian.PutUint16(d[6:], uint16(n.ID))
	return d
}

const administeredForms = "one such as 64512:1, 192.0.2.1:1 or 70000:1: an AS number or an IPv4 address, and a number of up to 65535, or 4294967295 after an AS number of up to 65535"

func parseAdministered(text string) (kind byte, value [6]byte, ok bool) {
	administrator, assigned, _ := strings.Cut(text, ":")
	if a, err := netip.ParseAddr(administrator); err == nil && a.Is4() && !a.IsUnspecified() {
		four := a.As4()
		kind = ipv4Host
		copy(value[:], four[:])
	} else {
		as, ok := decimal(administrator, 32)
		if !ok || as == 0 { // RFC 7607
			return kind, value, false
		}
		if as <= 65535 {
			number, ok := decimal(assigned, 32)
			binary.BigEndian.PutUint16(value[:], uint16(as))
			binary.BigEndian.PutUint32(value[2:], number)
			return shortAS, value, ok
		}
		kind = longAS
		binary.BigEndian.PutUint32(value[:], as)
	}
	number, ok := decimal(assigned, 16)
	binary.BigEndian.PutUint16(value[4:], uint16(number))
	return kind, value, ok
}

// decimal parses a number without sign and leading zeros, so that each number has only one form.
func decimal(text string, bits int) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, bits)
	return uint32(n), err == nil && text == strconv.FormatUint(n, 10)
}

// hexadecimal formats a value that no other form of text can express, such as one of AS 0.
func hexadecimal(value [8]byte) string { return fmt.Sprintf("0x%x", value) }

// parseHexadecimal parses what hexadecimal returns. It returns zero if the text has another form.
func parseHexadecimal(text string) (value [8]byte) {
	if digits, is := strings.CutPrefix(text, "0x"); is && len(digits) == 2*len(value) {
		n, _ := strconv.ParseUint(digits, 16, 64)
		binary.BigEndian.PutUint64(value[:], n)
	}
	return value
}

func administeredText(kind byte, value []byte) string {
	number := binary.BigEndian.Uint16(value[4:])
	switch kind {
	case shortAS:
		return fmt.Sprintf("%d:%d", binary.BigEndian.Uint16(value), binary.BigEndian.Uint32(value[2:]))
	case ipv4Host:
		return fmt.Sprintf("%s:%d", netip.AddrFrom4([4]byte(value[:4])), number)
	}
	return fmt.Sprintf("%d:%d", binary.BigEndian.Uint32(value), number)
}

// checkTargets refuses missing, repeated and too many route targets.
func (v *validation) checkTargets(n Network) {
	for _, of := range []struct {
		field   string
		targets []RouteTarget
	}{{"import", n.Import}, {"export", n.Export}} {
		if len(of.targets) > maxTargets {
			v.fail("network", n.Name, "%s: %d route targets, at most %d are allowed; remove some", of.field, len(of.targets), maxTargets)
			continue
		}
		for i, t := range of.targets {
			switch {
			case t == RouteTarget{}:
				v.fail("network", n.Name, "%s: an empty route target; write %s", of.field, administeredForms)
			case slices.Contains(of.targets[:i], t):
				v.fail("network", n.Name, "%s: %s is listed twice; remove one", of.field, t)
			}
		}
	}
}
