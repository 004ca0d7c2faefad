package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// team is a node's NICs used as one device: the kernel's bonding where it has
// it, else programs that do what it would.
type team struct {
	device string   // what systems see
	nics   []string // by link; their counters are the fabric's
	kernel bool     // bonding; else bpf/team.c
}

// maxLinks of a team; MAX_LINKS in bpf/team.c.
const maxLinks = 16

// bonded reports whether parallel links are one device to the systems.
func bonded(f suite.Fabric) bool { return f.Links > 1 && f.Team == suite.Bond }

// newTeam makes the node's bond, where the kernel has bonding; its NICs follow
// one by one (readyNIC).
func (n *node) newTeam() error {
	if n.fabric.Links > maxLinks {
		return fmt.Errorf("a team of %d links: %d is the most", n.fabric.Links, maxLinks)
	}
	t := &team{device: fabricDevice(n.index, 0), nics: n.FabricDevices()}
	n.team = t
	loadBonding()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = bondDevice(n.index), n.fabric.MTU, mac('f', n.index, 0)
	bond := netlink.NewLinkBond(attrs)
	bond.Mode, bond.XmitHashPolicy = netlink.BOND_MODE_BALANCE_XOR, netlink.BOND_XMIT_HASH_POLICY_LAYER3_4
	err := n.space.Add(bond)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil // programs do it instead, once the NICs are there
	}
	if err != nil {
		return err
	}
	t.device, t.kernel = attrs.Name, true
	return n.space.Up(t.device)
}

// loadBonding loads the module before the kernel does it by itself, which would
// leave a bond0 in the host's namespace. A kernel that has bonding built in, or
// not at all, has no use for it.
func loadBonding() {
	if _, err := os.Stat("/sys/module/bonding"); err != nil {
		_ = exec.Command("modprobe", "-q", "bonding", "max_bonds=0").Run()
	}
}

// spread attaches the programs that stand for bonding, once the team's NICs
// are there. They stay with the devices.
func (t *team) spread(s *space.Space) error {
	devices := make([]netlink.Link, len(t.nics))
	var indexes [maxLinks]uint32
	for i, nic := range t.nics {
		l, err := s.Link(nic)
		if err != nil {
			return err
		}
		devices[i], indexes[i] = l, uint32(l.Attrs().Index)
	}
	programs, err := loadTeamPrograms(indexes, len(t.nics))
	if err != nil {
		return err
	}
	defer programs.Close()
	if err := addFilter(s, devices[0], netlink.HANDLE_MIN_EGRESS, teamPriority, programs.TeamTransmit, teamProgTeamTransmit); err != nil {
		return err
	}
	for i, l := range devices[1:] {
		// Its hellos as a host of its own would carry the first one's address.
		if err := s.DeviceSysctl("ipv6", t.nics[i+1], "disable_ipv6", "1"); err != nil {
			return err
		}
		if err := addFilter(s, l, netlink.HANDLE_MIN_INGRESS, teamPriority, programs.TeamReceive, teamProgTeamReceive); err != nil {
			return err
		}
	}
	return nil
}

func loadTeamPrograms(nics [maxLinks]uint32, links int) (*teamPrograms, error) {
	spec, err := loadTeam()
	if err != nil {
		return nil, fmt.Errorf("read the team's programs: %w", err)
	}
	if err := errors.Join(spec.Variables[teamVarNics].Set(nics), spec.Variables[teamVarLinks].Set(uint32(links))); err != nil {
		return nil, fmt.Errorf("prepare the team's programs: %w", err)
	}
	var programs teamPrograms
	if err := spec.LoadAndAssign(&programs, nil); err != nil {
		return nil, fmt.Errorf("load the team's programs (needs Linux 5.4 with BPF and CAP_BPF): %w", err)
	}
	return &programs, nil
}

// String says what spreads the flows.
func (t *team) String() string {
	if t.kernel {
		return fmt.Sprintf("bonding over %d links, balance-xor, layer3+4", len(t.nics))
	}
	return fmt.Sprintf("BPF programs over %d links in place of bonding, which this kernel lacks; flows spread as by layer3+4", len(t.nics))
}
