package netdev

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
)

// accessBed is the network namespace of a node with node_access. Its iptables programs are scripts that add a
// line to the file count at each start.
type accessBed struct {
	*testing.T
	space *Space
	conf  config.Config
	count string
}

func newAccessBed(t *testing.T) *accessBed {
	b := &accessBed{t, newSpace(t), config.Config{RunDir: t.TempDir(), Node: "a"}, filepath.Join(t.TempDir(), "count")}
	b.must(os.MkdirAll(b.conf.NodeDir(), 0o700))
	dir := t.TempDir()
	for _, f := range accessFamilies {
		path, err := exec.LookPath(f.program)
		if err != nil {
			t.Skip("iptables is not installed")
		}
		b.must(os.WriteFile(filepath.Join(dir, f.program), fmt.Appendf(nil, "#!/bin/sh\necho >>%s\nexec %s \"$@\"\n", b.count, path), 0o755))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return b
}

func (b *accessBed) must(err error) {
	b.Helper()
	must.Succeed(b, err)
}

// keep calls KeepAccess. It expects this result (changed), and that iptables programs were started this often.
func (b *accessBed) keep(changes bool, processes int, subnets ...string) {
	b.Helper()
	b.must(os.WriteFile(b.count, nil, 0o600))
	var all []netip.Prefix
	for _, s := range subnets {
		all = append(all, netip.MustParsePrefix(s))
	}
	changed, err := KeepAccess(b.space, b.conf, Access{Subnets: all})
	b.must(err)
	count, err := os.ReadFile(b.count)
	b.must(err)
	if changed != changes || len(count) != processes {
		b.Errorf("subnets %v: changed %v with %d processes, want %v with %d", subnets, changed, len(count), changes, processes)
	}
}

// run runs a program in the node's namespace.
func (b *accessBed) run(name string, args ...string) (out []byte) {
	b.Helper()
	b.must(b.space.Do(func() (err error) { out, err = exec.Command(name, args...).Output(); return err }))
	return out
}

func (b *accessBed) forwarding() (all string) {
	b.Helper()
	for _, f := range accessFamilies {
		all += strings.TrimSpace(string(b.run("cat", "/proc/sys/net/"+f.forwarding)))
	}
	return all
}

// hasGeneration reports whether the namespace has nftables.
func (b *accessBed) hasGeneration() (has bool) {
	b.must(b.space.Do(func() error { _, has = accessFamilies[0].generation(); return nil }))
	return has
}

func (b *accessBed) addDevice(name string) {
	b.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	b.must(b.space.Links.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
}

// With nftables, a check starts no program if no rule has changed since the last one.
func TestACheckOfTheRulesTakesOneProcessPerIPVersion(t *testing.T) {
	b := newAccessBed(t)
	b.run("iptables", "-A", "FORWARD", "-s", "192.0.2.1", "-j", "DROP") // another program's
	before := b.run("iptables", "-S")
	b.keep(false, 0)
	b.keep(true, 3, "10.1.0.0/16")
	b.keep(false, 1, "10.1.0.0/16")
	again := 1
	if b.hasGeneration() {
		again = 0
	} else if strings.Contains(string(b.run("iptables", "--version")), "nf_tables") {
		t.Error("iptables uses nftables, but its rules have no generation")
	}
	b.keep(false, again, "10.1.0.0/16")
	b.keep(false, again, "10.1.0.0/16")
	b.keep(true, again+3, "10.1.0.0/16", "fd00:1::/64")
	b.keep(false, 2, "10.1.0.0/16", "fd00:1::/64")
	wanted := b.run("iptables", "-S")
	for _, spoil := range []string{"-D VROUTER-FORWARD 2", "-D FORWARD -j VROUTER-FORWARD", "-A VROUTER-OUTPUT -j ACCEPT"} {
		b.run("iptables", strings.Fields(spoil)...)
		b.keep(true, 3+1, "10.1.0.0/16", "fd00:1::/64")
		b.keep(false, again+1, "10.1.0.0/16", "fd00:1::/64") // the rules of IPv6 were checked after the change
		if got := b.run("iptables", "-S"); string(got) != string(wanted) {
			t.Errorf("after %s:\n%s\nwant\n%s", spoil, got, wanted)
		}
	}
	b.run("iptables", "-A", "FORWARD", "-j", "VROUTER-FORWARD") // a second jump
	b.keep(true, 2+2)
	if got := b.run("iptables", "-S"); string(got) != string(before) {
		t.Errorf("removal leaves:\n%s\nbefore:\n%s", got, before)
	}
	b.keep(false, 0)
}

// Without iptables, the rules are in an nftables table. The agent deletes the table after iptables is installed.
func TestANodeWithoutIptablesUsesNftables(t *testing.T) {
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Skip("nft is not installed; get it with: apt-get install nftables")
	}
	b := newAccessBed(t)
	with, without := os.Getenv("PATH"), t.TempDir()
	b.must(os.Symlink(nft, filepath.Join(without, "nft")))
	t.Setenv("PATH", without)
	b.must(os.WriteFile(b.count, nil, 0o600))
	tables := func() int { return strings.Count(string(b.run(nft, "list", "tables")), accessTable) }
	b.keep(true, 0, "10.1.0.0/16", "fd00:1::/64")
	b.keep(false, 0, "10.1.0.0/16", "fd00:1::/64")
	if rules := string(b.run(nft, "list", "ruleset")); tables() != 2 || strings.Count(rules, "masquerade") != 4 || !strings.Contains(rules, "ip saddr 10.1.0.0/16") || !strings.Contains(rules, "ip6 saddr fd00:1::/64") {
		t.Errorf("the rules are:\n%s", rules)
	}
	b.run(nft, "flush", "chain", "ip", accessTable, "postrouting")
	b.keep(true, 0, "10.1.0.0/16", "fd00:1::/64")
	if rules := string(b.run(nft, "list", "ruleset")); strings.Count(rules, "masquerade") != 4 {
		t.Errorf("the agent did not restore the rules that another program deleted:\n%s", rules)
	}
	b.run(nft, "flush", "ruleset")
	b.keep(true, 0, "10.1.0.0/16", "fd00:1::/64")
	b.run(nft, "flush", "ruleset")
	b.keep(true, 0)
	b.keep(true, 0, "10.1.0.0/16", "fd00:1::/64")
	b.keep(true, 0)
	if n := tables(); n != 0 {
		t.Errorf("removal leaves %d tables", n)
	}
	b.keep(true, 0, "10.1.0.0/16", "fd00:1::/64")
	t.Setenv("PATH", with)
	b.run(nft, "add", "table", "other") // changes the generation, so that the agent checks its rules
	b.keep(true, 6, "10.1.0.0/16", "fd00:1::/64")
	b.keep(false, 2, "10.1.0.0/16", "fd00:1::/64")
	if n := tables(); n != 0 {
		t.Errorf("with iptables, %d tables stay", n)
	}
}

// A program that needs forwarding, such as Docker, finds it on, and so does not set it.
func TestForwardingStaysOnIfAnotherProgramMayNeedIt(t *testing.T) {
	b := newAccessBed(t)
	expect := func(when, want string) {
		t.Helper()
		if got := b.forwarding(); got != want {
			t.Errorf("%s: forwarding %s, want %s", when, got, want)
		}
	}
	b.addDevice("earlier")
	b.keep(true, 3, "10.1.0.0/16")
	b.addDevice(HostPrefix + "own")
	expect("with an IPv4 network", "10")
	b.keep(true, 2)
	expect("without other devices", "00")
	b.keep(true, 6, "10.1.0.0/16", "fd00:1::/64")
	b.addDevice("docker0")
	b.keep(true, 4)
	expect("with a later device", "11")
	b.must(b.space.Links.LinkDel(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "docker0"}}))
	b.keep(true, 3, "10.1.0.0/16")
	b.keep(true, 2)
	expect("that was on before", "11")
}

// When forwarding is turned on or off for the host, Linux also changes forwarding of each device, and accept_redirects.
func TestSysctlsOfSingleDevicesAreRestored(t *testing.T) {
	b := newAccessBed(t)
	for _, name := range []string{"routed", "other", "gone"} {
		b.addDevice(name)
	}
	paths := []string{
		"ipv4/conf/routed/forwarding", "ipv4/conf/other/forwarding", "ipv4/conf/default/forwarding", "ipv4/conf/all/accept_redirects",
		"ipv6/conf/routed/forwarding", "ipv6/conf/other/forwarding", "ipv6/conf/default/forwarding",
	}
	values := func() (list []string) {
		b.must(b.space.Do(func() error {
			for _, p := range paths {
				list = append(list, strings.TrimSpace(string(must.Get(os.ReadFile("/proc/sys/net/"+p))(t))))
			}
			return nil
		}))
		return list
	}
	before := []string{"1", "0", "0", "0", "1", "0", "1"}
	b.must(b.space.Do(func() error {
		for i, p := range paths {
			b.must(setSysctl("/proc/sys/net/"+p, before[i]))
		}
		return setSysctl("/proc/sys/net/ipv4/conf/gone/forwarding", "1")
	}))
	must.Equal(t, before, values())
	b.keep(true, 6, "10.1.0.0/16", "fd00:1::/64")
	must.Equal(t, []string{"1", "1", "1", "0", "1", "1", "1"}, values())
	b.keep(false, 2, "10.1.0.0/16", "fd00:1::/64")
	b.must(b.space.Links.LinkDel(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "gone"}}))
	b.keep(true, 4)
	must.Equal(t, before, values())
}

// With forwarding, Linux ignores router advertisements, so addresses and routes from them expire.
func TestForwardingIsNotTurnedOnWhereAdvertisementsAreNeeded(t *testing.T) {
	s := newSpace(t)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = "nic", net.FlagUp
	must.Succeed(t, s.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "router"}))
	nic := must.Get(s.Links.LinkByName("nic"))(t)
	ip := func(text string) *net.IPNet {
		return must.Get(netlink.ParseIPNet(text))(t)
	}
	v6 := accessFamilies[1]
	must.Succeed(t, s.Links.AddrAdd(nic, &netlink.Addr{IPNet: ip("2001:db8::1/64"), Flags: unix.IFA_F_NODAD}))
	if err := v6.checkAdvertisements(s); err != nil {
		t.Errorf("with an address that stays: %v", err)
	}
	refused := func(what string) {
		t.Helper()
		must.Fail(t, v6.checkAdvertisements(s), "on device nic; set the sysctls net.ipv6.conf.nic.accept_ra")
	}
	expires := &netlink.Addr{IPNet: ip("2001:db8::2/64"), Flags: unix.IFA_F_NODAD, ValidLft: 600, PreferedLft: 600}
	must.Succeed(t, s.Links.AddrAdd(nic, expires))
	refused("an address that expires")
	must.Succeed(t, s.Links.AddrDel(nic, expires))
	must.Succeed(t, s.Links.RouteAdd(&netlink.Route{Dst: ip("2001:db8:1::/48"), LinkIndex: nic.Attrs().Index, Protocol: unix.RTPROT_RA}))
	refused("an advertised route")
}
