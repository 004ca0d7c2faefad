package agent

import (
	"net/http"

	"windtunnel/vrouter/datapath"
)

// What is collected when Prometheus asks. Packets are as they are on the wire,
// bytes those of inner Ethernet frames.
var (
	vifPackets  = &family{name: "vif_packets_total", help: "Packets of a port, from its workload (rx) or to it (tx).", kind: counter, labels: []string{"port", "network", "direction"}}
	vifBytes    = &family{name: "vif_bytes_total", help: "Bytes of a port, from its workload (rx) or to it (tx).", kind: counter, labels: []string{"port", "network", "direction"}}
	vrfPackets  = &family{name: "vrf_packets_total", help: "Packets of a network sent (tx) or received (rx) by an encapsulation; local: between ports of this node.", kind: counter, labels: []string{"network", "encapsulation", "direction"}}
	vrfBytes    = &family{name: "vrf_bytes_total", help: "Bytes of a network sent (tx) or received (rx) by an encapsulation; local: between ports of this node.", kind: counter, labels: []string{"network", "encapsulation", "direction"}}
	dropPackets = &family{name: "drops_total", help: "Dropped packets by reason and port; without a port: from the fabric.", kind: counter, labels: []string{"reason", "port"}}
	outcomes    = &family{name: "frames_total", help: "Frames handed to the programs, by what became of them.", kind: counter, labels: []string{"outcome"}}
	flowCount   = &family{name: "flows", help: "Flows in the flow table.", kind: gauge}
	tableCount  = &family{name: "table_entries", help: "Entries of a table.", kind: gauge, labels: []string{"table"}}
	tableLimit  = &family{name: "table_limit", help: "Entries that a table has room for.", kind: gauge, labels: []string{"table"}}
	syncedAt    = &family{name: "synced_timestamp_seconds", help: "When maps and devices last equalled the desired state.", kind: gauge}
	repairCount = &family{name: "repairs_total", help: "Drift found and mended since the agent started.", kind: counter}
	problems    = &family{name: "problems", help: "What could not be made as desired and is tried again.", kind: gauge}
	information = &family{name: "info", help: "The agent.", kind: gauge, labels: []string{"node", "version"}}
	scrapeWorks = &family{name: "scrape_ok", help: "1 when all maps could be read for this answer.", kind: gauge}
)

// metricsHandler reads the maps for each answer; nothing is kept in between.
func (a *agent) metricsHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		e := newExposition("vrouter_")
		a.collect(a.view.Load(), e)
		w.Header().Set("Content-Type", expositionType)
		e.WriteTo(w) // who asked is gone if this fails
	})
}

func (a *agent) collect(v *view, e *exposition) {
	ok := 1.0
	for _, collect := range []func(*view, *exposition) error{a.collectTraffic, a.collectDrops, a.collectOutcomes, a.collectSizes} {
		if err := collect(v, e); err != nil {
			a.log.Warn("metrics are incomplete", "error", err)
			ok = 0
		}
	}
	if !v.synced.IsZero() {
		e.add(syncedAt, float64(v.synced.UnixMilli())/1000)
	}
	e.count(repairCount, v.repairs)
	e.add(problems, float64(len(v.problems)))
	e.add(information, 1, a.config.Node, a.version)
	e.add(scrapeWorks, ok)
}

func (a *agent) collectTraffic(v *view, e *exposition) error {
	vifs, err := a.plane.VifStats()
	if err != nil {
		return err
	}
	for id, s := range vifs {
		port := v.vifs[id]
		if port == "" {
			continue // of a port that is gone
		}
		p, _ := v.want.port(port)
		e.count(vifPackets, s.RxPackets, port, p.Network, "rx")
		e.count(vifPackets, s.TxPackets, port, p.Network, "tx")
		e.count(vifBytes, s.RxBytes, port, p.Network, "rx")
		e.count(vifBytes, s.TxBytes, port, p.Network, "tx")
	}
	vrfs, err := a.plane.VRFStats()
	if err != nil {
		return err
	}
	for id, s := range vrfs {
		network, ok := v.networks[id]
		if !ok {
			continue
		}
		for i, by := range encapsulationNames {
			if s.Tx[i] == (datapath.Traffic{}) && s.Rx[i] == (datapath.Traffic{}) {
				continue
			}
			e.count(vrfPackets, s.Tx[i].Packets, network.Name, by, "tx")
			e.count(vrfPackets, s.Rx[i].Packets, network.Name, by, "rx")
			e.count(vrfBytes, s.Tx[i].Bytes, network.Name, by, "tx")
			e.count(vrfBytes, s.Rx[i].Bytes, network.Name, by, "rx")
		}
	}
	return nil
}

// collectDrops adds up the vifs of ports that are gone under one name: a label
// set stands once in an answer.
func (a *agent) collectDrops(v *view, e *exposition) error {
	all, err := a.plane.Drops()
	if err != nil {
		return err
	}
	sums := map[[2]string]uint64{}
	for key, n := range all {
		port := ""
		if key.Vif != 0 {
			if port = v.vifs[key.Vif]; port == "" {
				port = "gone"
			}
		}
		sums[[2]string{datapath.ReasonOf(key.Reason).Name, port}] += n
	}
	for key, n := range sums {
		e.count(dropPackets, n, key[0], key[1])
	}
	return nil
}

func (a *agent) collectOutcomes(_ *view, e *exposition) error {
	o, err := a.plane.Outcomes()
	if err != nil {
		return err
	}
	e.count(outcomes, o.Received, "received")
	e.count(outcomes, o.Passed, "passed")
	e.count(outcomes, o.Forwarded, "forwarded")
	e.count(outcomes, o.Answered, "answered")
	e.count(outcomes, o.Replicated, "replicated")
	e.count(outcomes, o.Dropped, "dropped")
	e.count(outcomes, o.Decapped, "decapped")
	e.count(outcomes, o.Replicas, "replicas")
	return nil
}

func (a *agent) collectSizes(_ *view, e *exposition) error {
	t, err := a.plane.Dump()
	if err != nil {
		return err
	}
	flows := 0
	if err := a.plane.Flows(func(datapath.FlowKey, datapath.Flow) bool { flows++; return true }); err != nil {
		return err
	}
	e.add(flowCount, float64(flows))
	for _, s := range tableSizes(t, flows, a.limits) {
		e.add(tableCount, float64(s.entries), s.name)
		e.add(tableLimit, float64(s.limit), s.name)
	}
	return nil
}
