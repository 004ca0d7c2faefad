package main

import (
	"fmt"
	"net/netip"
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
		t.Add(r.Name, r.Network, r.Node, addresses(r.IPs), r.MAC.String(), workload(r.Attach), device, vif)
	}
	return t
}

func addresses(ips []netip.Addr) string {
	if len(ips) == 0 {
		return "-"
	}
	words := make([]string, len(ips))
	for i, a := range ips {
		words[i] = a.String()
	}
	return strings.Join(words, " ")
}

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
	device := a.Interface
	if device == "" {
		device = "eth0"
	}
	return device + " in " + a.Netns
}

// portFields are all fields of one port.
func portFields(r portRow) []inspect.Field {
	fields := portTable([]portRow{r}).Fields(0)
	if r.Origin != model.Applied {
		fields = append(fields, inspect.Field{Name: "Created by", Value: r.Origin.String()})
	}
	if r.Owner != "" {
		fields = append(fields, inspect.Field{Name: "Owner", Value: r.Owner})
	}
	if len(r.Policies) > 0 {
		fields = append(fields, inspect.Field{Name: "Policies", Value: strings.Join(r.Policies, " ")})
	}
	for _, p := range r.AllowSources {
		fields = append(fields, inspect.Field{Name: "May send from", Value: p.String()})
	}
	if r.Vif == nil {
		return fields
	}
	for _, f := range inspect.VifFields(*r.Vif) {
		switch f.Name {
		case "MTU", "Mode", "Flags", "RX packets", "RX bytes", "TX packets", "TX bytes", "Drops":
			fields = append(fields, f)
		}
	}
	return fields
}
