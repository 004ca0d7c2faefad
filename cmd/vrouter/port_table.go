package main

import (
	"cmp"
	"fmt"
	"strings"

	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// portTable shows ports, and the vifs of ports that this node has connected.
func portTable(rows []portRow) inspect.Table {
	t := inspect.Table{
		Empty: "no ports",
		Columns: []inspect.Column{
			{Name: "Port"},
			{Name: "Network", Least: 8},
			{Name: "Node", Least: 6, Leave: 3},
			{Name: "Addresses", Least: 12},
			{Name: "MAC", Leave: 4},
			{Name: "Workload", Least: 12, Leave: 2},
			{Name: "Device", Leave: 5},
			{Name: "Vif", Right: true, Leave: 1},
		},
	}
	for _, r := range rows {
		vif, device := "-", "-"
		if r.Vif != nil {
			vif, device = fmt.Sprint(r.Vif.ID), r.Vif.Device
		}
		t.Add(r.Name, r.Network, r.Node, joined(r.IPs), r.MAC.String(), workloadOf(r.Port), device, vif)
	}
	return t
}

// workloadOf is the pod of a port, or describes the workload's end of the port.
func workloadOf(p model.Port) string { return cmp.Or(p.Pod().String(), workload(p.Attach)) }

// workload describes the workload's end of a port.
func workload(a model.Attachment) string {
	switch {
	case a.Device != "":
		return "device " + a.Device
	case a.Host:
		return "this node"
	case a.Netns == "":
		return "-"
	}
	return cmp.Or(a.Interface, model.DefaultInterface) + " in " + a.Netns
}

// portFields are all fields of one port.
func portFields(r portRow) inspect.Fields {
	fields := portTable([]portRow{r}).Fields(0)
	if r.Origin != model.Applied {
		fields.Add("Created by", r.Origin.String())
	}
	if r.Owner != "" {
		fields.Add("Owner", r.Owner)
	}
	if r.Pod() != (model.Pod{}) {
		fields.Add("Pod UID", cmp.Or(r.Pod().UID, "-"))
		fields.Add("Attached to", workload(r.Attach))
	}
	if len(r.Policies) > 0 {
		fields.Add("Policies", strings.Join(r.Policies, " "))
	}
	for _, p := range r.AllowSources {
		fields.Add("May send from", p.String())
	}
	if r.Vif == nil {
		return fields
	}
	for _, f := range inspect.VifFields(*r.Vif) {
		switch f[0] {
		case "MTU", "Mode", "Flags", "RX packets", "RX bytes", "TX packets", "TX bytes", "Drops":
			fields = append(fields, f)
		}
	}
	return fields
}
