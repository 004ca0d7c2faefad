package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/lab/space"
	"windtunnel/lab/suite"
)

// team joins a node's NICs to one device. It uses the kernel's bonding; without it, BPF
// programs do the same.
type team struct {
	device string   // device that systems use
	nics   []string // by link; their counters are the fabric's
	kernel bool     // bonding; else bpf/team.c

	watching sync.WaitGroup
	stop     func() // ends watchCarrier; nil if it does not run
}

// monitorEvery is how often a team reads the carrier of its NICs: the usual period of
// bonding (miimon).
const monitorEvery = 100 * time.Millisecond

// maxLinks of a team; MAX_LINKS in bpf/team.c.
const maxLinks = 16

// bonded reports whether parallel links are one device to the systems.
func bonded(f suite.Fabric) bool { return f.Links > 1 && f.Team == suite.Bond }

// newTeam makes the node's bond if the kernel has bonding. readyNIC adds the NICs.
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
	bond.Miimon = int(monitorEvery.Milliseconds())
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

// loadBonding loads the module without its default device: if the kernel loaded it by
// itself, it would add a bond0 to the host's namespace. It does nothing if bonding is built
// in or missing.
func loadBonding() {
	if _, err := os.Stat("/sys/module/bonding"); err != nil {
		_ = exec.Command("modprobe", "-q", "bonding", "max_bonds=0").Run()
	}
}

// spread attaches the programs that replace bonding to the team's NICs. They stay with the
// devices. If links will be cut, it watches the NICs until close.
func (t *team) spread(s *space.Space, cut bool) error {
	devices := make([]netlink.Link, len(t.nics))
	indexes := make([]uint32, len(t.nics))
	for i, nic := range t.nics {
		l, err := s.Link(nic)
		if err != nil {
			return err
		}
		devices[i], indexes[i] = l, uint32(l.Attrs().Index)
	}
	programs, err := loadTeamPrograms(indexes)
	if err != nil {
		return err
	}
	if cut {
		t.watchCarrier(s, indexes, programs)
	} else {
		defer programs.Close()
	}
	if err := addFilter(s, devices[0], netlink.HANDLE_MIN_EGRESS, teamPriority, programs.TeamTransmit, teamProgTeamTransmit); err != nil {
		return err
	}
	for i, l := range devices[1:] {
		// As a separate host it would send hello messages with the first NIC's address.
		if err := s.DeviceSysctl("ipv6", t.nics[i+1], "disable_ipv6", "1"); err != nil {
			return err
		}
		if err := addFilter(s, l, netlink.HANDLE_MIN_INGRESS, teamPriority, programs.TeamReceive, teamProgTeamReceive); err != nil {
			return err
		}
	}
	return nil
}

// watchCarrier keeps NICs without carrier out of the team, as bonding does. It closes
// programs when it ends.
func (t *team) watchCarrier(s *space.Space, indexes []uint32, programs *teamObjects) {
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	t.watching.Go(func() {
		defer programs.Close()
		for tick := time.Tick(monitorEvery); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick:
			}
			var up []uint32
			for i, nic := range t.nics {
				if carrier, err := s.ReadSysfs(nic + "/carrier"); err != nil || carrier == "1" {
					up = append(up, indexes[i])
				}
			}
			_ = programs.use(up) // cannot fail for an array
		}
	})
}

// use makes the team send over these NICs only.
func (o *teamObjects) use(nics []uint32) error {
	u := teamUsable{Count: uint32(len(nics))}
	copy(u.Nics[:], nics)
	return o.Usable.Put(uint32(0), u)
}

// close ends watchCarrier.
func (t *team) close() {
	if t != nil && t.stop != nil {
		t.stop()
		t.watching.Wait()
	}
}

// loadTeamPrograms loads the programs of a team that sends over the NICs, given by link.
func loadTeamPrograms(nics []uint32) (*teamObjects, error) {
	spec, err := loadTeam()
	if err != nil {
		return nil, fmt.Errorf("read the team's programs: %w", err)
	}
	if err := spec.Variables[teamVarFirstNic].Set(nics[0]); err != nil {
		return nil, fmt.Errorf("prepare the team's programs: %w", err)
	}
	var programs teamObjects
	if err := spec.LoadAndAssign(&programs, nil); err != nil {
		return nil, fmt.Errorf("load the team's programs (needs Linux 5.4 with BPF and CAP_BPF): %w", err)
	}
	if err := programs.use(nics); err != nil {
		return nil, errors.Join(fmt.Errorf("tell the team's programs the NICs: %w", err), programs.Close())
	}
	return &programs, nil
}

// String returns a sentence about the part that spreads the flows.
func (t *team) String() string {
	if t.kernel {
		return fmt.Sprintf("bonding over %d links, balance-xor, layer3+4", len(t.nics))
	}
	return fmt.Sprintf("BPF programs over %d links in place of bonding, which this kernel lacks; flows spread as by layer3+4", len(t.nics))
}
