package agent

import (
	"net"
	"net/netip"
	"time"

	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/ipfix"
)

// newExporter makes the exporter of the node's flows. It connects to the collector in the node's network namespace.
func (a *agent) newExporter() *ipfix.Exporter {
	a.export = time.NewTicker(time.Hour)
	a.export.Stop()
	return ipfix.New(a.config.Node, a.dialUDP)
}

// dialUDP opens a UDP socket in the node's network namespace.
func (a *agent) dialUDP(to netip.AddrPort) (conn net.Conn, err error) {
	err = a.space.Do(func() error {
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
		return err
	})
	return conn, err
}

// configureExport gives the exporter the settings, ports and networks of a pass. Before a change of the settings, it exports
// all flows with the previous settings.
func (a *agent) configureExport(p *reconcile.Pass) {
	want := p.Want.State.Settings.FlowExport
	if !want.IsOn() && !a.exporter.Settings().IsOn() {
		return
	}
	ports, networks := make(map[uint32]ipfix.Port, len(p.Tables.Vifs)), map[uint32]string{}
	for ifindex, v := range p.Tables.Vifs {
		ports[v.ID] = ipfix.Port{VRF: v.VRF, Interface: ifindex}
	}
	for _, n := range p.Want.State.Networks {
		networks[n.ID] = n.Name
	}
	a.exporter.Learn(ports, networks)
	if want == a.exporter.Settings() {
		return
	}
	a.exportFlows()
	plane := a.reconciler.Plane()
	if err := a.exporter.Configure(want, func() (ipfix.Store, error) { return plane.OpenExported() }); err != nil {
		a.log.Error("cannot change the export of flows", "error", err)
	}
	plane.WatchFlows(a.exporter.Begin(time.Now(), false))
	a.export.Stop()
	if wait := a.exporter.Wait(); wait > 0 {
		a.export.Reset(wait)
	}
}

// exportFlows exports all flows now.
func (a *agent) exportFlows() {
	watch := a.exporter.Begin(time.Now(), true)
	if watch == nil {
		return
	}
	a.passFlows(watch)
}
