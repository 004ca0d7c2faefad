package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// addPort adds a port. When it returns without an error, the port forwards. After an
// error, it has deleted everything that it created. A port without an attachment,
// or on another node, is only added to the store.
func (a *agent) addPort(ctx context.Context, r model.PortRequest) (api.Port, error) {
	began := time.Now()
	r.Node, r.Origin = cmp.Or(r.Node, a.config.Node), cmp.Or(r.Origin, model.Added)
	if err := a.chooseNetwork(ctx, &r); err != nil {
		return api.Port{}, err
	}
	here := r.Node == a.config.Node
	arrived := a.follower.ChangePending()
	defer arrived()
	var isThere, leaving bool
	err := a.follower.Ask(ctx, func() (err error) {
		leaving = slices.Contains(a.follower.Own.Leaving, r.Name)
		isThere, err = a.mayAdd(r, here)
		return err
	})
	if err == nil && here && !isThere && r.Attach.Netns != "" {
		err = refuseAs(http.StatusBadRequest, a.checkInterfaceFree(r.Port))
	}
	if err != nil {
		return api.Port{}, err
	}
	var port model.Port
	var isNew bool
	err = a.inStore(ctx, func(ctx context.Context) (err error) {
		if leaving {
			if err := a.endLeaving(ctx, r.Name); err != nil {
				return err
			}
		}
		port, isNew, err = a.follower.AddPort(ctx, r)
		return err
	})
	if err != nil {
		return api.Port{}, err
	}
	arrived()
	var got api.Port
	err = a.follower.AfterFollow(ctx, func(unfit error) error {
		if unfit != nil {
			return unfit
		}
		if !here || port.Attach == (model.Attachment{}) {
			got = a.describeAddresses(port)
			return nil
		}
		if err := cmp.Or(a.reconciler.Want.Overfull[port.Network], a.reconciler.Last.Unfit(port.Name)); err != nil {
			return err
		}
		for _, r := range a.reconciler.Last.Tables.Refused {
			if r.Network == port.Network {
				return refuseAs(http.StatusBadRequest, r.Err)
			}
		}
		got = a.describe(a.reconciler.Last, port)
		return nil
	})
	if err != nil && isNew {
		// Roll back even if the client has disconnected.
		err = errors.Join(err, a.undoAdd(context.WithoutCancel(ctx), port.Name))
	}
	got.Took = time.Since(began)
	return got, err
}

// chooseNetwork replaces the network of a pod's port by the network that the pod's namespace
// chooses. It clears From, because its ranges are addresses of the replaced network.
func (a *agent) chooseNetwork(ctx context.Context, r *model.PortRequest) error {
	if a.chosen == nil || r.Pod().Namespace == "" {
		return nil
	}
	network, err := a.chosen(ctx, r.Pod().Namespace)
	if err != nil {
		return refuse(http.StatusServiceUnavailable, "find the network of namespace %q of pod %s: %w", r.Pod().Namespace, r.Pod(), err)
	}
	if network == "" || network == r.Network {
		return nil
	}
	known := false
	a.follower.Peek(func(v *fleet.View) { _, known = v.Network(network) })
	if !known {
		return refuse(http.StatusNotFound, "namespace %q chooses the network %q for its pods, but there is no such network; create it by `vrouter network create %s`, or correct the annotation of the namespace", r.Pod().Namespace, network, network)
	}
	r.Network, r.From = network, nil
	return nil
}

// mayAdd checks a request before the store is changed. isThere is true if an
// identical port already exists.
func (a *agent) mayAdd(r model.PortRequest, here bool) (isThere bool, err error) {
	switch {
	case r.Network == "":
		return false, refuse(http.StatusBadRequest, "add a port: the request names no network; set network")
	case r.Attach.Netns != "" && r.Attach.Device != "", r.Attach.Host && r.Attach.Netns+r.Attach.Device != "":
		return false, refuse(http.StatusBadRequest, "add a port: give one of netns, device and host")
	}
	if a.reconciler.Want == nil {
		return false, a.notRead()
	}
	if err := a.mayChange(); err != nil || !here || r.Attach == (model.Attachment{}) {
		return false, err
	}
	if is, taken := a.known(r.Name); taken && is.Owner == r.Owner && is.Attach == r.Attach {
		return true, nil
	} else if taken {
		return false, refuse(http.StatusConflict, "port %q already exists, on node %s in network %s; choose another name", r.Name, is.Node, is.Network)
	}
	switch {
	case r.Attach.Device != "":
		err = a.checkDeviceFree(r.Attach.Device)
	case r.Attach.Host:
		err = a.checkNoRoutes(r.Network)
	}
	return false, refuseAs(http.StatusBadRequest, err)
}

// known finds a port of the networks of this node by name.
func (a *agent) known(name string) (p model.Port, known bool) {
	a.follower.Peek(func(v *fleet.View) { p, known = v.Port(name) })
	return p, known
}

// endLeaving deletes a port from the store. The port is already deleted on this
// node.
func (a *agent) endLeaving(ctx context.Context, name string) error {
	if _, err := a.follower.DeletePort(ctx, name, nil); err != nil && !fleet.IsWhy(err, fleet.NotFound) {
		return err
	}
	return a.follower.Ask(ctx, func() error { return a.follower.HasLeft(name) })
}

// checkInterfaceFree checks that the workload's device can be created.
func (a *agent) checkInterfaceFree(port model.Port) error {
	there, err := netdev.OpenWorkload(port.Attach.Netns, a.space)
	if err != nil {
		return err
	}
	defer there.Close()
	inside := netdev.InterfaceOf(port)
	l, err := there.Link(inside)
	if err == nil && l != nil {
		err = fmt.Errorf("network namespace %s has a device %s already; choose another interface, or delete that device", port.Attach.Netns, inside)
	}
	return err
}

// checkNoRoutes checks that the node has no routes into a network's subnets, so
// that it can reach them through the port. The routes of a port that connects the node to this
// network do not count: the port is being deleted; if not, the store refuses a second one.
func (a *agent) checkNoRoutes(network string) error {
	var n model.Network
	a.follower.Peek(func(v *fleet.View) { n, _ = v.Network(network) })
	own := 0
	for _, p := range a.reconciler.Want.Ports {
		if p.Attach.Host && p.Network == network {
			l, err := a.space.Link(netdev.InterfaceOf(p))
			if err != nil {
				return err
			}
			if l != nil {
				own = l.Attrs().Index
			}
		}
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := netdev.Routes(a.space.Links, family)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Dst == nil || own != 0 && r.LinkIndex == own {
				continue
			}
			to, ok := netdev.PrefixOf(r.Dst)
			for _, s := range n.Subnets {
				if ok && to.Overlaps(s) && to.Bits() >= s.Bits() {
					return refuse(http.StatusConflict, "connect the node to network %q: the node already has a route to %s, which overlaps the subnet %s; delete the route, or use another network", network, to, s)
				}
			}
		}
	}
	return nil
}

func (a *agent) checkDeviceFree(device string) error {
	l, err := a.space.Link(device)
	switch {
	case err != nil:
		return err
	case l == nil:
		return fmt.Errorf("device %s does not exist on the node; create it first", device)
	}
	for _, f := range a.reconciler.Last.Fabric {
		if f.Link.Attrs().Name == device {
			return fmt.Errorf("device %s is an underlay device of the node; choose another device", device)
		}
	}
	for _, p := range a.reconciler.Want.Ports {
		if p.Attach.Device == device {
			return refuse(http.StatusConflict, "device %s is already used by port %q; choose another device", device, p.Name)
		}
	}
	return nil
}

// undoAdd deletes a port that could not be connected.
func (a *agent) undoAdd(ctx context.Context, port string) error {
	return a.inStore(ctx, func(ctx context.Context) error {
		_, err := a.follower.DeletePort(ctx, port, nil)
		return errors.Join(err, a.follower.Ask(ctx, a.follower.Follow))
	})
}

// describe returns the settings of a connected port.
func (a *agent) describe(p *reconcile.Pass, port model.Port) api.Port {
	got := a.describeAddresses(port)
	d := p.Devices[port.Name]
	got.Device, got.MTU = d.Link.Attrs().Name, int(p.Tables.Vifs[uint32(d.Index())].MTU)
	return got
}

// describeAddresses returns the settings of a port that is not connected.
func (a *agent) describeAddresses(port model.Port) api.Port {
	got := api.Port{Port: port}
	a.follower.Peek(func(v *fleet.View) {
		if network, ok := v.Network(port.Network); ok {
			o := netdev.DeviceConfigOf(network, port)
			got.Gateways, got.Prefixes = o.Gateways, append([]netip.Prefix(nil), o.Addresses...)
		}
	})
	return got
}
