package netdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"reflect"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// tableFamily is an address family of nftables tables.
type tableFamily struct {
	number uint8
	name   string
}

var tableFamilies = [2]tableFamily{{unix.NFPROTO_IPV4, "ip"}, {unix.NFPROTO_IPV6, "ip6"}}

func (f tableFamily) deletion(table string) string {
	return fmt.Sprintf("delete table %s %s\n", f.name, table)
}

// NotInstalled is the exit code of a wrapper that starts a program of the node, if the node lacks the program.
const NotInstalled = 127

// isNotInstalled reports whether a program failed because it is not installed.
func isNotInstalled(cmd *exec.Cmd, err error) bool {
	return err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == NotInstalled)
}

var errNoNft = errors.New("nft is not installed; install nftables")

// nft runs nft commands in the network namespace of this thread, and returns their output. If one command fails, nft
// applies none of them.
func nft(commands string) (listed string, err error) {
	if commands == "" {
		return "", nil
	}
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(commands)
	said, err := cmd.CombinedOutput()
	switch {
	case isNotInstalled(cmd, err):
		return "", errNoNft
	case err != nil:
		const most = 1000
		return "", fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(string(said[:min(len(said), most)])))
	}
	return string(said), nil
}

// writeTable replaces a table.
func writeTable(f tableFamily, name, text string) error {
	head := fmt.Sprintf("table %s %s", f.name, name)
	_, err := nft(head + "\n" + f.deletion(name) + head + " {\n" + text + "}\n")
	return err
}

// listTable returns a table as nft lists it.
func listTable(f tableFamily, name string) (string, error) {
	return nft(fmt.Sprintf("list table %s %s\n", f.name, name))
}

// deleteTable deletes a table, if it exists.
func deleteTable(f tableFamily, name string) error {
	if tableHandle(f, name) == 0 {
		return nil
	}
	_, err := nft(f.deletion(name))
	return err
}

// tableHandle returns the handle of a table in the network namespace of this thread; 0: the table does not exist. A table
// that is deleted and created again has another handle.
func tableHandle(f tableFamily, name string) uint64 {
	request := nl.NewNetlinkRequest(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_GETTABLE, 0)
	request.AddData(&nl.Nfgenmsg{NfgenFamily: f.number})
	request.AddData(nl.NewRtAttr(unix.NFTA_TABLE_NAME, nl.ZeroTerminated(name)))
	answers, err := request.Execute(unix.NETLINK_NETFILTER, 0)
	if err != nil || len(answers) != 1 || len(answers[0]) < nl.SizeofNfgenmsg {
		return 0
	}
	attributes, err := nl.ParseRouteAttr(answers[0][nl.SizeofNfgenmsg:])
	for _, a := range attributes {
		if err == nil && a.Attr.Type == tableHandleAttribute && len(a.Value) == 8 {
			return binary.BigEndian.Uint64(a.Value)
		}
	}
	return 0
}

// tableHandleAttribute is NFTA_TABLE_HANDLE of linux/netfilter/nf_tables.h.
const tableHandleAttribute = 4

// accessTable is the table with the rules of node_access on a node without iptables.
const accessTable = "vrouter-access"

// keepTable writes the rules into the nftables table, unless the table has them already. The rules do the same as chains.
func (f accessFamily) keepTable(s *Space, chains []accessChain, rules string) (changed bool, err error) {
	was := s.chains[f.name]
	same := was.table != 0 && was.table == tableHandle(f.nft, accessTable) && reflect.DeepEqual(was.chains, chains)
	if same { // another program can have changed rules of the table
		listing, err := listTable(f.nft, accessTable)
		same = err == nil && listing == was.listing
	}
	listing := was.listing
	if !same {
		err := writeTable(f.nft, accessTable, rules)
		if err == nil {
			listing, err = listTable(f.nft, accessTable)
		}
		if errors.Is(err, errNoNft) {
			err = errNoIptables
		}
		if err != nil {
			return true, fmt.Errorf("masquerade packets of workloads: %w", err)
		}
	}
	generation, _ := f.generation()
	s.checked(f.name, checkedChains{generation, chains, tableHandle(f.nft, accessTable), listing})
	return !same, nil
}

// accessRules returns nftables rules that do the same as chains(), except that they accept no packet: in nftables, another
// chain can drop a packet that one chain accepts.
func (f accessFamily) accessRules(subnets, pools []netip.Prefix) string {
	const devices = `"` + ownPrefix + `*"`
	ip := f.nft.name
	var b strings.Builder
	chain := func(name, hook string, rules ...string) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s\n\t\t%s\n\t}\n", name, hook, strings.Join(rules, "\n\t\t"))
	}
	var before, after []string
	for _, p := range pools {
		before = append(before, fmt.Sprintf("%s saddr %s iifname %s notrack", ip, p, devices), fmt.Sprintf("%s daddr %s iifname != %s notrack", ip, p, devices))
	}
	before = append(before, `iifname "lo" return`)
	redirect := "icmpv6 type nd-redirect"
	if f.is(netip.IPv4Unspecified()) {
		before = append(before, "ip daddr 127.0.0.0/8 iifname "+devices+" drop")
		redirect = "icmp type redirect"
	}
	before = append(before, "iifname "+devices+" return")
	var forward []string
	for _, p := range pools {
		forward = append(forward, fmt.Sprintf("%s daddr %s oifname %s accept", ip, p, devices))
	}
	for _, s := range subnets {
		before = append(before, fmt.Sprintf("%s saddr %s drop", ip, s.Masked()))
		after = append(after, fmt.Sprintf("%s saddr %s oifname != %s masquerade", ip, s.Masked(), devices),
			fmt.Sprintf("%s saddr %s %[1]s daddr %[2]s oifname %s ct status dnat masquerade", ip, s.Masked(), devices))
	}
	chain("prerouting", "filter hook prerouting priority -300", before...)
	chain("postrouting", "nat hook postrouting priority 100", after...)
	chain("forward", "filter hook forward priority 0", append(forward, fmt.Sprintf("iifname %s oifname %[1]s ct status and dnat == 0 drop", devices))...)
	chain("output", "filter hook output priority 0", fmt.Sprintf("oifname %s %s drop", devices, redirect))
	return b.String()
}
