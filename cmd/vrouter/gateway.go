package main

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"windtunnel/internal/lists"
	"windtunnel/internal/phrase"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

func gatewayCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gateway",
		Short: "Create and list gateways, tunnel endpoints outside the fleet",
		Example: `  vrouter gateway create edge --address 192.0.2.254 --encapsulation mpls-udp --serve red,label=300,prefix=0.0.0.0/0
  vrouter gateway list`,
	}
	kind := objects[model.Gateway]{
		noun: "gateway", all: (*api.Client).Gateways, name: func(g model.Gateway) string { return g.Name },
		table: gatewayTable, fields: gatewayFields, complete: completeGateways, put: (*api.Client).PutGateway, remove: (*api.Client).DeleteGateway,
	}
	cmd.AddCommand(gatewayCreateCommand(kind), kind.list(), kind.get(), kind.delete("Delete gateways that no route uses"))
	return cmd
}

func gatewayCreateCommand(kind objects[model.Gateway]) *cobra.Command {
	var g model.Gateway
	cmd := kind.create(&cobra.Command{
		Use:   "create NAME --address ADDRESS --encapsulation KIND --serve NETWORK[,KEY=VALUE…]",
		Short: "Create or change a gateway",
		Long: `Adds a tunnel endpoint outside the fleet, such as a hardware router. --serve sets
the values that the gateway uses for a network: label, ethernet_label, vni, prefix,
mac and flood. prefix and mac can be given several times.`,
		Example: "  vrouter gateway create edge --address 192.0.2.254 --encapsulation vxlan --serve red,vni=300,prefix=0.0.0.0/0",
	}, &g, &g.Name, func() string { return "serves " + phrase.Count(len(g.Networks), "network") })
	flags := cmd.Flags()
	listFlag(cmd, &g.Addresses, parseAddress, "address", "Underlay `address` of the gateway (repeatable)")
	flags.StringVar((*string)(&g.Encapsulation), "encapsulation", "", "Encapsulation that the gateway uses: mpls-udp, mpls-gre or vxlan")
	flags.TextVar(&g.MAC, "mac", model.MAC{}, "MAC `address` of the gateway's router, for routed VXLAN")
	flags.BoolVar(&g.Floating, "floating", false, "Hosts behind the gateway know workloads with a floating address by this address")
	flags.Func("serve", "Network and its `values` on the gateway (repeatable)", func(text string) error {
		n, err := parseServed(text)
		g.Networks = append(g.Networks, n)
		return err
	})
	cmd.MarkFlagRequired("address")
	cmd.MarkFlagRequired("encapsulation")
	cmd.RegisterFlagCompletionFunc("encapsulation", words("mpls-udp", "mpls-gre", "vxlan"))
	return cmd
}

// parseServed parses NETWORK,KEY=VALUE,….
func parseServed(text string) (n model.GatewayNetwork, err error) {
	parts := strings.Split(text, ",")
	n.Network = parts[0]
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		switch key {
		case "label":
			err = number(&n.Label, value)
		case "ethernet_label":
			err = number(&n.EthernetLabel, value)
		case "vni":
			err = number(&n.VNI, value)
		case "prefix":
			var p netip.Prefix
			p, err = parsePrefix(value)
			n.Prefixes = append(n.Prefixes, p)
		case "mac":
			var m model.MAC
			m, err = model.ParseMAC(value)
			n.MACs = append(n.MACs, m)
		case "flood":
			if n.Flood = value == "" || value == "true"; !n.Flood && value != "false" {
				err = fmt.Errorf("%q is neither true nor false", value)
			}
		default:
			return n, fmt.Errorf("unknown key %q; write label, ethernet_label, vni, prefix, mac or flood", key)
		}
		if err != nil {
			return n, fmt.Errorf("%s: %w", key, err)
		}
	}
	return n, nil
}

func number(into *uint32, text string) error {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return fmt.Errorf("%q is not a number from 0 to %d", text, uint32(math.MaxUint32))
	}
	*into = uint32(n)
	return nil
}

func gatewayTable(rows []model.Gateway) inspect.Table {
	t := inspect.Table{
		Empty:   "no gateways; create one with `vrouter gateway create`",
		Columns: []inspect.Column{{Name: "Gateway"}, {Name: "Addresses", Least: 12}, {Name: "Encapsulation"}, {Name: "Networks", Least: 12}},
	}
	for _, g := range rows {
		networks := lists.Map(g.Networks, func(n model.GatewayNetwork) string { return n.Network })
		t.Add(g.Name, joined(g.Addresses), string(g.Encapsulation), dash(strings.Join(networks, " ")))
	}
	return t
}

func gatewayFields(g model.Gateway) inspect.Fields {
	fields := gatewayTable([]model.Gateway{g}).Fields(0)
	if g.Floating {
		fields.Add("Floating", "true")
	}
	for _, n := range g.Networks {
		words := []string{n.Network}
		for _, each := range []struct {
			key   string
			value uint32
		}{{"label", n.Label}, {"ethernet_label", n.EthernetLabel}, {"vni", n.VNI}} {
			if each.value > 0 {
				words = append(words, fmt.Sprintf("%s=%d", each.key, each.value))
			}
		}
		for _, p := range n.Prefixes {
			words = append(words, "prefix="+p.String())
		}
		for _, m := range n.MACs {
			words = append(words, "mac="+m.String())
		}
		if n.Flood {
			words = append(words, "flood")
		}
		fields.Add("Serves", strings.Join(words, ","))
	}
	return fields
}
