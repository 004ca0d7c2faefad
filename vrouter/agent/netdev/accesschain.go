package netdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// accessChain is a chain of the agent. A chain of the kernel jumps to it.
type accessChain struct {
	table, from, name string
	rules             []string // in the form in which iptables lists them
}

func (c accessChain) jump() string { return c.from + " -j " + c.name }

// restore runs commands of one IP version in a single process, in which iptables changes each
// table at once. It returns the lines that the commands list.
func (f accessFamily) restore(chains []accessChain, commands func(accessChain) []string) ([]string, error) {
	var text strings.Builder
	for _, c := range chains {
		fmt.Fprintf(&text, "*%s\n%s\nCOMMIT\n", c.table, strings.Join(commands(c), "\n"))
	}
	cmd := exec.Command(f.program, "--noflush", "--wait", "5")
	cmd.Stdin = strings.NewReader(text.String())
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	switch {
	case isNotInstalled(cmd, err):
		return nil, fmt.Errorf("masquerade packets of workloads: %w: %w", errNoIptables, err)
	case err != nil:
		return nil, fmt.Errorf("write the rules of workloads: %s: %w: %s", f.program, err, strings.TrimSpace(said.String()))
	}
	return strings.Split(string(out), "\n"), nil
}

// errNoIptables means that the node has neither iptables nor nft.
var errNoIptables = errors.New("iptables-restore is not installed; install iptables or nftables")

func (s *Space) checked(family string, c checkedChains) {
	if s.chains == nil {
		s.chains = map[string]checkedChains{}
	}
	s.chains[family] = c
}

// checkedChains are chains that the kernel had at a generation of its rules.
type checkedChains struct {
	generation uint32
	chains     []accessChain
	table      uint64 // handle of the nftables table with the rules; 0: iptables wrote the chains
	listing    string // output of nft that lists the table
}

// generation returns the generation of the rules of nftables in the namespace of this thread: each change of a rule
// increments it (nf_tables_commit of net/netfilter/nf_tables_api.c). It returns false if it is not known, or if the
// rules may be those of the older ip_tables, which have no generation.
func (f accessFamily) generation() (uint32, bool) {
	tables, err := os.ReadFile("/proc/thread-self/net/" + f.legacy)
	if len(tables) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, false
	}
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETGEN, 0)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_UNSPEC})
	answers, err := request.Execute(unix.NETLINK_NETFILTER, 0)
	if err != nil || len(answers) != 1 || len(answers[0]) < nl.SizeofNfgenmsg {
		return 0, false
	}
	attributes, err := nl.ParseRouteAttr(answers[0][nl.SizeofNfgenmsg:])
	for _, a := range attributes {
		if err == nil && a.Attr.Type == unix.NFTA_GEN_ID && len(a.Value) == 4 {
			return binary.BigEndian.Uint32(a.Value), true
		}
	}
	return 0, false
}

// keepChains writes the chains if they differ. It starts no program if no rule of the namespace has changed since the
// last check.
func (f accessFamily) keepChains(s *Space, subnets, pools []netip.Prefix) (changed bool, err error) {
	chains := f.chains(subnets, pools)
	generation, known := f.generation()
	checked := checkedChains{generation: generation, chains: chains}
	if was := s.chains[f.name]; known && was.generation == generation && reflect.DeepEqual(was.chains, chains) {
		return false, nil
	}
	// A missing chain is an error. Any other error occurs again when the chains are written.
	has, err := f.restore(chains, func(c accessChain) []string { return []string{"-S " + c.from, "-S " + c.name} })
	if errors.Is(err, errNoIptables) {
		return f.keepTable(s, chains, f.accessRules(subnets, pools))
	}
	if err == nil && !slices.ContainsFunc(chains, func(c accessChain) bool { return !c.isIn(has) }) {
		if known {
			s.checked(f.name, checked)
		}
		return false, deleteTable(f.nft, accessTable) // iptables was installed later
	}
	jumps, err := f.restore(chains, func(c accessChain) []string { return []string{"-S " + c.from} })
	if err != nil {
		return true, err
	}
	_, err = f.restore(chains, func(c accessChain) []string {
		all := []string{":" + c.name + " - [0:0]"}
		for _, r := range c.rules {
			all = append(all, "-A "+c.name+" "+r)
		}
		if !slices.Contains(jumps, "-A "+c.jump()) {
			all = append(all, "-A "+c.jump())
		}
		return all
	})
	return true, err
}

// removeChains removes the chains, and all jumps to them.
func (f accessFamily) removeChains() error {
	table := tableHandle(f.nft, accessTable) != 0
	if err := deleteTable(f.nft, accessTable); err != nil {
		return err
	}
	chains := f.chains(nil, nil)
	jumps, err := f.restore(chains, func(c accessChain) []string { return []string{"-S " + c.from} })
	if errors.Is(err, errNoIptables) && (table || !f.mayHaveChains(chains)) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.restore(chains, func(c accessChain) (all []string) {
		for _, j := range jumps {
			if j == "-A "+c.jump() {
				all = append(all, "-D "+c.jump())
			}
		}
		return append(all, ":"+c.name+" - [0:0]", "-X "+c.name)
	})
	return err
}

// mayHaveChains reports whether the kernel has a table in which the chains can be.
func (f accessFamily) mayHaveChains(chains []accessChain) bool {
	legacy, err := os.ReadFile("/proc/thread-self/net/" + f.legacy)
	return len(legacy) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) ||
		slices.ContainsFunc(chains, func(c accessChain) bool { return tableHandle(f.nft, c.table) != 0 })
}

// isIn reports whether the listed lines have the chain with its rules, and a jump to it.
func (c accessChain) isIn(lines []string) bool {
	var own []string
	for _, l := range lines {
		if rule, is := strings.CutPrefix(l, "-A "+c.name+" "); is {
			own = append(own, rule)
		}
	}
	return slices.Equal(own, c.rules) && slices.Contains(lines, "-A "+c.jump())
}
