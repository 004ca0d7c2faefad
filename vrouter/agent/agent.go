// Package agent runs a node. It starts and stops the agent, runs its loop, and serves the
// API of package api. Package follow applies changes of the store. Package reconcile makes
// the node equal to the desired state. Package netdev changes devices and programs.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/follow"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/dhcp"
	"windtunnel/vrouter/fib"
	"windtunnel/vrouter/ipfix"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

// Options of Run that are not the node's configuration.
type Options struct {
	Version string       // of the program, for users
	Logger  *slog.Logger // nil: no log
	// NetworkOf returns the network that a Kubernetes namespace chooses for its pods; "": none.
	// nil: no namespace chooses one.
	NetworkOf func(ctx context.Context, namespace string) (string, error)
	// Services calls set with all services after each change, until ctx ends. nil: the node has no services.
	Services func(ctx context.Context, set func([]service.Service) error)
	// ServiceRules makes the node's kernel translate packets that the node itself and hosts outside send to services.
	ServiceRules bool
	// Connect is a network with node_access. The node has a host port in it even without a workload there; "": none.
	Connect string
	// Grouping returns the groups of the ports of a slice; nil: no port has a group. If nothing has
	// changed, it returns the same pointer. nil: no port ever has a group.
	Grouping func(model.Slice) *fib.Grouping
	Regroup  <-chan struct{} // receives when the result of Grouping can have changed
	// GroupDenial says why the group of a port does not allow a flow to or from a remote address; "": it allows
	// the flow. nil: no port ever has a group.
	GroupDenial func(port string, d model.Direction, remote netip.Addr, protocol uint8, destination uint16) string
}

// agent is a running node. Only the loop uses the loop's fields. Other goroutines
// read the snapshot that the loop publishes.
type agent struct {
	config   config.Config
	version  string
	chosen   func(ctx context.Context, namespace string) (network string, err error) // Options.NetworkOf
	services services                                                                // Options.Services
	connect  string                                                                  // Options.Connect
	grouping func(model.Slice) *fib.Grouping                                         // Options.Grouping
	regroup  <-chan struct{}                                                         // Options.Regroup
	denied   groupDenial                                                             // Options.GroupDenial
	log      *slog.Logger
	started  time.Time
	space    *netdev.Space
	drops    *dropRing
	dhcp     *dhcp.Server
	bgp      *bgpSessions
	exporter *ipfix.Exporter
	lock     *lock
	socket   fs.FileInfo // the file of the API's socket, as this agent made it
	claim    claim

	snapshot  atomic.Pointer[snapshot]
	flowCount atomic.Int64 // flows after the last expireFlows
	gate      sync.RWMutex // readers of maps outside the loop hold it for reading; setting removed needs it for writing
	removed   bool         // the node has been removed

	// Fields of the loop.
	follower   *follow.Follower
	reconciler *reconcile.Reconciler
	export     *time.Ticker // passes over the flows to export
	freedAt    uint64       // Generation of the reconciler when freeMemory last returned memory
	heap       uint64       // result of held after freeMemory last returned memory
}

// Run runs the agent of one node until ctx ends, which its caller does at a signal, or the
// API stops it. Packets keep flowing afterwards, unless the API removed the node.
func Run(ctx context.Context, c config.Config, o Options) error {
	c = c.WithDefaults()
	if err := c.Validate(); err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := takeLock(c)
	if err != nil {
		return err
	}
	a := &agent{
		config: c, version: o.Version, chosen: o.NetworkOf, services: services{follow: o.Services, ruled: o.ServiceRules}, connect: o.Connect, grouping: o.Grouping, regroup: o.Regroup, denied: o.GroupDenial, log: o.Logger.With("node", c.Node), started: time.Now(), lock: l,
	}
	err = a.run(ctx)
	if a.removed {
		return err // takeDown has removed the lock
	}
	return errors.Join(err, l.release())
}

// run opens the namespace, the store and the data path, and then serves the API.
func (a *agent) run(ctx context.Context) (err error) {
	kind, why := netdev.ChooseDevice(a.config.WorkloadDevice)
	if why != nil && a.config.WorkloadDevice == config.Netkit {
		return fmt.Errorf("workload_device: netkit: %w; use Linux 6.10 or later with CONFIG_NETKIT=y, or set workload_device: auto", why)
	}
	a.config.WorkloadDevice = kind
	if why != nil {
		a.log.Info("new ports get veth devices", "reason", why)
	}
	if err := removeDeadSocket(a.config.Socket); err != nil { // before the agent changes anything
		return fmt.Errorf("serve the API of node %s: %w", a.config.Node, err)
	}
	if a.space, err = netdev.OpenNode(a.config); err != nil {
		return err
	}
	defer a.space.Close()
	if a.claim, err = claimSpace(a.space); err != nil {
		return fmt.Errorf("node %s: %w", a.config.Node, err)
	}
	defer a.claim.Close() // takeDown may have closed it
	ctx, end := context.WithCancel(ctx)
	if a.follower, err = follow.Join(ctx, a.config, a.log, a.space); err != nil {
		end()
		return err
	}
	defer func() {
		end()
		err = errors.Join(err, a.follower.Close(a.removed))
	}()
	first, err := a.follower.InitialSlice(ctx)
	if err != nil {
		return err
	}
	return a.serve(ctx, end, first)
}
