package agent

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// addPort makes a port on this node, beside the applied state. Either it
// forwards when this returns, or nothing is left of it.
func (a *agent) addPort(r api.PortRequest) (api.Port, error) {
	began := time.Now()
	if err := a.mayChange(); err != nil {
		return api.Port{}, err
	}
	port, err := a.complete(r)
	if err != nil {
		return api.Port{}, err
	}
	if err := a.canPlug(port); err != nil {
		return api.Port{}, refuseAs(http.StatusBadRequest, err)
	}
	former := a.want
	next, err := former.with(port)
	if err != nil {
		return api.Port{}, err
	}
	if err := a.check(next); err != nil {
		return api.Port{}, err
	}
	if err := a.store.savePorts(next.local, next.ids); err != nil {
		return api.Port{}, err
	}
	p, err := a.adopt(next)
	if err != nil {
		return api.Port{}, err
	}
	if err := p.unfit(port.Name); err != nil {
		return api.Port{}, errors.Join(err, a.takeBack(former))
	}
	return a.describe(p, port, began), nil
}

// complete fills in what a request leaves open.
func (a *agent) complete(r api.PortRequest) (model.Port, error) {
	_, has := a.want.network(r.Network)
	switch {
	case !a.want.hasNode():
		return model.Port{}, refuse(http.StatusConflict, "no state was applied to this node yet: there are no networks; use `vrouter apply` first")
	case r.Network == "":
		return model.Port{}, refuse(http.StatusBadRequest, "the port has no network; name one")
	case !has:
		return model.Port{}, refuse(http.StatusNotFound, "there is no network %q in the applied state", r.Network)
	case (r.Attach.Netns == "") == (r.Attach.Device == ""):
		return model.Port{}, refuse(http.StatusBadRequest, "say where the workload is: either its network namespace, or a device of this node")
	}
	if _, taken := a.want.port(r.Name); taken && r.Name != "" {
		return model.Port{}, refuse(http.StatusConflict, "there is a port %q already; choose another name", r.Name)
	}
	port, err := model.Complete(a.want.whole, model.Port{
		Name: r.Name, Network: r.Network, Node: a.config.Node, MAC: r.MAC, IPs: r.IPs, Attach: r.Attach, Policies: r.Policies,
	})
	if err != nil {
		return model.Port{}, refuseAs(http.StatusBadRequest, err)
	}
	return port, nil
}

// canPlug looks whether a port's device could be had, before anything is made.
func (a *agent) canPlug(port model.Port) error {
	if name := port.Attach.Device; name != "" {
		return a.canHave(name)
	}
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
	for _, p := range a.want.ports() {
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

// takeBack returns to a former desired state.
func (a *agent) takeBack(former *desired) error {
	err := a.store.savePorts(former.local, former.ids)
	_, again := a.adopt(former)
	return errors.Join(err, again)
}

// describe is what the workload has, as the tables and devices are.
func (a *agent) describe(p *pass, port model.Port, began time.Time) api.Port {
	d := p.devices[port.Name]
	network, _ := p.want.network(port.Network)
	o := outfitOf(network, port)
	got := api.Port{
		Port: port, Device: d.link.Attrs().Name, MTU: int(p.tables.Vifs[uint32(d.index())].MTU),
		Gateways: o.gateways, Prefixes: append([]netip.Prefix(nil), o.addresses...),
	}
	got.Took = time.Since(began)
	return got
}
