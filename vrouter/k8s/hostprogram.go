package k8s

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"windtunnel/vrouter/agent/netdev"
)

// hostPrograms are the programs of the node that the agent starts. The image does not have them,
// and they must fit the node's kernel.
var hostPrograms = []string{"iptables-restore", "ip6tables-restore", "nft"}

const (
	hostRoot = "/proc/1/root" // the node's root directory: the pod sees the node's process 1
	shimDir  = "/tmp/host-programs"
)

// useHostPrograms adds links to this program to PATH, with the names of the node's programs.
func useHostPrograms() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(shimDir, 0o755); err != nil {
		return err
	}
	for _, name := range hostPrograms {
		if err := os.Symlink(self, filepath.Join(shimDir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return os.Setenv("PATH", os.Getenv("PATH")+":"+shimDir)
}

// ExecHostProgram becomes the program of the node whose name this process was started with. It
// returns if the name is another one.
func ExecHostProgram() error {
	name := filepath.Base(os.Args[0])
	if !slices.Contains(hostPrograms, name) {
		return nil
	}
	err := syscall.Chroot(hostRoot)
	if err == nil {
		err = os.Chdir("/")
	}
	var path string
	if err == nil {
		path, err = exec.LookPath(name)
		if errors.Is(err, exec.ErrNotFound) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(netdev.NotInstalled)
		}
	}
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	return fmt.Errorf("start %s of the node: %w", name, err)
}
