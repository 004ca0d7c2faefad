package system

import (
	"fmt"
	"os"
	"path/filepath"
)

// wireGuardSockets is a node's own /var/run, within its home. wireguard-go and
// wg look for each other there and cannot be told another place, in which
// devices of several nodes would meet and a killed one's socket would stay.
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

// wireGuardCommand runs a program where it finds the node's wireguard-go.
func wireGuardCommand(n *Node, argv ...string) error {
	argv, err := wireGuardApart(n, argv...)
	if err == nil {
		_, err = n.command(argv...)
	}
	return err
}

// wireGuardApart runs a program in the node's home, in a mount namespace of its
// own in which /var/run is the node's. The shell makes way for the program
// (exec), which so gets the signals. Files in the home are reached by relative
// paths only, since the home itself may be beneath what is covered.
func wireGuardApart(n *Node, argv ...string) ([]string, error) {
	home, err := n.home()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(home, wireGuardSockets), 0o700); err != nil {
		return nil, fmt.Errorf("make a place for wireguard-go's socket: %w", err)
	}
	const script = `cd "$1" && mount --bind ` + wireGuardSockets + ` "$(readlink -f /var/run)" && shift && exec "$@"`
	return append([]string{"unshare", "--mount", "sh", "-c", script, "sh", home}, argv...), nil
}
