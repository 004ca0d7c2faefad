package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

func TestADeviceThatTheMachineNeedsIsNotMoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed; get it with: apt-get install iproute2")
	}
	const peer = "192.0.2.77"
	for name, c := range map[string]struct {
		setting, local, peer string
		want                 string // beginning of the first reason; "" if there is no reason
	}{
		"a device for data only":        {"ip route add default via 10.7.0.9", "10.7.0.1", peer, ""},
		"no route to the peer":          {"true", "10.7.0.1", peer, ""},
		"the session's address":         {"ip route add default via 10.7.0.9", "10.1.0.1", peer, "the SSH session uses its address 10.1.0.1"},
		"the default route":             {"ip route add default via 10.1.0.9 metric 7; ip route add 192.0.2.0/24 via 10.7.0.9", "10.7.0.1", peer, "the route default via 10.1.0.9 metric 7 uses it, and the lab restores only addresses"},
		"a multipath default route":     {"ip route add 192.0.2.0/24 via 10.7.0.9; ip route add default nexthop via 10.7.0.9 dev oth nexthop via 10.1.0.9 dev data", "10.7.0.1", peer, "the route default uses it"},
		"an IPv6 multipath route":       {"ip -6 route add default nexthop via fd00:7::9 dev oth nexthop via fd00:1::9 dev data", "fd00:7::1", "fd00:7::2", "the route default metric 1024 uses it"},
		"a nexthop object":              {"ip nexthop add id 7 via 10.1.0.9 dev data; ip nexthop add id 8 via 10.7.0.9 dev oth; ip nexthop add id 9 group 7/8; ip route add 10.5.0.0/16 nhid 9", "10.7.0.1", "10.7.0.9", "the route 10.5.0.0/16 uses it"},
		"two halves of all addresses":   {"ip route add default via 10.7.0.9; ip route add 0.0.0.0/1 via 10.1.0.9; ip route add 128.0.0.0/1 via 10.1.0.9", "10.7.0.1", peer, "the route to the SSH session's peer 192.0.2.77 uses it"},
		"an address of the loopback":    {"ip route add default via 10.7.0.9; ip address add 10.255.0.1/32 dev lo; ip route add 192.0.2.0/24 via 10.1.0.9", "10.255.0.1", peer, "the route to the SSH session's peer 192.0.2.77 uses it"},
		"an IPv6 session":               {"ip address add fd00:ff::1/128 dev lo; ip -6 route add fd00:5::/64 via fd00:1::9", "fd00:ff::1", "fd00:5::7", "the route to the SSH session's peer fd00:5::7 uses it"},
		"a rule for the source address": {"ip route add default via 10.7.0.9; ip route add default via 10.1.0.9 table 700; ip rule add from 10.7.0.1 lookup 700", "10.7.0.1", peer, "the route to the SSH session's peer 192.0.2.77 uses it"},
		"a link-local session":          {"true", "fe80::1%data", "fe80::2%data", "the SSH session's peer fe80::2%data is on it"},
	} {
		t.Run(name, func(t *testing.T) {
			sp, err := space.Create(fmt.Sprintf("wt-dev%d", os.Getpid()))
			must.Succeed(t, err)
			defer func() {
				if err := errors.Join(sp.Close(), space.Delete(sp.Name)); err != nil {
					t.Error(err)
				}
			}()
			const devices = `
for d in data oth; do ip link add name $d type veth peer name $d-peer; ip link set $d up; ip link set $d-peer up; done
ip address add 10.1.0.1/24 dev data; ip address add fd00:1::1/64 dev data nodad
ip address add 10.7.0.1/24 dev oth; ip address add fd00:7::1/64 dev oth nodad
`
			var d Device
			err = sp.Do(func() error {
				out, err := exec.Command("sh", "-ec", devices+c.setting).CombinedOutput()
				if err != nil {
					return fmt.Errorf("%s: %w\n%s", c.setting, err, out)
				}
				d, err = deviceOf([]netip.Addr{netip.MustParseAddr("10.1.0.1")}, false, parseSession(c.peer+" 51234 "+c.local+" 22"))
				return err
			})
			must.Succeed(t, err)
			if got := strings.Join(d.Blocks, "|"); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("reasons: %q, want %q", got, c.want)
			}
		})
	}
}
