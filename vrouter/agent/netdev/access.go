package netdev

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/config"
)

// accessFamily is an IP version, with the names that the kernel and iptables use for it.
type accessFamily struct {
	protocol   iptables.Protocol
	is         func(netip.Addr) bool
	forwarding string   // its sysctl
	redirect   []string // matches ICMP redirects
}

var accessFamilies = []accessFamily{
	{iptables.ProtocolIPv4, netip.Addr.Is4, "ipv4/ip_forward", []string{"-p", "icmp", "-m", "icmp", "--icmp-type", "5"}},
	{iptables.ProtocolIPv6, netip.Addr.Is6, "ipv6/conf/all/forwarding", []string{"-p", "ipv6-icmp", "-m", "icmp6", "--icmpv6-type", "137"}},
}

// accessChain is a chain of the agent. A chain of the kernel jumps to it.
type accessChain struct {
	table, from, name string
	rules             [][]string // in the form in which iptables lists them
}

// chains returns the chains for the subnets of networks with node_access:
//   - Packets from the subnets to other addresses get the node's address.
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
func (f accessFamily) chains(subnets []netip.Prefix) []accessChain {
	const devices = ownPrefix + "+"
	var masquerade [][]string
	from := [][]string{{"-i", "lo", "-j", "RETURN"}, {"-i", devices, "-j", "RETURN"}}
	if f.protocol == iptables.ProtocolIPv4 {
		from = slices.Insert(from, 1, []string{"-d", "127.0.0.0/8", "-i", devices, "-j", "DROP"})
	}
	for _, s := range subnets {
		from = append(from, []string{"-s", s.Masked().String(), "-j", "DROP"})
		masquerade = append(masquerade, []string{"-s", s.Masked().String(), "!", "-o", devices, "-j", "MASQUERADE"})
	}
	return []accessChain{
		{"raw", "PREROUTING", "VROUTER-PREROUTING", from},
		{"nat", "POSTROUTING", "VROUTER-POSTROUTING", masquerade},
		{"filter", "FORWARD", "VROUTER-FORWARD", [][]string{
			{"-i", devices, "-o", devices, "-m", "conntrack", "!", "--ctstate", "DNAT", "-j", "DROP"},
			{"-i", devices, "-j", "ACCEPT"},
			{"-o", devices, "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED,DNAT", "-j", "ACCEPT"},
		}},
		{"filter", "OUTPUT", "VROUTER-OUTPUT", [][]string{slices.Concat([]string{"-o", devices}, f.redirect, []string{"-j", "DROP"})}},
	}
}

// KeepAccess makes the node forward and masquerade packets from the subnets of networks with
// node_access. With no subnets, it removes its chains and restores the sysctls. It notes in a
// file of the node which sysctls it has changed. The file exists while there may be chains.
// changed reports whether something differed.
func KeepAccess(s *Space, c config.Config, subnets []netip.Prefix) (changed bool, err error) {
	path := filepath.Join(c.NodeDir(), "access")
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(subnets) == 0:
		return false, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("node_access: %w", err)
	case err != nil:
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return false, fmt.Errorf("node_access: %w", err)
		}
	}
	note := accessNote{path, strings.Fields(string(text))}
	var errs []error
	err = s.Do(func() error {
		for _, f := range accessFamilies {
			own := slices.DeleteFunc(slices.Clone(subnets), func(p netip.Prefix) bool { return !f.is(p.Addr()) })
			did, err := f.keep(s, own, &note)
			changed = changed || did
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	if err == nil && len(subnets) == 0 {
		err = os.Remove(path)
	}
	if err != nil {
		err = fmt.Errorf("node_access: %w", err)
	}
	return changed, err
}

// RemoveAccess removes what KeepAccess has added.
func RemoveAccess(s *Space, c config.Config) error {
	_, err := KeepAccess(s, c, nil)
	return err
}

// accessNote is the file of KeepAccess.
type accessNote struct {
	path    string
	sysctls []string // that were 0
}

func (n *accessNote) write() error {
	return os.WriteFile(n.path, []byte(strings.Join(n.sysctls, "\n")), 0o600)
}

// keep sets the sysctl of one IP version and writes its chains, if they differ from what is wanted.
func (f accessFamily) keep(s *Space, subnets []netip.Prefix, note *accessNote) (changed bool, err error) {
	sysctl := filepath.Join("/proc/sys/net", f.forwarding)
	has, at := false, slices.Index(note.sysctls, f.forwarding)
	if now, err := os.ReadFile(sysctl); err == nil {
		has = strings.TrimSpace(string(now)) != "0"
	} else if len(subnets) == 0 {
		return false, nil // a kernel without IPv6
	}
	switch {
	case len(subnets) > 0 && !has:
		if err := f.checkAdvertisements(s); err != nil {
			return false, err
		}
		if at < 0 {
			note.sysctls = append(note.sysctls, f.forwarding)
			err = note.write()
		}
		if err == nil {
			err = setSysctl(sysctl, "1")
		}
		changed = true
	case len(subnets) == 0 && at >= 0:
		if err = setSysctl(sysctl, "0"); err == nil {
			note.sysctls = slices.Delete(note.sysctls, at, at+1)
			err = note.write()
		}
		changed = true
	}
	if err != nil {
		return changed, fmt.Errorf("set %s: %w", f.forwarding, err)
	}
	t, err := iptables.New(iptables.IPFamily(f.protocol), iptables.Timeout(5))
	if err != nil {
		return changed, fmt.Errorf("masquerade packets of workloads: %w; install iptables", err)
	}
	for _, c := range f.chains(subnets) {
		did, err := c.keep(t, len(subnets) > 0)
		if changed = changed || did; err != nil {
			return changed, fmt.Errorf("chain %s of table %s: %w", c.name, c.table, err)
		}
	}
	return changed, nil
}

// checkAdvertisements refuses to turn on IPv6 forwarding if the host has routes or addresses from
// router advertisements: Linux then ignores the advertisements, and these expire.
func (f accessFamily) checkAdvertisements(s *Space) error {
	if f.protocol == iptables.ProtocolIPv4 {
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

// keep writes a chain if it differs, or removes it if it is not wanted.
func (c accessChain) keep(t *iptables.IPTables, wanted bool) (changed bool, err error) {
	if !wanted {
		if there, err := t.ChainExists(c.table, c.name); err != nil || !there {
			return false, err
		}
		if err := t.DeleteIfExists(c.table, c.from, "-j", c.name); err != nil {
			return true, err
		}
		return true, t.ClearAndDeleteChain(c.table, c.name)
	}
	want := []string{"-N " + c.name}
	for _, r := range c.rules {
		want = append(want, "-A "+c.name+" "+strings.Join(r, " "))
	}
	// iptables has several errors for a missing chain. ClearChain reports other reasons.
	if has, err := t.List(c.table, c.name); err != nil || !slices.Equal(has, want) {
		changed = true
		if err := t.ClearChain(c.table, c.name); err != nil {
			return changed, err
		}
		for _, r := range c.rules {
			if err := t.Append(c.table, c.name, r...); err != nil {
				return changed, err
			}
		}
	}
	jumps, err := t.Exists(c.table, c.from, "-j", c.name)
	if err != nil || jumps {
		return changed, err
	}
	return true, t.Append(c.table, c.from, "-j", c.name)
}
