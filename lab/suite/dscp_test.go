package suite

import (
	"fmt"
	"testing"

	"windtunnel/internal/must"
)

// The values are those of iproute2's rt_dsfield, and RFC 8622's LE.
func TestADSCPHasItsUsualName(t *testing.T) {
	for name, tos := range map[string]int{
		"CS0": 0, "LE": 0x04, "CS1": 0x20, "CS7": 0xe0, "AF11": 0x28, "AF13": 0x38, "AF22": 0x50, "AF31": 0x68, "AF41": 0x88, "AF43": 0x98, "EF": 0xb8,
	} {
		d := must.Get(ParseDSCP(name))(t)
		if d.TOS() != tos || d.String() != name {
			t.Errorf("%s is %v, a TOS byte of %#x; want %#x", name, d, d.TOS(), tos)
		}
		if byNumber := must.Get(ParseDSCP(fmt.Sprint(tos >> 2)))(t); byNumber != d {
			t.Errorf("%d is %v, not %s", tos>>2, byNumber, name)
		}
	}
	must.Equal(t, "44", must.Get(ParseDSCP("44"))(t).String())
}

func TestAWorkloadHasItsDSCP(t *testing.T) {
	p := mustExpand(t, swap("{kind: tcp_stream}", "{kind: tcp_stream, dscp: AF41}"), ExpandOptions{})
	w := p.Scenarios[0].Workload
	must.Equal(t, DSCP(34), w.DSCP)
	must.Equal(t, "TCP stream of 128 KiB, DSCP AF41", w.String())
}
