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

// RunDir is where agents put their sockets, NODE.sock, unless configured
// otherwise.
const RunDir = "/run/vrouter"

// Find returns the socket of a node's agent in a directory; of the only agent
// there if node is empty. The error says what to name where there are several.
func Find(dir, node string) (string, error) {
	if node != "" {
		return named(dir, node)
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
	return "", fmt.Errorf("agents of %d nodes run here; name one with --node: %s", len(nodes), strings.Join(nodes, ", "))
}

// Nodes are the names of the nodes that have a socket in a directory, sorted.
func Nodes(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, &Unreachable{"only root may look for agents in " + dir + "; use sudo", err}
	case err != nil:
		return nil, fmt.Errorf("look for agents: %w", err)
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
	return &Unreachable{"no agent runs on this host (no socket in " + dir + "); start one with `vrouter agent --config NODE.yaml`, or say where its socket is with --socket", fs.ErrNotExist}
}

// named is the socket of one node, whose name may not lead out of dir.
func named(dir, node string) (string, error) {
	if strings.ContainsRune(node, '/') {
		return "", fmt.Errorf("--node %s: a node's name has no slash; give a socket's path with --socket", node)
	}
	path := socket(dir, node)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, nil // what is wrong with it shows when it is dialled
	}
	nodes, err := Nodes(dir)
	switch {
	case err != nil:
		return "", err
	case len(nodes) == 0:
		return "", noAgent(dir)
	}
	return "", fmt.Errorf("no agent of a node %q runs here; there are: %s", node, strings.Join(nodes, ", "))
}

// answering are those whose agent is alive: one that was killed leaves its
// socket behind.
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
