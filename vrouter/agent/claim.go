package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/agent/netdev"
)

// claim is an open claim to a network namespace. A namespace has one agent, because the programs of two
// would drop each other's packets. The lock of takeLock does not suffice: an agent with another run_dir
// uses another lock file.
//
// The claim is a raw socket, which only root can make, so no other user can keep an agent from starting.
// /proc/net/raw lists the raw sockets of a namespace, and the kernel closes them when the process ends.
type claim struct{ *os.File }

// Close ends the claim at once. A child process that another goroutine has just forked may still have a copy of
// the socket.
func (c claim) Close() error {
	return errors.Join(unix.Bind(int(c.Fd()), &unix.SockaddrInet4{}), c.File.Close())
}

// claimSpace claims a namespace until the claim is closed. It makes its socket before it looks for
// others: two agents that start at the same moment may both be refused, but never both run.
func claimSpace(s *netdev.Space) (claim, error) {
	var c claim
	var holder uint32
	err := s.Once(func() (err error) {
		if c, err = newClaim(); err != nil {
			return fmt.Errorf("claim network namespace %s (needs root): %w", s.Name, err)
		}
		holder, err = c.other()
		return err
	})
	if err == nil && holder != 0 {
		name := s.Name
		if name == "" {
			name = "of this process"
		}
		err = fmt.Errorf("network namespace %s has an agent already, process %d, with another node or run_dir in its configuration; stop that process first", name, holder)
	}
	if err != nil && c.File != nil {
		c.Close()
	}
	return c, err
}

// claimed is the first address of claims, in the reserved block 240.0.0.0/4. The other bits are the
// process id.
const claimed = 0xf0000000

// newClaim makes a socket. With IPPROTO_RAW it can only send.
func newClaim() (c claim, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return c, err
	}
	c = claim{os.NewFile(uintptr(fd), "claim")}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1); err != nil {
		return c, err
	}
	var a unix.SockaddrInet4
	binary.BigEndian.PutUint32(a.Addr[:], claimed|uint32(os.Getpid()))
	return c, unix.Bind(fd, &a)
}

// other returns the process id of another claim in the thread's namespace; 0: there is none.
func (c claim) other() (pid uint32, err error) {
	var own unix.Stat_t
	if err := unix.Fstat(int(c.Fd()), &own); err != nil {
		return 0, err
	}
	sockets, err := os.ReadFile("/proc/thread-self/net/raw")
	if err != nil {
		return 0, fmt.Errorf("read the raw sockets: %w", err)
	}
	for line := range strings.Lines(string(sockets)) {
		f := strings.Fields(line)
		var native uint32
		if len(f) < 10 || f[7] != "0" || f[9] == fmt.Sprint(own.Ino) {
			continue
		}
		if n, _ := fmt.Sscanf(f[1], "%08X:00FF", &native); n != 1 {
			continue
		}
		var a [4]byte
		binary.NativeEndian.PutUint32(a[:], native)
		if address := binary.BigEndian.Uint32(a[:]); address&claimed == claimed {
			return address &^ claimed, nil
		}
	}
	return 0, nil
}
