package netdev

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/config"
)

// accessFamily is an IP version, with the names that the kernel and iptables use for it.
type accessFamily struct {
	name       string // in the note
	program    string
	is         func(netip.Addr) bool
	forwarding string // its sysctl
	redirect   string // matches ICMP redirects
	legacy     string // lists the tables of ip_tables, in /proc/net
	nft        tableFamily
}

var accessFamilies = []accessFamily{
	{"ipv4", "iptables-restore", netip.Addr.Is4, "ipv4/ip_forward", "-p icmp -m icmp --icmp-type 5", "ip_tables_names", tableFamilies[0]},
	{"ipv6", "ip6tables-restore", netip.Addr.Is6, "ipv6/conf/all/forwarding", "-p ipv6-icmp -m icmp6 --icmpv6-type 137", "ip6_tables_names", tableFamilies[1]},
}

// chains returns the chains for the subnets of networks with node_access:
//   - Packets from the subnets to other addresses get the node's address. So do packets that the node
//     sends back into their subnet, such as those to a NodePort. Otherwise the receiver would reply
//     directly to the sender, and the sender would not accept a reply from this address.
//   - The kernel forwards packets from and to addresses of the pools. It does not track their
//     connections, because the eBPF programs translate them.
//   - Packets from workloads to 127.0.0.0/8 are dropped. The kernel drops them, too, unless the
//     sysctl route_localnet is set, as the CNI plugin portmap does.
//   - Packets from outside with a source in the subnets are dropped: policies would take them for
//     packets of a workload, or of the node.
//   - The node forwards packets from the networks. It forwards packets into them if they belong
//     to a connection from there, or to a mapped port. So these packets pass even if the policy
//     of FORWARD is DROP, which Docker sets. From one network to another only packets to
//     translated addresses pass, such as those of services and mapped ports.
//   - The node sends no redirects into the networks. A sysctl of a device cannot turn them off
//     while the sysctl of all devices has them on.
func (f accessFamily) chains(subnets, pools []netip.Prefix) []accessChain {
	const devices = ownPrefix + "+"
	var masquerade []string
	from := []string{"-i lo -j RETURN", "-i " + devices + " -j RETURN"}
	if f.is(netip.IPv4Unspecified()) {
		from = slices.Insert(from, 1, "-d 127.0.0.0/8 -i "+devices+" -j DROP")
	}
	for _, s := range subnets {
		from = append(from, fmt.Sprintf("-s %s -j DROP", s.Masked()))
		masquerade = append(masquerade, fmt.Sprintf("-s %s ! -o %s -j MASQUERADE", s.Masked(), devices),
			fmt.Sprintf("-s %s -d %[1]s -o %s -m conntrack --ctstate DNAT -j MASQUERADE", s.Masked(), devices))
	}
	var untracked, accept []string
	for _, p := range pools {
		untracked = append(untracked, fmt.Sprintf("-s %s -i %s -j CT --notrack", p, devices), fmt.Sprintf("-d %s ! -i %s -j CT --notrack", p, devices))
		accept = append(accept, fmt.Sprintf("-d %s -o %s -j ACCEPT", p, devices))
	}
	return []accessChain{
		{"raw", "PREROUTING", "VROUTER-PREROUTING", append(untracked, from...)},
		{"nat", "POSTROUTING", "VROUTER-POSTROUTING", masquerade},
		{"filter", "FORWARD", "VROUTER-FORWARD", append(accept,
			"-i "+devices+" -o "+devices+" -m conntrack ! --ctstate DNAT -j DROP",
			"-i "+devices+" -j ACCEPT",
			"-o "+devices+" -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT",
		)},
		{"filter", "OUTPUT", "VROUTER-OUTPUT", []string{"-o " + devices + " " + f.redirect + " -j DROP"}},
	}
}

// KeepAccess makes the node forward and masquerade packets from the subnets of networks with
// node_access, and forward packets of their pools. With no subnets, it removes its chains and routes,
// and turns off the forwarding that it has turned on. changed reports whether something differed.
func KeepAccess(s *Space, c config.Config, want Access) (changed bool, err error) {
	path := filepath.Join(c.NodeDir(), "access")
	text, err := os.ReadFile(path)
	none := errors.Is(err, fs.ErrNotExist)
	if none && len(want.Subnets) == 0 {
		return false, nil
	}
	if err == nil || none {
		err = s.Do(func() error {
			note := accessNote{path, map[string]int{}}
			if !none && json.Unmarshal(text, &note.noted) != nil {
				note.noted = map[string]int{"ipv4": 0, "ipv6": 0} // a crash has truncated the file
			}
			var errs []error
			for _, f := range accessFamilies {
				other := func(p netip.Prefix) bool { return !f.is(p.Addr()) }
				did, err := f.keep(s, slices.DeleteFunc(slices.Clone(want.Subnets), other), slices.DeleteFunc(slices.Clone(want.Pools), other), &note)
				changed = changed || did
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		})
	}
	did, failed := want.keepRoutes(s)
	if err == nil && failed == nil && len(want.Subnets) == 0 {
		err = os.Remove(path)
	}
	if err != nil {
		err = fmt.Errorf("node_access: %w", err)
	}
	return changed || did, errors.Join(err, failed)
}

// RemoveAccess removes what KeepAccess has added.
func RemoveAccess(s *Space, c config.Config) error {
	_, err := KeepAccess(s, c, Access{})
	return err
}

// accessNote is the file in which KeepAccess notes what to undo. The key "ipv4" or "ipv6" says that chains of this IP
// version may exist. Its value is 0 if forwarding was on already. If the agent turned it on, the value is the highest
// ifindex at that time. All other keys are sysctls below /proc/sys/net that change with forwarding, with their values before.
type accessNote struct {
	path  string
	noted map[string]int
}

// forget removes the entries of an IP version from the note.
func (n *accessNote) forget(f accessFamily) {
	maps.DeleteFunc(n.noted, func(key string, _ int) bool { return key == f.name || strings.HasPrefix(key, f.name+"/") })
}

// addOverwritten notes the sysctls that Linux overwrites when forwarding of an IP version is turned on and off. Linux sets
// forwarding of each device to the new value, and for IPv4 accept_redirects of "all" to the opposite value.
func (n *accessNote) addOverwritten(f accessFamily) error {
	paths, err := filepath.Glob("/proc/sys/net/" + f.name + "/conf/*/forwarding")
	if err != nil {
		return err
	}
	const redirects = "/proc/sys/net/ipv4/conf/all/accept_redirects"
	if f.is(netip.IPv4Unspecified()) {
		paths = append(paths, redirects)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // the device is gone
			continue
		}
		if err != nil {
			return err
		}
		value, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if on := value != 0; on != (path == redirects) {
			n.noted[strings.TrimPrefix(path, "/proc/sys/net/")] = value
		}
	}
	return nil
}

func (n *accessNote) write() error {
	text, err := json.Marshal(n.noted)
	if err != nil {
		return err
	}
	return os.WriteFile(n.path, text, 0o600)
}

// keep turns on forwarding of one IP version and writes its chains, if they differ from what is
// wanted.
func (f accessFamily) keep(s *Space, subnets, pools []netip.Prefix, note *accessNote) (changed bool, err error) {
	last, noted := note.noted[f.name]
	if len(subnets) == 0 {
		if !noted {
			return false, nil
		}
		err := errors.Join(f.stopForwarding(s, last, note), f.removeChains())
		if err == nil {
			note.forget(f)
			err = note.write()
		}
		return true, err
	}
	sysctl := filepath.Join("/proc/sys/net", f.forwarding)
	now, err := os.ReadFile(sysctl)
	if has := err == nil && strings.TrimSpace(string(now)) != "0"; !has {
		changed, noted = true, false
		if err := f.checkAdvertisements(s); err != nil {
			return false, err
		}
		all, err := Links(s.Links)
		if err != nil {
			return false, err
		}
		for _, l := range all {
			last = max(last, l.Attrs().Index)
		}
		note.forget(f)
		if err := note.addOverwritten(f); err != nil {
			return false, err
		}
	}
	if !noted {
		note.noted[f.name] = last
		err = note.write()
	}
	if err == nil && changed {
		err = setSysctl(sysctl, "1")
	}
	if err != nil {
		return changed, fmt.Errorf("set %s: %w", f.forwarding, err)
	}
	did, err := f.keepChains(s, subnets, pools)
	return changed || did, err
}

// stopForwarding turns off forwarding if the agent has turned it on, and no other program may
// depend on it. When it turns forwarding off, it also restores the other sysctls in the note. Programs that forward, such as Docker and
// libvirt, turn on forwarding and add devices. So forwarding stays on if a device came later than
// last and is not the agent's.
func (f accessFamily) stopForwarding(s *Space, last int, note *accessNote) error {
	if last == 0 {
		return nil
	}
	all, err := Links(s.Links)
	if err != nil {
		return err
	}
	for _, l := range all {
		if a := l.Attrs(); a.Index > last && !strings.HasPrefix(a.Name, HostPrefix) && !strings.HasPrefix(a.Name, ownPrefix) {
			return nil
		}
	}
	if err := setSysctl(filepath.Join("/proc/sys/net", f.forwarding), "0"); err != nil {
		return fmt.Errorf("set %s: %w", f.forwarding, err)
	}
	for key, value := range note.noted {
		if !strings.HasPrefix(key, f.name+"/") {
			continue
		}
		if err := setSysctl(filepath.Join("/proc/sys/net", key), strconv.Itoa(value)); err != nil && !errors.Is(err, fs.ErrNotExist) { // the device may be gone
			return fmt.Errorf("set %s: %w", key, err)
		}
	}
	return nil
}

// checkAdvertisements refuses to turn on IPv6 forwarding if the host has routes or addresses from
// router advertisements: Linux then ignores the advertisements, and these expire.
func (f accessFamily) checkAdvertisements(s *Space) error {
	if f.is(netip.IPv4Unspecified()) {
		return nil
	}
	devices, err := advertised(s)
	if err != nil || len(devices) == 0 {
		return err
	}
	name := (&HostUse{space: s}).device(devices[0])
	return fmt.Errorf("the host must forward IPv6, but would then ignore the router advertisements on device %s; set the sysctls net.ipv6.conf.%s.accept_ra to 2 and net.ipv6.conf.all.forwarding to 1", name, name)
}

// advertised lists the devices with routes from router advertisements, or with addresses that
// expire and come from advertisements or DHCPv6.
func advertised(s *Space) (devices []int, err error) {
	routes, err := routes6(s)
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if r.Protocol == unix.RTPROT_RA {
			devices = append(devices, r.LinkIndex)
		}
	}
	addresses, err := listAddresses(s.Links)
	for _, a := range addresses {
		if a.IP.To4() == nil && a.Scope == unix.RT_SCOPE_UNIVERSE && a.Flags&unix.IFA_F_PERMANENT == 0 {
			devices = append(devices, a.LinkIndex)
		}
	}
	return devices, err
}
