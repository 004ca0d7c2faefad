package agent

import (
	"context"
	"fmt"
	"os"
)

// Identity identifies the processes of a node. With it, the machine's other
// processes can be distinguished from them.
type Identity struct {
	PID        int      // PID of the agent, in the agent's PID namespace
	Namespaces []uint32 // inodes of the network namespaces: the node's, then its containers'
}

// Identity returns the identity of the node's processes, including the processes in
// the containers that Attach made.
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

// Identity asks the agent for the identity of the node's processes.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	return ask[Identity](ctx, c, "Identity", struct{}{})
}
