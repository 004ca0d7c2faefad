package system

import (
	"fmt"

	"windtunnel/lab/program"
)

var iptablesProgram = program.Program{Name: "iptables", Version: []string{"iptables", "--version"}}

// noRules is a shell script that deletes all iptables rules and chains. With empty chains the
// kernel would still track every packet. It ignores tables that the kernel does not have.
const noRules = `for table in filter nat mangle raw; do
	for chain in PREROUTING INPUT FORWARD OUTPUT POSTROUTING; do iptables -w 2 -t $table -P $chain ACCEPT 2>/dev/null || :; done
	iptables -w 2 -t $table -F 2>/dev/null && iptables -w 2 -t $table -X || :
done`

// removeRules deletes all iptables rules in the node's namespace. iptables runs with the
// environment variables env in addition to those of this process.
func removeRules(n *Node, env []string) error {
	if _, err := n.commandWith(env, "sh", "-c", noRules); err != nil {
		return fmt.Errorf("delete the iptables rules in network namespace %s: %w", n.Name, err)
	}
	return nil
}
