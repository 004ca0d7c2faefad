package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RunDir is the default directory of the agents' sockets, NODE.sock.
const RunDir = "/run/vrouter"

// Find returns the socket of a node's agent in a directory. If node is empty it
// returns the only socket; it is an error if there are several.
func Find(dir, node string) (string, error) {
	if node != "" {
		return socketOf(dir, node)
	}
	nodes, err := Nodes(dir)
	if err != nil {
		return "", err
	}
	if len(nodes) > 1 {
		if alive := answering(dir, nodes); len(alive) > 0 {
			nodes = alive
		}
	}
	switch len(nodes) {
	case 0:
		return "", noAgent(dir)
	case 1:
		return socket(dir, nodes[0]), nil
	}
	return "", fmt.Errorf("agents of %d nodes run on this host; select one with --node: %s", len(nodes), strings.Join(nodes, ", "))
}

// Nodes returns the names of the nodes that have a socket in a directory, sorted.
func Nodes(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &Unreachable{"find agents in " + dir + ": permission denied; use sudo", err}
	case err != nil:
		return nil, fmt.Errorf("find agents: %w", err)
	}
	var nodes []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".sock"); ok && e.Type()&fs.ModeSocket != 0 {
			nodes = append(nodes, name)
		}
	}
	return nodes, nil
}

func socket(dir, node string) string { return filepath.Join(dir, node+".sock") }

func noAgent(dir string) error {
	return &Unreachable{"no agent runs on this host (no socket in " + dir + "); start one with `vrouter agent --config NODE.yaml`, or give the path of its socket with --socket", fs.ErrNotExist}
}

// socketOf returns the socket of one node. It refuses a name that is a path
// outside dir.
func socketOf(dir, node string) (string, error) {
	if strings.ContainsRune(node, '/') {
		return "", fmt.Errorf("--node %s: a node's name has no slash; give a socket's path with --socket", node)
	}
	path := socket(dir, node)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, nil // the connection attempt reports other errors
	}
	nodes, err := Nodes(dir)
	switch {
	case err != nil:
		return "", err
	case len(nodes) == 0:
		return "", noAgent(dir)
	}
	return "", &Unreachable{fmt.Sprintf("no agent of a node %q runs on this host; the nodes are: %s", node, strings.Join(nodes, ", ")), fs.ErrNotExist}
}

// answering returns the nodes whose agents run. A killed agent leaves its socket
// behind.
func answering(dir string, nodes []string) []string {
	var alive []string
	for _, n := range nodes {
		c, err := net.DialTimeout("unix", socket(dir, n), time.Second)
		if err != nil {
			continue
		}
		c.Close()
		alive = append(alive, n)
	}
	return alive
}
