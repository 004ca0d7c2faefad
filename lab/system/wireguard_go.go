package system

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// wireGuardSockets is a directory in the node's home. wireguard-go and wg have their
// sockets always below /var/run, so the lab mounts this directory there. In the
// host's /var/run the devices of several nodes would conflict, and sockets of killed
// programs would remain.
const wireGuardSockets = "run"

// startWireGuardGo runs wireguard-go, which makes the device.
func startWireGuardGo(n *Node) error {
	argv, err := wireGuardApart(n, "wireguard-go", "--foreground", wireGuardDevice)
	if err != nil {
		return err
	}
	home, err := n.home()
	if err != nil {
		return err
	}
	return n.start(daemon{name: "wireguard-go", argv: argv, ready: func() error { return wireGuardListens(home) }})
}

// wireGuardListens returns an error if the wireguard-go of a node does not listen yet. home
// is the node's home. wg(8) would not do: it deletes a socket that refuses its connection,
// and wireguard-go ends when its socket is deleted between bind(2) and listen(2).
func wireGuardListens(home string) error {
	c, err := net.Dial("unix", wireGuardSocket(home))
	if err != nil {
		return err
	}
	return c.Close()
}

func wireGuardSocket(home string) string {
	return filepath.Join(home, wireGuardSockets, "wireguard", wireGuardDevice+".sock")
}

// wireGuardCommand runs a program that can access the sockets of the node's
// wireguard-go.
func wireGuardCommand(n *Node, argv ...string) error {
	argv, err := wireGuardApart(n, argv...)
	if err == nil {
		_, err = n.command(argv...)
	}
	return err
}

// wireGuardApart returns a command line that runs a program in a separate mount
// namespace, where /var/run is wireGuardSockets. The program runs in the node's
// home. The shell replaces itself by the program (exec), so signals reach the
// program. Paths of files in the home must be relative, because the mount may cover
// the home.
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
