package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"windtunnel/lab/meter"
	"windtunnel/lab/space"
	"windtunnel/lab/system"
)

// Namespaces identifies the namespaces in which an agent runs. With it, another agent on the
// machine finds the first agent's network namespace and its processes.
type Namespaces struct {
	Network   uint32 // inode of the network namespace
	Processes uint32 // inode of the PID namespace
	MTU       int    // of the endpoint's device, bytes
}

// Namespaces returns the namespaces of an agent that runs in an endpoint, such as a pod.
func (s *Service) Namespaces(_ struct{}, reply *Namespaces) error {
	var err error
	if reply.Network, err = s.node.Inode(); err != nil {
		return err
	}
	if reply.Processes, err = namespaceOf(os.Getpid(), "pid"); err != nil {
		return err
	}
	device, err := s.node.Link(system.EndpointDevice)
	if err != nil {
		return fmt.Errorf("find the device of the endpoint: %w", err)
	}
	reply.MTU = device.Attrs().MTU
	return nil
}

// Namespaces asks an agent that runs in an endpoint for its namespaces.
func (c *Client) Namespaces(ctx context.Context) (Namespaces, error) {
	return ask[Namespaces](ctx, c, "Namespaces", struct{}{})
}

// adopt opens the network namespace of a container that exists already. The caller holds
// mu.
func (s *Service) adopt(c Container) (*space.Space, error) {
	sp, err := space.OpenInode(c.Name, c.Network)
	if err != nil {
		return nil, fmt.Errorf("find container %s: %w", c.Name, err)
	}
	s.containers[c.Name], s.adopted[c.Name] = sp, true
	return sp, nil
}

// trackElsewhere adds a process that another agent started. It is no error if the process
// has ended.
func (s *Service) trackElsewhere(m *meter.Meter, args TrackArgs) error {
	pid, err := pidHere(args.PID, args.Processes)
	if err != nil || pid == 0 {
		return err
	}
	m.Track(args.Label, pid)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elsewhere = append(s.elsewhere, pid)
	return nil
}

// pidHere returns the PID, in the caller's PID namespace, of the process with another PID
// in the PID namespace with the given inode. It returns 0 if there is no such process.
func pidHere(pid int, processes uint32) (int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		if inode, err := namespaceOf(p.PID, "pid"); err != nil || inode != processes {
			continue // it can have ended meanwhile
		}
		status, err := p.NewStatus()
		if err != nil || len(status.NSpids) == 0 {
			continue
		}
		if status.NSpids[len(status.NSpids)-1] == uint64(pid) {
			return p.PID, nil
		}
	}
	return 0, nil
}

// namespaceOf returns the inode of a process's namespace of a kind, such as "pid".
func namespaceOf(pid int, kind string) (uint32, error) {
	var st unix.Stat_t
	path := filepath.Join("/proc", strconv.Itoa(pid), "ns", kind)
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("stat %s: %w", path, err)
	}
	return uint32(st.Ino), nil
}
