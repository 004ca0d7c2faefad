package inspect_test

import (
	"fmt"
	"net/netip"
	"time"

	"windtunnel/internal/screen"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// Render formats a table for a width, here 60 cells. It names the columns that it hides.
func ExampleRouteTable() {
	nexthops := []inspect.Nexthop{
		{ID: 14, Type: "encap", Name: "port web"},
		{ID: 20, Type: "tunnel", Name: "tunnel b mpls-udp", Encapsulation: model.MPLSoUDP},
	}
	routes := []inspect.Route{
		{VRF: 7, Network: "red", Destination: netip.MustParsePrefix("10.1.0.10/32"), Nexthop: 14},
		{VRF: 7, Network: "red", Destination: netip.MustParsePrefix("10.1.0.11/32"), Nexthop: 20, Label: 30},
	}
	table := inspect.RouteTable(routes, nexthops)
	fmt.Print(table.Render(screen.Terminal{Width: 60}))
	// Output:
	// Vrf  Destination   Label  Nexthop  Stitched MAC  Leads to
	//   7  10.1.0.10/32      -       14  -             port web
	//   7  10.1.0.11/32     30       20  -             tunnel b m…
	// columns hidden for lack of width: Network, Flags (-o json
	// shows all)
}

// A match selects flows by the addresses and ports of both ends, in either order, and by protocol.
func ExampleParseMatch() {
	m, err := inspect.ParseMatch("10.1.0.0/16:80&proto tcp")
	if err != nil {
		fmt.Println(err)
		return
	}
	flow := inspect.Flow{Protocol: 6, Local: netip.MustParseAddrPort("10.1.0.10:80"), Remote: netip.MustParseAddrPort("10.1.0.11:51820"), Idle: 250 * time.Millisecond}
	fmt.Println(m.Covers(flow), inspect.Duration(flow.Idle))
	_, err = inspect.ParseMatch("10.1.0.0/33")
	fmt.Println(err)
	// Output:
	// true 250ms
	// match "10.1.0.0/33": "10.1.0.0/33" is neither an address nor a prefix
}
