package space

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
)

// run runs a command in a namespace, and returns its output.
func run(t *testing.T, s *Space, command string) string {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("ip is not installed; get it with: apt-get install iproute2")
	}
	var out []byte
	err := s.Do(func() (err error) {
		out, err = exec.Command("sh", "-ec", command).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// deviceState prints everything that a loan must keep of the device "data".
func deviceState(t *testing.T, s *Space) string {
	t.Helper()
	text := run(t, s, `
ip -details address show dev data | sed 's/ nodad//; s/ tentative//; s/ qdisc.*//'
ip route show table all dev data
ip -6 route show table all dev data
ip neighbour show dev data nud permanent
ip neighbour show proxy dev data
cd /proc/sys/net
grep -s . ipv4/conf/data/* ipv6/conf/data/* ipv4/neigh/data/* ipv6/neigh/data/*`+" || true")
	features := must.Get(s.Features("data"))(t)
	for name, f := range features {
		if f.On && name == "tx-tcp-segmentation" {
			text += "TSO is on"
		}
	}
	return text
}

// assertState requires that the device "data" is as it was, at the latest when the kernel has
// added the routes of its addresses (net/ipv6/addrconf.c, addrconf_dad_work).
func assertState(t *testing.T, s *Space, before string) {
	t.Helper()
	must.Eventually(t, "the device is as before", func() error {
		if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(deviceState(t, s), "\n")); diff != "" {
			return fmt.Errorf("it was (-) and is (+):\n%s", diff)
		}
		return nil
	})
}

// lender makes a namespace with the device "data", and an empty node to lend it to.
func lender(t *testing.T) (host, node *Space) {
	t.Helper()
	host, peer := fresh(t, "host"), fresh(t, "peer")
	must.Succeed(t, host.Pair(Veth{Name: "data", PeerName: "far", MTU: 1400}, peer))
	for _, err := range []error{
		host.Address("data", netip.MustParsePrefix("10.1.0.1/24")), host.Address("data", netip.MustParsePrefix("fd00:1::1/64")),
		host.DeviceSysctl("ipv6", "data", "accept_dad", "0"), host.Up("data"), peer.Up("far"),
	} {
		must.Succeed(t, err)
	}
	// The kernel adds the link-local address when the carrier is seen, and its routes later
	// (net/ipv6/addrconf.c, addrconf_dad_work).
	run(t, host, `for i in $(seq 500); do ip -6 address show dev data | grep -q "inet6 fe80" && exit 0; sleep 0.01; done; exit 1`)
	awaitRoutes(t, host)
	node = fresh(t, "node")
	t.Cleanup(func() {
		if err := remove(host, node); err != nil {
			t.Error(err)
		}
	})
	return host, node
}

// awaitRoutes waits until the kernel has added the routes of the IPv6 addresses.
func awaitRoutes(t *testing.T, host *Space) {
	t.Helper()
	run(t, host, `
for a in $(ip -6 -oneline address show dev data | sed 's/.*inet6 //; s,/.*,,'); do
	for i in $(seq 500); do ip -6 route show table local dev data | grep -q "^local $a " && continue 2; sleep 0.01; done
	exit 1
done`)
}

// lend moves the device "data" to the node.
func lend(t *testing.T, host, node *Space) {
	t.Helper()
	must.Succeed(t, host.Do(func() error { return node.Borrow("data") }))
}

func remove(host, node *Space) error { return host.Do(func() error { return Delete(node.Name) }) }

// assertRemoved requires that neither the namespace nor the loan is left.
func assertRemoved(t *testing.T, host, node *Space) {
	t.Helper()
	for _, path := range []string{filepath.Join(Dir, node.Name), Home(node.Name)} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left (%v)", path, err)
		}
	}
	must.Succeed(t, remove(host, node))
}

// assertNames requires an error that has each of the texts.
func assertNames(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		must.Fail(t, err, text)
	}
}

func TestABorrowedDeviceIsReturnedAsItWas(t *testing.T) {
	host, node := lender(t)
	run(t, host, `
echo 2 > /proc/sys/net/ipv4/conf/data/rp_filter`)
	before := deviceState(t, host)
	lend(t, host, node)
	must.Succeed(t, node.Offloads("data", map[string]bool{"tx-tcp-segmentation": false, "tx-udp_tnl-segmentation": false}))
	if err := DeleteHome(node.Name); err != nil { // as a system does when its daemons end
		t.Error(err)
	}
	if elsewhere, err := lentElsewhere(node.Name); err != nil || !elsewhere {
		t.Errorf("seen from another namespace: %t, %v", elsewhere, err)
	}
	assertNames(t, Delete(node.Name), "belongs to another network namespace")
	must.Succeed(t, remove(host, node))
	assertState(t, host, before)
}

func TestAllSettingsOfABorrowedDeviceAreReturned(t *testing.T) {
	for name, setting := range map[string]string{
		"link-local addresses": "ip address add fe80::77/64 dev data; ip address add 169.254.7.7/16 dev data scope link",
		"a peer and a label":   "ip address add 10.8.0.1 peer 10.8.0.2/32 dev data label data:x",
		"secondary addresses":  "ip address add 10.1.0.3/24 dev data; ip address add 10.1.0.2/24 dev data broadcast +",
		"address flags":        "ip address add fd00:8::1/64 dev data noprefixroute home; ip address add fd00:9::1/64 dev data",
		"sysctls of neighbours": `
echo 77000 > /proc/sys/net/ipv4/neigh/data/base_reachable_time_ms; echo 7 > /proc/sys/net/ipv4/neigh/data/gc_stale_time
echo 1234 > /proc/sys/net/ipv6/neigh/data/retrans_time_ms`,
		"a sysctl that changes another": "echo fd00::7 > /proc/sys/net/ipv6/conf/data/stable_secret; echo 1 > /proc/sys/net/ipv6/conf/data/addr_gen_mode",
		"a device that is down":         "ip link set data down",
	} {
		t.Run(name, func(t *testing.T) {
			host, node := lender(t)
			run(t, host, setting)
			awaitRoutes(t, host)
			before := deviceState(t, host)
			lend(t, host, node)
			run(t, node, "ip link set data mtu 1300")
			must.Succeed(t, remove(host, node))
			assertState(t, host, before)
		})
	}
}

func TestADeviceWithMoreThanAddressesIsNotMoved(t *testing.T) {
	for want, setting := range map[string]string{
		"the route 10.2.0.0/16 via 10.1.0.9 metric 77 uses it, and the lab restores only addresses; remove the route (`ip route`)": "ip route add 10.2.0.0/16 via 10.1.0.9 dev data metric 77",
		"the route default via fd00:1::9 metric 1024 uses it":                                                                      "ip -6 route add default via fd00:1::9 dev data",
		"the route 10.8.0.0/24 metric 100 uses it":                                                                                 "ip address add 10.8.0.1/24 dev data noprefixroute; ip route add 10.8.0.0/24 dev data proto kernel scope link src 10.8.0.1 metric 100",
		"the route 10.6.0.0/16 table 255 uses it":                                                                                  "ip route add local 10.6.0.0/16 dev data table local proto static",
		"the route default uses it":                                                                                                "ip link add name oth type veth peer name oth-peer; ip link set oth up; ip link set oth-peer up; ip address add 10.7.0.1/24 dev oth; ip route add default nexthop via 10.7.0.9 dev oth nexthop via 10.1.0.9 dev data",
		"the route 10.5.0.0/16 table 700 metric 7 uses it":                                                                         "ip route add 10.5.0.0/16 table 700 metric 7 nexthop via 10.1.0.8 dev data nexthop via 10.1.0.9 dev data",
		"the route 10.8.0.0/24 metric 300 uses it":                                                                                 "ip address add 10.8.0.1/24 dev data metric 300",
		"the route fd00:8::/64 metric 301 uses it":                                                                                 "ip address add fd00:8::1/64 dev data metric 301",
		"nexthop object 7 uses it":                                                                                                 "ip nexthop add id 7 via 10.1.0.9 dev data",
		"it has the permanent or proxy neighbour 10.1.0.9":                                                                         "ip neighbour add 10.1.0.9 lladdr 02:00:00:00:00:09 dev data nud permanent",
		"it has the permanent or proxy neighbour fd00:1::7":                                                                        "ip neighbour add proxy fd00:1::7 dev data",
		"macvlan device up uses it":                                                                                                "ip link add link data name up type macvlan",
		"vxlan device vx uses it":                                                                                                  "ip link add vx type vxlan id 10 dev data dstport 4789",
	} {
		t.Run(want, func(t *testing.T) {
			host, node := lender(t)
			run(t, host, setting)
			assertNames(t, host.Do(func() error { return node.Borrow("data") }), want)
			if _, err := host.Link("data"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLifetimesContinueAndTemporaryAddressesAreNew(t *testing.T) {
	host, node := lender(t)
	run(t, host, `
echo 2 > /proc/sys/net/ipv6/conf/data/use_tempaddr
ip address add fd00:5::1/64 dev data mngtmpaddr valid_lft 90000 preferred_lft 80000`)
	lend(t, host, node)
	must.Succeed(t, remove(host, node))
	addresses := run(t, host, "ip -6 address show dev data")
	if strings.Count(addresses, " temporary ") != 1 || !regexp.MustCompile(`fd00:5::1/64 .*mngtmpaddr.*\n *valid_lft (90000|8999[0-9])sec preferred_lft (80000|7999[0-9])sec`).MatchString(addresses) {
		t.Errorf("addresses:\n%s", addresses)
	}
}
