package drawings

import (
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/report/model"
	"windtunnel/lab/report/quantity"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

// topology is the path of one scenario's packets. style.css draws it as a U, or as one
// column on a narrow screen.
type topology struct {
	ID, Title string
	Caption   string
	Alt       string // sentence that describes the picture
	Headline  string // main figure of the trial
	Class     string // direction of the data; with "alone" if there is only one node
	Parts     []part
	Hops      []hopRow
}

// hopRow has the counters of a device, for the table.
type hopRow struct {
	Where, Device, Role string
	Counters            []string // received packets and bytes, then sent ones
	Drops               string
	Dropping            bool
}

func hopRows(hops []sample.Hop) (rows []hopRow) {
	for _, h := range hops {
		row := hopRow{Where: h.Node, Device: h.Device, Role: h.Role, Drops: amount(dropsOf(h), ""), Dropping: dropsOf(h) > 0,
			Counters: []string{amount(h.RxPackets, ""), amount(h.RxBytes, "B"), amount(h.TxPackets, ""), amount(h.TxBytes, "B")}}
		if h.Endpoint != "" {
			row.Where += " / " + h.Endpoint
		}
		rows = append(rows, row)
	}
	return rows
}

// part is the sender's node, the fabric, or the receiver's node. An arrow joins each
// stop to the stop before it.
type part struct {
	Class       string // near, between or far
	Title, Note string
	Stops       []stop
}

// topologies draws every scenario that has hops, from its median trial.
func (b *builder) topologies() (list []topology) {
	for i := range b.r.Scenarios {
		row := &b.r.Scenarios[i]
		trial := b.kept.median[row.ID]
		if p, ok := pathOf(trial); ok {
			list = append(list, topology{
				ID: row.ID, Title: row.Title, Caption: caption(trial), Alt: p.alt(row.ID), Headline: headline(row, trial),
				Class: p.class(row), Parts: p.parts(trial), Hops: hopRows(trial.Hops),
			})
		}
	}
	return list
}

// parts lists the stops from the sender to the receiver.
func (p path) parts(trial *sample.Sample) []part {
	near := part{"near", "node " + p.Nodes[0], spent(trial, sample.SenderCPU), append([]stop{{Name: "sender"}}, p.Near...)}
	between := part{"between", "", "", p.Between}
	far := part{"far", "", "", append(p.Far[:len(p.Far):len(p.Far)], stop{Name: "receiver"})}
	if len(p.Nodes) > 1 {
		far.Title, far.Note = "node "+p.Nodes[1], spent(trial, sample.ReceiverCPU)
		if len(p.Between) > 0 {
			between.Title = "fabric"
		}
	}
	return []part{near, between, far}
}

// class returns the direction of the data: forward (to the receiver), backward or both.
// " alone" follows if both endpoints are on one node.
func (p path) class(row *model.Scenario) string {
	class := "forward"
	switch {
	case row.Transactions != nil, row.Workload.Direction == suite.Both:
		class = "both"
	case row.Workload.Direction == suite.Reverse:
		class = "backward"
	}
	if len(p.Nodes) == 1 {
		class += " alone"
	}
	return class
}

func (p path) alt(id string) string {
	var names []string
	var drops uint64
	for _, s := range slices.Concat(p.Near, p.Between, p.Far) {
		names, drops = append(names, s.Name), drops+s.Drops()
	}
	return fmt.Sprintf("The path of the packets of %s: %s. Dropped on the path: %s.", id, strings.Join(names, ", "), amount(drops, "pkts"))
}

func caption(trial *sample.Sample) string {
	text := fmt.Sprintf("Block %d", trial.Block+1)
	if w, ok := trial.Metrics[sample.WindowSeconds]; ok {
		text += ", counted over " + quantity.Scale{Unit: "s", By: 1}.Print(w)
	}
	return text + "."
}

// headline is the main figure of the trial.
func headline(row *model.Scenario, trial *sample.Sample) string {
	m := mainMetric(row)
	v, ok := trial.Metrics[m]
	if !ok {
		return ""
	}
	scale := quantity.ScaleOf(m, v)
	if m == sample.Transactions {
		scale.Unit = strings.TrimSuffix(scale.Unit, "/s") + " transactions/s"
	}
	return strings.ReplaceAll(scale.Print(v), "  ", " ")
}

// spent returns the CPU of a side, "CPU 81 %"; "" if it was not measured.
func spent(trial *sample.Sample, m sample.Metric) string {
	if v, ok := trial.Metrics[m]; ok {
		return fmt.Sprintf("CPU %.0f %%", v)
	}
	return ""
}
