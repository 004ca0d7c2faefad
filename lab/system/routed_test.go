package system

import (
	"net"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/space"
)

// A Linux bridge takes the lowest MAC address of its ports, unless its address was set. The containers have
// the address of their gateway in their ARP tables.
func TestTheGatewaysMACAddressStaysWhenAContainerJoins(t *testing.T) {
	n := loneNode(t)
	must.Succeed(t, connectRouted(n, n.MTU))
	defer func() { must.Succeed(t, disconnectRouted(n)) }()
	low := space.Veth{Name: "low", PeerName: "low0", MAC: net.HardwareAddr{2, 0, 0, 0, 0, 0}, MTU: n.MTU}
	must.Succeed(t, n.Space.Pair(low, n.Endpoints[0].Space))
	defer func() { must.Succeed(t, n.Space.Remove("low")) }()
	must.Succeed(t, n.Space.Enslave("low", bridgeDevice))
	bridge := must.Get(n.Space.Link(bridgeDevice))(t)
	must.Equal(t, gatewayMAC(0).String(), bridge.Attrs().HardwareAddr.String())
}
