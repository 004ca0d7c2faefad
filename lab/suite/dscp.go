package suite

import (
	"fmt"
	"slices"
	"strconv"
)

// DSCP is a differentiated services codepoint: the upper six bits of IPv4's TOS byte and of
// IPv6's traffic class (RFC 2474). 0 is the default, best effort.
type DSCP uint8

// mostDSCP is the largest codepoint.
const mostDSCP DSCP = 63

// dscpNames are the names of codepoints: CS0 to CS7 (RFC 2474), AF11 to AF43 (RFC 2597), EF (RFC
// 3246) and LE (RFC 8622). The file rt_dsfield of iproute2 has the same names.
var dscpNames = func() (names [mostDSCP + 1]string) {
	for class := range 8 {
		names[8*class] = fmt.Sprintf("CS%d", class)
	}
	for class := 1; class <= 4; class++ {
		for drop := 1; drop <= 3; drop++ {
			names[8*class+2*drop] = fmt.Sprintf("AF%d%d", class, drop)
		}
	}
	names[46], names[1] = "EF", "LE"
	return names
}()

// dscpRemedy says what to write in place of a text that is not a DSCP.
const dscpRemedy = "write a number from 0 to 63, or a name: CS0 to CS7, AF11 to AF43, EF or LE"

// ParseDSCP parses a name, such as EF, or a number from 0 to 63.
func ParseDSCP(text string) (DSCP, error) {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n <= int(mostDSCP) {
		return DSCP(n), nil
	}
	if i := slices.Index(dscpNames[:], text); i >= 0 && text != "" {
		return DSCP(i), nil
	}
	return 0, fmt.Errorf("%q is not a DSCP; %s", clip(text), dscpRemedy)
}

// String returns the name, or the number of a codepoint without a name.
func (d DSCP) String() string {
	if d <= mostDSCP && dscpNames[d] != "" {
		return dscpNames[d]
	}
	return strconv.Itoa(int(d))
}

// TOS returns IPv4's TOS byte, or IPv6's traffic class, with this codepoint and no ECN.
func (d DSCP) TOS() int { return int(d) << 2 }

// codepoint reads a value of a suite that is the name or the number of a DSCP.
var codepoint = single[DSCP]{"a DSCP, such as EF or 46", dscpRemedy, func(text string) (DSCP, string, string) {
	d, err := ParseDSCP(text)
	if err != nil {
		return 0, fmt.Sprintf("%q is not a DSCP", clip(text)), dscpRemedy
	}
	return d, "", ""
}, object{"anyOf": []object{
	{"type": "integer", "minimum": 0, "maximum": mostDSCP},
	{"enum": slices.DeleteFunc(slices.Clone(dscpNames[:]), func(name string) bool { return name == "" })},
}}}
