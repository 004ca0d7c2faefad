package system

import (
	"fmt"

	"windtunnel/lab/program"
)

var iptablesProgram = program.Program{Name: "iptables", Package: "apt-get install iptables", Version: []string{"iptables", "--version"}}

// noRules is a shell script that removes all rules of iptables. If iptables uses
// nftables, the script also removes the hooks: with empty chains the kernel would
// still track every packet.
const noRules = `for table in filter nat mangle raw; do
	for chain in PREROUTING INPUT FORWARD OUTPUT POSTROUTING; do iptables -w 2 -t $table -P $chain ACCEPT 2>/dev/null || :; done
	iptables -w 2 -t $table -F 2>/dev/null && iptables -w 2 -t $table -X || :
done`

// removeRules removes all rules of iptables from the node's namespace. env is added to the
// environment of iptables.
func removeRules(n *Node, env []string) error {
	if _, err := n.commandWith(env, "sh", "-c", noRules); err != nil {
		return fmt.Errorf("remove the rules of iptables from node %s: %w", n.Name, err)
	}
	return nil
}
