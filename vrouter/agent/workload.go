package agent

import (
	"net/netip"
	"time"

	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// askWorkload sends the workload of a port an ARP request or a neighbour solicitation from the workload's gateway. It calls
// heard if the workload sends any packet within half the interval between tests.
func (a *agent) askWorkload(port string, address netip.Addr, heard func()) {
	v := a.snapshot.Load()
	if v == nil || v.devices[port] == nil {
		return
	}
	d := v.devices[port]
	vif := v.vif(d.Index())
	router := netdev.Station{MAC: model.RouterMAC, Address: vif.Gateway6.Addr()}
	if address.Is4() {
		router.Address = layout.Addr4(vif.Gateway4)
	}
	if !router.Address.IsValid() || router.Address.IsUnspecified() {
		return
	}
	before, err := a.received(vif.ID)
	if err == nil {
		err = netdev.Ask(a.space, d.Index(), router, netdev.Station{MAC: vif.MAC, Address: address})
	}
	if err != nil {
		a.log.Debug("cannot test whether a workload answers", "port", port, "error", err)
		return
	}
	time.AfterFunc(a.config.Liveness/2, func() {
		if now, err := a.received(vif.ID); err == nil && now != before {
			heard()
		}
	})
}

// received returns how many packets the workload of a vif has sent.
func (a *agent) received(vif uint32) (packets uint64, err error) {
	a.gate.RLock()
	defer a.gate.RUnlock()
	if a.removed {
		return 0, nil
	}
	return a.reconciler.Plane().VifReceived(vif)
}
