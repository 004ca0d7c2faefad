package follow

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/store"
)

// leaveWait is the maximum time for which LeaveFleet waits for the store.
const leaveWait = 3 * time.Second

// LeaveFleet deletes the ports of a removed node from a shared store. If the agent added
// the node to the store, LeaveFleet deletes the node too. It returns the number of deleted
// ports. Call it after the node is removed; after an error call it again.
// If the store is not an external etcd, but a file or embedded in the agent, LeaveFleet only deletes the file registeredPath.
func LeaveFleet(ctx context.Context, c config.Config) (ports int, err error) {
	c = c.WithDefaults()
	k := KeptOf(c)
	if a, err := store.ParseAddress(c.Store); err != nil || a.Kind != store.KindEtcd {
		k.forgetRegistered()
		return 0, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("remove node %s and its ports from the fleet: %w; run `vrouter remove` again when the store answers, or `vrouter node delete %s --ports` on another node", c.Node, err, c.Node)
		}
	}()
	here, err := netdev.OpenNode(c)
	if err != nil {
		return 0, err
	}
	defer here.Close()
	address, s, err := openStore(c, here)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	f := fleet.New(s, fleet.Options{Lease: c.Lease, Node: c.Node})
	ctx, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	defer func() { end(); <-ended }()
	reach, cancel := context.WithTimeout(ctx, leaveWait)
	defer cancel()
	if err := f.Reach(reach); err != nil {
		return 0, fmt.Errorf("the store at %s does not answer: %w", address, err)
	}
	if ports, err = f.Retire(ctx, c.Node, k.isRegistered()); err != nil {
		return ports, err
	}
	k.forgetRegistered()
	return ports, nil
}

// registeredPath is the path of an empty file. The agent creates it when it adds the node to the store, and LeaveFleet
// deletes it.
func (k Kept) registeredPath() string { return filepath.Join(k.dir, "registered") }

func (k Kept) isRegistered() bool {
	_, err := os.Stat(k.registeredPath())
	return err == nil
}

// forgetRegistered deletes the file, and then its directory if that is empty.
func (k Kept) forgetRegistered() {
	os.Remove(k.registeredPath())
	os.Remove(k.dir) // fails if the directory has other files
}

// noteRegistered writes the file and calls add, which adds the node to the store. It writes first:
// without the file, the agent would believe that an operator made the entry. The file stays if the
// store may have added the node although its answer was lost.
func (k Kept) noteRegistered(add func() error) error {
	err := os.MkdirAll(k.dir, 0o700)
	if err == nil {
		err = os.WriteFile(k.registeredPath(), nil, 0o600)
	}
	if err != nil {
		return err
	}
	if err = add(); err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, context.Canceled) {
		os.Remove(k.registeredPath())
	}
	return err
}
