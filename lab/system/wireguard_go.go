package system

import (
	"fmt"
	"os"
	"path/filepath"
)

// wireGuardSockets is the node's own /var/run, in its home. wireguard-go and wg have
// this fixed path for their sockets. In the host's directory the devices of several
// nodes would conflict, and sockets of killed programs would remain.
const wireGuardSockets = "run"

// startWireGuardGo runs wireguard-go, which makes the device.
func startWireGuardGo(n *Node) error {
	argv, err := wireGuardApart(n, "wireguard-go", "--foreground", wireGuardDevice)
	if err != nil {
		return err
	}
	return n.start(daemon{
		name: "wireguard-go",
		argv: argv,
		ready: func() error {
			return wireGuardCommand(n, "wg", "show", wireGuardDevice, "listen-port")
		},
	})
}

// wireGuardCommand runs a program with access to the node's wireguard-go.
func wireGuardCommand(n *Node, argv ...string) error {
	argv, err := wireGuardApart(n, argv...)
	if err == nil {
		_, err = n.command(argv...)
	}
	return err
}

// wireGuardApart runs a program in the node's home, in a separate mount namespace in
// which /var/run is the node's. The shell replaces itself by the program (exec),
// which so gets the signals. Files in the home are reached by relative paths only,
// because the mount may cover the home.
func wireGuardApart(n *Node, argv ...string) ([]string, error) {
	home, err := n.home()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(home, wireGuardSockets), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for wireguard-go's socket: %w", err)
	}
	const script = `cd "$1" && mount --bind ` + wireGuardSockets + ` "$(readlink -f /var/run)" && shift && exec "$@"`
	return append([]string{"unshare", "--mount", "sh", "-c", script, "sh", home}, argv...), nil
}
