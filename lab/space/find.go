package space

import (
	"fmt"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// OpenInode opens the network namespace with an inode, in which a process of the caller's
// PID namespace runs. The name becomes the name of the Space.
func OpenInode(name string, inode uint32) (*Space, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		path := fmt.Sprintf("/proc/%d/ns/net", p.PID)
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil || uint32(st.Ino) != inode {
			continue
		}
		if s, err := OpenAt(name, path); err == nil { // else the process has ended
			return s, nil
		}
	}
	return nil, fmt.Errorf("no process of this machine runs in network namespace %d; the agent must see the processes of the machine (hostPID)", inode)
}
