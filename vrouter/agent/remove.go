package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/store"
)

// mayRemove refuses to delete an embedded store that other nodes use.
func (a *agent) mayRemove(withStore bool) error {
	if withStore || a.shared.address.Kind != store.KindEmbedded {
		return nil
	}
	var others []string
	a.shared.Peek(func(v *fleet.View) {
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
	a.gate.Lock() // wait until all readers of maps have finished
	a.removed = true
	a.gate.Unlock()
	a.unfollow()
	errs := []error{removePairs(a.space, a.config.Node)}
	if err := a.neighbours.keep(nil); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, removeMerging(a.space, a.config.Node), a.plane().Remove(), removeFiles(a.config), removeSocket(a.config.Socket), a.lock.remove())
	removeEmpty(a.config)
	err := errors.Join(errs...)
	a.log.Info("removed the node", "error", err)
	return err
}

// removePairs deletes the veth pairs of a node's ports.
func removePairs(s *space, node string) error {
	links, err := listLinks(s.links)
	if err != nil {
		return err
	}
	w := newWire(s, node, links, nil, func(string, string) {})
	defer w.close()
	var errs []error
	for _, l := range w.strays(nil) {
		errs = append(errs, w.remove(l))
	}
	return errors.Join(errs...)
}

// removeFiles unmounts the pins' filesystem and deletes the desired state.
func removeFiles(c Config) error {
	return errors.Join(datapath.UnmountPins(c.pinsDir()), kept{c.StateDir, c.Node}.remove())
}

// removeEmpty deletes the node's directories if they are empty.
func removeEmpty(c Config) {
	os.Remove(c.nodeDir())
	os.Remove(c.RunDir)
}

// Times of Remove.
const (
	removing   = 30 * time.Second // maximum time in which a running agent must remove everything
	removeWait = 20 * time.Millisecond
)

// Remove removes everything of a node. If the node's agent is running, the agent does
// it, else this process. It deletes an embedded store that other nodes may use only
// if withStore is true.
func Remove(c Config, withStore bool) error {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), removing)
	defer cancel()
	l, err := takeLock(c)
	var held *heldError
	if errors.As(err, &held) {
		l, err = removeRunning(ctx, c, withStore)
	}
	if err != nil || l == nil {
		return err
	}
	if err := mayRemoveStopped(c, withStore); err != nil {
		return errors.Join(err, l.release())
	}
	err = errors.Join(removeStopped(c), removeSocket(c.Socket), l.remove())
	removeEmpty(c) // the lock must be removed first
	return err
}

// removeRunning asks the running agent to remove the node. If the agent ends before
// the node is removed, removeRunning takes the lock and returns it.
func removeRunning(ctx context.Context, c Config, withStore bool) (*lock, error) {
	client := api.Dial(c.Socket)
	defer client.Close()
	for {
		err := client.Shutdown(ctx, api.ShutdownRequest{Remove: true, WithStore: withStore})
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
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("remove node %s: %w, and %w", c.Node, lockErr, err)
		case <-time.After(removeWait): // the agent is starting or stopping
		}
	}
}

// mayRemoveStopped is mayRemove for a node whose agent is not running.
func mayRemoveStopped(c Config, withStore bool) error {
	dir := kept{c.StateDir, c.Node}.embeddedDir()
	if _, err := os.Stat(dir); withStore || err != nil {
		return nil
	}
	return fmt.Errorf("remove node %s: other nodes may use its embedded store in %s, and its agent is not running; start the agent and retry, or use --with-store to delete the store", c.Node, dir)
}

// removeStopped removes the node of a stopped agent. If the node's namespace no
// longer exists, only pins, files and state remain to be deleted.
func removeStopped(c Config) error {
	s, err := openSpace(c.Netns)
	var gone *noNamespaceError
	switch {
	case errors.As(err, &gone):
		return errors.Join(removePins(c), removeFiles(c))
	case err != nil:
		return err
	}
	defer s.close()
	return errors.Join(removePairs(s, c.Node), removeMerging(s, c.Node), s.do(func() error { return removePlane(c) }), removeManaged(s, c), removeFiles(c))
}

// removePlane detaches the programs and deletes the pins. If this kernel cannot
// load the programs, it only deletes the pins.
func removePlane(c Config) error {
	pins, there := existingPins(c)
	if !there {
		return nil
	}
	d, err := datapath.Open(datapath.Options{Pins: pins, Limits: c.Limits.datapath(), NoTCX: c.TCX == Off, NoXDP: c.XDP == Off, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return datapath.RemovePins(pins)
	}
	return d.Remove()
}

func removePins(c Config) error {
	pins, there := existingPins(c)
	if !there {
		return nil
	}
	return datapath.RemovePins(pins)
}

// existingPins finds the pins without creating their directory.
func existingPins(c Config) (path string, there bool) {
	if _, err := os.Stat(c.nodeDir()); errors.Is(err, fs.ErrNotExist) {
		return "", false
	}
	path, err := datapath.MountPins(c.pinsDir())
	return path, err == nil
}

// removeManaged deletes the managed neighbour entries on the fabric devices.
func removeManaged(s *space, c Config) error {
	own, err := kept{c.StateDir, c.Node}.loadNode()
	if err != nil || len(own.Underlay) == 0 && len(c.Fabric) == 0 {
		return nil // the fabric devices are unknown
	}
	n := &neighbours{space: s, kept: map[neighbour]bool{}}
	managed, _, err := n.list()
	if err != nil {
		return err
	}
	links, err := listLinks(s.links)
	if err != nil {
		return err
	}
	fabric, _, err := fabricDevices(s, byName(links), c.Fabric, own.Underlay)
	if err != nil {
		return err
	}
	for k := range managed {
		for _, l := range fabric {
			if l.Attrs().Index == k.oif {
				n.kept[k] = true
			}
		}
	}
	return n.keep(nil)
}
