package space

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Adopt replaces the network namespace of s by the namespace at a path, such as
// /proc/PID/ns/net. It is for programs that create the namespaces of their workloads
// themselves. Afterwards every user of s works in the new namespace, and the name in
// Dir refers to the new namespace. The settings recorded so far are dropped. The
// former namespace ends when its last process or handle does. Nothing else may use s
// during the call. After an error s is unchanged.
func (s *Space) Adopt(path string) error {
	if s.Name == "" {
		return fmt.Errorf("adopt namespace %s: the namespace of the process cannot be replaced", path)
	}
	other, err := OpenAt(s.Name, path)
	if err != nil {
		return fmt.Errorf("adopt: %w", err)
	}
	if err := rebind(s.Name, s.NS, other.NS); err != nil {
		other.Close()
		return fmt.Errorf("adopt namespace %s as %s: %w", path, s.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	former := &Space{NS: s.NS, Links: s.Links, sysfs: s.sysfs}
	s.NS, s.Links, s.sysfs, s.record = other.NS, other.Links, other.sysfs, other.record
	return former.Close()
}

// OpenAt opens the namespace at a path. The name becomes the name of the Space.
func OpenAt(name, path string) (*Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	if st.Type != unix.NSFS_MAGIC {
		return nil, fmt.Errorf("open network namespace %s: this file is not a namespace", path)
	}
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("open network namespace %s: %w", path, err)
	}
	return fromHandle(name, ns)
}

// rebind binds a name to another namespace. It first removes the former binding,
// which could not be removed below a new one. After an error the name is unchanged.
func rebind(name string, from, to netns.NsHandle) error {
	at := filepath.Join(Dir, name)
	if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("unbind %s: %w", at, err)
	}
	err := bind(at, to)
	if err == nil {
		return nil
	}
	if back := bind(at, from); back != nil {
		os.Remove(at)
		return fmt.Errorf("bind %s: %w (the former namespace could not be bound again: %w)", at, err, back)
	}
	return fmt.Errorf("bind %s: %w", at, err)
}

func bind(at string, ns netns.NsHandle) error {
	return unix.Mount(fmt.Sprintf("/proc/self/fd/%d", int(ns)), at, "", unix.MS_BIND, "")
}

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
