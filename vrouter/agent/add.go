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

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/model"
)

// addPort makes a port on this node. Either it forwards when this returns, or
// nothing is left of it. One without a place is only made known: its node will be
// told where it is.
func (a *agent) addPort(ctx context.Context, r api.PortRequest) (api.Port, error) {
	began := time.Now()
	r.Node, r.Origin = cmp.Or(r.Node, a.config.Node), cmp.Or(r.Origin, model.Added)
	here := r.Node == a.config.Node
	arrived := a.comes()
	defer arrived()
	var isThere, leaving bool
	err := a.ask(ctx, func() (err error) {
		leaving = slices.Contains(a.own.Leaving, r.Name)
		isThere, err = a.mayAdd(r, here)
		return err
	})
	if err == nil && here && !isThere && r.Attach.Netns != "" {
		err = refuseAs(http.StatusBadRequest, canEnter(r.Port))
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
		port, isNew, err = a.shared.AddPort(ctx, fleet.PortRequest{Port: r.Port, From: r.From, Four: r.Four, Six: r.Six, Replaces: r.Replaces})
		return err
	})
	if err != nil {
		return api.Port{}, err
	}
	arrived()
	var got api.Port
	err = a.caughtUp(ctx, func(unfit error) error {
		if unfit != nil {
			return unfit
		}
		if !here || port.Attach == (model.Attachment{}) {
			got = a.describeUnplugged(port)
			return nil
		}
		if err := a.last.unfit(port.Name); err != nil {
			return err
		}
		for _, r := range a.last.tables.Refused {
			if r.Network == port.Network {
				return refuseAs(http.StatusBadRequest, r.Err)
			}
		}
		got = a.describe(a.last, port)
		return nil
	})
	if err != nil && isNew {
		// Nobody shall wait for one who gave up.
		err = errors.Join(err, a.takeBack(context.WithoutCancel(ctx), port.Name))
	}
	got.Took = time.Since(began)
	return got, err
}

// mayAdd refuses what cannot be before the store is asked. The port may be there
// already, as it is asked for.
func (a *agent) mayAdd(r api.PortRequest, here bool) (isThere bool, err error) {
	switch {
	case r.Network == "":
		return false, refuse(http.StatusBadRequest, "the port has no network; name one")
	case r.Attach.Netns != "" && r.Attach.Device != "", r.Attach.Host && r.Attach.Netns+r.Attach.Device != "":
		return false, refuse(http.StatusBadRequest, "say where the workload is: its network namespace, or a device of this node, or this node itself")
	}
	if a.want == nil {
		return false, a.notRead()
	}
	if err := a.mayChange(); err != nil || !here || r.Attach == (model.Attachment{}) {
		return false, err
	}
	if is, taken := a.known(r.Name); taken && is.Owner == r.Owner && is.Attach == r.Attach {
		return true, nil
	} else if taken {
		return false, refuse(http.StatusConflict, "there is a port %q already, on node %s in network %s; choose another name", r.Name, is.Node, is.Network)
	}
	switch {
	case r.Attach.Device != "":
		err = a.canHave(r.Attach.Device)
	case r.Attach.Host:
		err = a.canBeIn(r.Network)
	}
	return false, refuseAs(http.StatusBadRequest, err)
}

// known is a port of the fleet by its name.
func (a *agent) known(name string) (p model.Port, known bool) {
	a.shared.Peek(func(v *fleet.View) { p, known = v.Port(name) })
	return p, known
}

// endLeaving deletes from the store a port which is gone here.
func (a *agent) endLeaving(ctx context.Context, name string) error {
	if _, err := a.shared.DeletePort(ctx, name); err != nil && !fleet.IsWhy(err, fleet.NotFound) {
		return err
	}
	return a.ask(ctx, func() error { return a.hasLeft(name) })
}

// canEnter looks whether a port's pair could be made, before anything is.
func canEnter(port model.Port) error {
	there, err := openSpace(port.Attach.Netns)
	if err != nil {
		return err
	}
	defer there.close()
	inside := interfaceOf(port)
	l, err := there.link(inside)
	if err == nil && l != nil {
		err = fmt.Errorf("network namespace %s has a device %s already; choose another name for the port's, or remove that device", port.Attach.Netns, inside)
	}
	return err
}

// canBeIn looks whether the node can reach a network's subnets by a device of
// its own: not where it has routes to them, or into them, already.
func (a *agent) canBeIn(network string) error {
	var n model.Network
	a.shared.Peek(func(v *fleet.View) { n, _ = v.Network(network) })
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := listRoutes(a.space.links, family)
		if err != nil {
			return err
		}
		for _, r := range routes {
			if r.Dst == nil {
				continue
			}
			to, ok := prefixOf(r.Dst)
			for _, s := range n.Subnets {
				if ok && to.Overlaps(s) && to.Bits() >= s.Bits() {
					return refuse(http.StatusConflict, "the node has a route to %s already, and network %q has the subnet %s: it could not tell the two apart", to, network, s)
				}
			}
		}
	}
	return nil
}

func (a *agent) canHave(device string) error {
	l, err := a.space.link(device)
	switch {
	case err != nil:
		return err
	case l == nil:
		return fmt.Errorf("device %s does not exist on the node", device)
	}
	for _, f := range a.last.fabric {
		if f.link.Attrs().Name == device {
			return fmt.Errorf("device %s is the node's underlay; give the port another", device)
		}
	}
	for _, p := range a.want.ports {
		if p.Attach.Device == device {
			return refuse(http.StatusConflict, "device %s is port %q's already", device, p.Name)
		}
	}
	return nil
}

// unfit is why a port does not forward, if so.
func (p *pass) unfit(port string) error {
	for _, q := range p.problems {
		if q.port == port {
			return errors.New(q.text)
		}
	}
	d := p.devices[port]
	if d == nil {
		return fmt.Errorf("port %s: it was not plugged: %s", port, p.reasons())
	}
	if _, ok := p.tables.Vifs[uint32(d.index())]; !ok || !p.compiled {
		return fmt.Errorf("port %s: the tables could not be made: %s", port, p.reasons())
	}
	return nil
}

func (p *pass) reasons() string {
	var all []error
	for _, q := range p.problems {
		all = append(all, errors.New(q.text))
	}
	if len(all) == 0 {
		return "no reason is known; see the agent's log"
	}
	return errors.Join(all...).Error()
}

// takeBack deletes a port that could not be plugged.
func (a *agent) takeBack(ctx context.Context, port string) error {
	return a.inStore(ctx, func(ctx context.Context) error {
		_, err := a.shared.DeletePort(ctx, port)
		return errors.Join(err, a.ask(ctx, a.follow))
	})
}

// describe is what the workload has, as the tables and devices are.
func (a *agent) describe(p *pass, port model.Port) api.Port {
	got := a.describeUnplugged(port)
	d := p.devices[port.Name]
	got.Device, got.MTU = d.link.Attrs().Name, int(p.tables.Vifs[uint32(d.index())].MTU)
	return got
}

// describeUnplugged is what a workload will have.
func (a *agent) describeUnplugged(port model.Port) api.Port {
	got := api.Port{Port: port}
	a.shared.Peek(func(v *fleet.View) {
		if network, ok := v.Network(port.Network); ok {
			o := outfitOf(network, port)
			got.Gateways, got.Prefixes = o.gateways, append([]netip.Prefix(nil), o.addresses...)
		}
	})
	return got
}
