package agent

import (
	"context"
	"fmt"
	"os"
)

// Identity is what the node's own processes are known by to the kernel that
// they run on, so that others can be told from them.
type Identity struct {
	PID        int      // of the agent; in the PID namespace that it runs in
	Namespaces []uint32 // inodes of the network namespaces: the node's, then its containers'
}

// Identity tells by what the node's processes are known. Containers are those
// that Attach has made.
func (s *Service) Identity(_ struct{}, reply *Identity) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply.PID = os.Getpid()
	inode, err := s.node.Inode()
	if err != nil {
		return fmt.Errorf("identify the node's network namespace: %w", err)
	}
	reply.Namespaces = []uint32{inode}
	for name, sp := range s.containers {
		inode, err := sp.Inode()
		if err != nil {
			return fmt.Errorf("identify the network namespace of container %s: %w", name, err)
		}
		reply.Namespaces = append(reply.Namespaces, inode)
	}
	return nil
}

// Identity asks by what the node's processes are known.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	return ask[Identity](ctx, c, "Identity", struct{}{})
}
