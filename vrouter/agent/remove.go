package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/store"
)

// mayRemove refuses to delete an embedded store that other nodes use.
func (a *agent) mayRemove(withStore bool) error {
	if withStore || a.follower.Address.Kind != store.KindEmbedded {
		return nil
	}
	var others []string
	a.follower.Peek(func(v *fleet.View) {
		for _, n := range v.Nodes() {
			if n.Name != a.config.Node {
				others = append(others, n.Name)
			}
		}
	})
	if len(others) == 0 {
		return nil
	}
	return refuse(http.StatusConflict, "remove node %s: other nodes use its embedded store (%s); remove those nodes first, or use --with-store to delete the store", a.config.Node, strings.Join(others, ", "))
}

// takeDown removes everything of the node: programs, maps, pins, the veth pairs of
// ports, neighbours, the desired state, the socket and the lock. It runs in the
// loop, as its last action. It continues after failures and returns them.
func (a *agent) takeDown() error {
	if a.removed {
		return nil
	}
	a.exportFlows()
	a.gate.Lock() // wait until all readers of maps have finished
	a.removed = true
	a.gate.Unlock()
	a.follower.EndSaving()
	err := errors.Join(a.reconciler.End(), removeFiles(a.config), a.removeSocket(), a.claim.Close(), a.lock.remove())
	removeEmpty(a.config)
	a.log.Info("removed the node", "error", err)
	return err
}

// removeFiles unmounts the pins' filesystem and deletes the desired state.
func removeFiles(c config.Config) error {
	return errors.Join(datapath.UnmountPins(c.PinsDir()), follow.KeptOf(c).Remove())
}

// removeEmpty deletes the node's directories if they are empty.
func removeEmpty(c config.Config) {
	os.Remove(c.NodeDir())
	os.Remove(c.RunDir)
}

// Times of Remove.
const (
	RemoveTimeout = 30 * time.Second // default time limit for the removal by a running agent
	removeWait    = 20 * time.Millisecond
)

// IsPresent reports whether a node has files on this host: a socket, a lock, pins or state.
func IsPresent(c config.Config) bool {
	c = c.WithDefaults()
	return slices.ContainsFunc([]string{c.Socket, c.LockPath(), c.NodeDir(), c.StateDir}, func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	})
}

// Remove deletes everything that vrouter created on a node. If the agent is running, Remove sends it a request, and
// waits at most timeout for the answer (0: no limit). If it is not running, Remove itself deletes everything. An
// embedded store is deleted only if withStore is true, because other nodes may use it.
func Remove(ctx context.Context, c config.Config, withStore bool, timeout time.Duration) error {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return err
	}
	l, err := takeLock(c)
	var held *heldError
	if errors.As(err, &held) {
		if timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the agent (process %s) did not answer within %s; read its log, set a longer --timeout, or kill the process and retry", held.pid, timeout))
			defer cancel()
		}
		l, err = removeRunning(ctx, c, withStore)
	}
	if err != nil || l == nil {
		return err
	}
	if err := mayRemoveStopped(c, withStore); err != nil {
		return errors.Join(err, l.release())
	}
	socketErr := removeDeadSocket(c.Socket)
	if errors.Is(socketErr, errListening) { // the socket belongs to another program
		socketErr = nil
	}
	err = errors.Join(removeStopped(c), socketErr, l.remove())
	removeEmpty(c) // the lock must be removed first
	return err
}

// removeRunning asks the running agent to remove the node. If the agent ends before
// the node is removed, removeRunning takes the lock and returns it.
func removeRunning(ctx context.Context, c config.Config, withStore bool) (*lock, error) {
	client := api.Dial(c.Socket)
	defer client.Close()
	for {
		err := client.Shutdown(ctx, api.ShutdownRequest{Node: c.Node, Remove: true, WithStore: withStore})
		if err == nil {
			return nil, nil
		}
		var none *api.Unreachable
		if !errors.As(err, &none) {
			return nil, fmt.Errorf("remove node %s: %w", c.Node, err)
		}
		l, lockErr := takeLock(c)
		if lockErr == nil {
			return l, nil
		}
		if pause.For(ctx, removeWait) != nil { // the agent is starting or stopping
			return nil, fmt.Errorf("remove node %s: %w, and %w", c.Node, lockErr, err)
		}
	}
}

// mayRemoveStopped is mayRemove for a node whose agent is not running.
func mayRemoveStopped(c config.Config, withStore bool) error {
	dir := follow.KeptOf(c).EmbeddedDir()
	if _, err := os.Stat(dir); withStore || err != nil {
		return nil
	}
	return fmt.Errorf("remove node %s: other nodes may use its embedded store in %s, and its agent is not running; start the agent and retry, or use --with-store to delete the store", c.Node, dir)
}

// removeStopped removes the node of a stopped agent. If the node's namespace no
// longer exists, only pins, files and state remain to be deleted.
func removeStopped(c config.Config) error {
	s, err := netdev.Open(c.Netns)
	var gone *netdev.NoNamespaceError
	switch {
	case errors.As(err, &gone):
		return errors.Join(netdev.RemovePins(c), removeFiles(c))
	case err != nil:
		return err
	}
	defer s.Close()
	claim, err := claimSpace(s)
	if err != nil { // another agent uses the devices
		return fmt.Errorf("remove node %s: %w", c.Node, err)
	}
	defer claim.Close()
	errs := []error{netdev.RemovePairs(s, c.Node), netdev.RemoveMerging(s, c.Node), netdev.RemoveAccess(s, c), netdev.RemoveServiceRules(s), s.Do(func() error { return netdev.RemovePlane(c) })}
	if own, err := follow.KeptOf(c).LoadNode(); err == nil { // else the underlay is unknown
		errs = append(errs, netdev.RemoveManaged(s, c, own.Underlay))
	}
	return errors.Join(append(errs, removeFiles(c))...)
}
