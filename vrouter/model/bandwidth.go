package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"windtunnel/internal/phrase"
)

// Bandwidth limits the traffic that a workload receives and sends; zero: no limit.
type Bandwidth struct {
	Ingress Rate `yaml:"ingress" json:"ingress,omitzero"` // to the workload
	Egress  Rate `yaml:"egress" json:"egress,omitzero"`   // from it
}

// Rate is in bits of Ethernet frames per second.
type Rate uint64

// Smallest and largest rate of a limit. Below leastRate the transmission of a
// full frame takes seconds.
const (
	leastRate Rate = 8_000
	mostRate  Rate = 400_000_000_000
)

var rateUnits = []struct {
	suffix string
	bits   Rate
}{{"G", 1_000_000_000}, {"M", 1_000_000}, {"k", 1_000}, {"", 1}}

// parseRate parses a rate such as 100M, 2.5Gbit or 64000; k, M and G are decimal.
func parseRate(text string) (Rate, error) {
	number := strings.TrimSuffix(text, "bit")
	for _, u := range rateUnits {
		digits, is := strings.CutSuffix(number, u.suffix)
		if !is {
			continue
		}
		n, err := strconv.ParseFloat(digits, 64)
		if bits := n * float64(u.bits); err == nil && bits >= 0 && bits <= float64(mostRate) && bits == math.Trunc(bits) {
			return Rate(bits), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not a rate; write bits per second, such as 100M or 2.5G", phrase.Clip(text))
}

// String formats a rate in the syntax of parseRate.
func (r Rate) String() string {
	for _, u := range rateUnits {
		if r%u.bits == 0 && r > 0 {
			return strconv.FormatUint(uint64(r/u.bits), 10) + u.suffix
		}
	}
	return "0"
}

// MarshalText implements encoding.TextMarshaler.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rate) UnmarshalText(text []byte) (err error) {
	*r, err = parseRate(string(text))
	return err
}

func (v *validation) checkBandwidth(p *Port) {
	for key, rate := range map[string]Rate{"ingress": p.Bandwidth.Ingress, "egress": p.Bandwidth.Egress} {
		if rate != 0 && (rate < leastRate || rate > mostRate) {
			v.fail("port", p.Name, "bandwidth: %s %s is not between %s and %s", key, rate, leastRate, mostRate)
		}
	}
	if p.Attach.Device != "" && p.Bandwidth.Egress != 0 {
		v.fail("port", p.Name, "bandwidth: an egress limit needs attach with netns, not device, since the agent sets the limit in the network namespace; remove egress")
	}
}
