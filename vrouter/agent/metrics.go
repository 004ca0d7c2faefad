package agent

import (
	"log/slog"
	"maps"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"windtunnel/vrouter/agent/reconcile"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/fleet"
	"windtunnel/vrouter/layout"
)

// metrics reads the maps on each scrape. It counts packets as on the wire, after
// segmentation. It counts bytes of inner Ethernet frames.
type metrics struct {
	agent *agent
}

// metric is the description of a metric.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var allMetrics []*metric

func counter(name, help string, labels ...string) *metric {
	return newMetric(prometheus.CounterValue, name, help, labels)
}

func gauge(name, help string, labels ...string) *metric {
	return newMetric(prometheus.GaugeValue, name, help, labels)
}

func newMetric(kind prometheus.ValueType, name, help string, labels []string) *metric {
	m := &metric{prometheus.NewDesc("vrouter_"+name, help, labels, nil), kind}
	allMetrics = append(allMetrics, m)
	return m
}

// The metrics.
var (
	vifPackets      = counter("vif_packets_total", "Packets of a port, from its workload (rx) or to it (tx).", "port", "network", "direction")
	vifBytes        = counter("vif_bytes_total", "Bytes of a port, from its workload (rx) or to it (tx).", "port", "network", "direction")
	vrfPackets      = counter("vrf_packets_total", "Packets of a network sent (tx) or received (rx) by an encapsulation; local: between ports of this node.", "network", "encapsulation", "direction")
	vrfBytes        = counter("vrf_bytes_total", "Bytes of a network sent (tx) or received (rx) by an encapsulation; local: between ports of this node.", "network", "encapsulation", "direction")
	dropPackets     = counter("drops_total", "Dropped packets by reason and port; without a port: from the fabric.", "reason", "port")
	fallbackPackets = counter("fallback_packets_total", "Packets that direct cannot carry, by network and reason. They take a tunnel, or are dropped if there is none.", "network", "reason")
	dhcpMessages    = counter("dhcp_messages_total", "DHCP messages of a port's workload by result: answered, or the reason why there was no answer.", "port", "result")
	outcomes        = counter("frames_total", "Frames that the programs have handled, by outcome.", "outcome")
	flowCount       = gauge("flows", "Flows in the flow table.")
	exportSent      = counter("flow_export_records_total", "Records of flows that were sent to the collector.")
	exportFailed    = counter("flow_export_errors_total", "Messages that could not be sent to the collector; their records are sent later.")
	exportLost      = counter("flow_export_lost_records_total", "Records that are lost, because too many waited for the collector.")
	tableCount      = gauge("table_entries", "Entries of a table.", "table")
	tableLimit      = gauge("table_limit", "Maximum of entries of a table.", "table")
	syncedAt        = gauge("synced_timestamp_seconds", "Last time at which maps and devices matched the desired state, Unix time.")
	repairCount     = counter("repairs_total", "Differences from the desired state that were repaired since the agent started.")
	passCount       = counter("passes_total", "Comparisons of the node's devices and tables with the desired state, by cause: start, request, event, timer, retry.", "cause")
	problems        = gauge("problems", "Objects that could not be written; the agent retries.")
	storeWorks      = gauge("store_up", "1 while the store answers.")
	storeHeard      = gauge("store_heard_timestamp_seconds", "Last time at which the store answered, Unix time.")
	storeAt         = gauge("store_revision", "Store revision of this node's copy.")
	leaving         = gauge("store_waiting_ports", "Ports that are deleted on this node but not yet in the store.")
	nodeCount       = gauge("nodes", "Nodes of the fleet, by state; gone: the node's lease has expired.", "state")
	information     = gauge("info", "The agent.", "node", "version")
	scrapeWorks     = gauge("scrape_ok", "1 if this scrape could read all maps.")
)

// maxScrapes is the maximum number of concurrent scrapes. Each scrape reads all maps.
const maxScrapes = 2

// metricsHandler serves the metrics in Prometheus' formats.
func (a *agent) metricsHandler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics{a})
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelWarn), MaxRequestsInFlight: maxScrapes,
	})
}

// Describe implements prometheus.Collector.
func (m metrics) Describe(out chan<- *prometheus.Desc) {
	for _, each := range allMetrics {
		out <- each.desc
	}
}

// Collect implements prometheus.Collector. If some maps cannot be read, it still
// sends the other metrics.
func (m metrics) Collect(out chan<- prometheus.Metric) {
	m.agent.gate.RLock()
	defer m.agent.gate.RUnlock()
	if m.agent.removed {
		return
	}
	s, v, ok := samples{out}, m.agent.snapshot.Load(), 1.0
	for _, collect := range []func(*snapshot, samples) error{m.traffic, m.drops, m.fallbacks, m.outcomes, m.sizes} {
		if err := collect(v, s); err != nil {
			m.agent.log.Warn("metrics are incomplete", "error", err)
			ok = 0
		}
	}
	m.store(v, s)
	m.agent.dhcp.Counts(func(port, result string, n uint64) { s.count(dhcpMessages, n, port, result) })
	if n := m.agent.exporter.Counts(); v.want != nil && v.want.State.Settings.FlowExport.IsOn() {
		s.count(exportSent, n.Sent)
		s.count(exportFailed, n.Failed)
		s.count(exportLost, n.Lost)
	}
	if !v.synced.IsZero() {
		s.add(syncedAt, float64(v.synced.UnixMilli())/1000)
	}
	s.count(repairCount, v.repairs)
	for cause, n := range v.passes {
		s.count(passCount, n, string(cause))
	}
	s.add(problems, float64(len(v.problems)))
	s.add(information, 1, m.agent.config.Node, m.agent.version)
	s.add(scrapeWorks, ok)
}

// store adds the metrics of the store and of its nodes.
func (m metrics) store(v *snapshot, s samples) {
	h := m.agent.follower.Health()
	works := 0.0
	if h.Read && h.Problem == nil {
		works = 1
	}
	s.add(storeWorks, works)
	s.add(leaving, float64(len(v.leaving)))
	if !h.Read {
		return
	}
	s.add(storeHeard, float64(h.Heard.UnixMilli())/1000)
	s.add(storeAt, float64(h.Revision))
	gone := map[string]bool{}
	if m.agent.follower.IsShared() {
		gone, _ = m.agent.follower.Gone()
		maps.DeleteFunc(gone, func(_ string, gone bool) bool { return !gone }) // keep only nodes that are gone
	}
	m.agent.follower.Peek(func(f *fleet.View) {
		s.add(nodeCount, float64(len(gone)), "gone")
		s.add(nodeCount, float64(len(f.Nodes())-len(gone)), "there")
	})
}

// samples are the samples of one scrape.
type samples struct {
	out chan<- prometheus.Metric
}

// add adds a sample with the values of its labels. A value that is not UTF-8 makes
// the scrape fail.
func (s samples) add(m *metric, n float64, values ...string) {
	sample, err := prometheus.NewConstMetric(m.desc, m.kind, n, values...)
	if err != nil {
		sample = prometheus.NewInvalidMetric(m.desc, err)
	}
	s.out <- sample
}

func (s samples) count(m *metric, n uint64, values ...string) { s.add(m, float64(n), values...) }

func (m metrics) traffic(v *snapshot, s samples) error {
	vifs, err := m.agent.reconciler.Plane().VifStats()
	if err != nil {
		return err
	}
	for id, port := range v.names().vifs {
		n := vifs[id] // zero if the port has no packets
		p, _ := v.want.Port(port)
		s.count(vifPackets, n.RxPackets, port, p.Network, "rx")
		s.count(vifPackets, n.TxPackets, port, p.Network, "tx")
		s.count(vifBytes, n.RxBytes, port, p.Network, "rx")
		s.count(vifBytes, n.TxBytes, port, p.Network, "tx")
	}
	vrfs, err := m.agent.reconciler.Plane().VRFStats()
	if err != nil {
		return err
	}
	for id, n := range vrfs {
		if network, ok := v.networks[id]; ok {
			s.network(network.Name, n)
		}
	}
	return nil
}

// network adds the traffic of a network by encapsulation, without unused ones.
func (s samples) network(name string, n layout.VRFCounters) {
	for i := range layout.Encapsulations {
		by := encapsulationName(uint32(i))
		if n.TxPackets[i]+n.RxPackets[i] == 0 {
			continue
		}
		s.count(vrfPackets, n.TxPackets[i], name, by, "tx")
		s.count(vrfPackets, n.RxPackets[i], name, by, "rx")
		s.count(vrfBytes, n.TxBytes[i], name, by, "tx")
		s.count(vrfBytes, n.RxBytes[i], name, by, "rx")
	}
}

// drops adds the drop counters. All deleted ports have the label "gone", and their
// counters are summed: a label set must be unique.
func (m metrics) drops(v *snapshot, s samples) error {
	all, err := m.agent.reconciler.Plane().Drops()
	if err != nil {
		return err
	}
	sums := map[[2]string]uint64{}
	for key, n := range all {
		port := ""
		if key.Vif != 0 {
			if port = v.names().vifs[key.Vif]; port == "" {
				port = "gone"
			}
		}
		sums[[2]string{datapath.ReasonOf(key.Reason).Name, port}] += n
	}
	for key, n := range sums {
		s.count(dropPackets, n, key[0], key[1])
	}
	return nil
}

func (m metrics) fallbacks(v *snapshot, s samples) error {
	all, err := m.agent.reconciler.Plane().Fallbacks()
	if err != nil {
		return err
	}
	for key, n := range all {
		if network, ok := v.networks[key.VRF]; ok {
			s.count(fallbackPackets, n, network.Name, datapath.FallbackReasonOf(key.Reason).Name)
		}
	}
	return nil
}

func (m metrics) outcomes(_ *snapshot, s samples) error {
	o, err := m.agent.reconciler.Plane().Outcomes()
	if err != nil {
		return err
	}
	s.count(outcomes, o.Received, "received")
	s.count(outcomes, o.Passed, "passed")
	s.count(outcomes, o.Forwarded, "forwarded")
	s.count(outcomes, o.Answered, "answered")
	s.count(outcomes, o.Replicated, "replicated")
	s.count(outcomes, o.Dropped, "dropped")
	s.count(outcomes, o.Decapped, "decapped")
	s.count(outcomes, o.Replicas, "replicas")
	return nil
}

func (m metrics) sizes(v *snapshot, s samples) error {
	t, err := m.agent.reconciler.Plane().Dump()
	if err != nil {
		return err
	}
	flows := 0
	if err := m.agent.reconciler.Plane().Flows(func(datapath.FlowKey, datapath.Flow) bool { flows++; return true }); err != nil {
		return err
	}
	s.add(flowCount, float64(flows))
	for _, each := range reconcile.TableSizes(t, flows, m.agent.reconciler.Limits) {
		s.add(tableCount, float64(each.Entries), each.Name)
		s.add(tableLimit, float64(each.Limit), each.Name)
	}
	s.add(tableCount, float64(len(v.labels.Received())), "link_labels")
	s.add(tableLimit, float64(v.labels.Limit), "link_labels")
	return nil
}
