package cni

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/vishvananda/netlink"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// CHECK names each difference between the container's device and the port.
func TestCheckNamesDifferencesOfTheDevice(t *testing.T) {
	t.Parallel()
	s := agenttest.NewSpace(t, "c")
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = "eth0", []byte{2, 0, 0, 0, 0, 1}
	must.Succeed(t, s.Links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "peer0"}))
	link := agenttest.LinkIn(t, s, "eth0")
	must.Succeed(t, s.Links.AddrAdd(link, &netlink.Addr{IPNet: netlink.NewIPNet([]byte{10, 1, 0, 2})}))
	var port api.Port
	port.MAC, port.IPs = model.MAC(attrs.HardwareAddr), []netip.Addr{netip.MustParseAddr("10.1.0.2")}
	is := func(what, device string, p api.Port, want string) {
		t.Helper()
		got := errors.Join(inside("/run/netns/"+s.Name, device, p)...)
		if (got == nil) != (want == "") || got != nil && !strings.Contains(got.Error(), want) || got != nil && strings.Contains(got.Error(), "\n") {
			t.Errorf("%s: %v, want only %q", what, got, want)
		}
	}
	is("a device that is down", "eth0", port, "is down")
	must.Succeed(t, s.Links.LinkSetUp(link))
	is("a device as its port", "eth0", port, "")
	is("no device", "eth1", port, "find device eth1")
	other := port
	other.MAC = model.MAC{2, 0, 0, 0, 0, 9}
	is("another MAC address", "eth0", other, "has MAC 02:00:00:00:00:01, not 02:00:00:00:00:09")
	other = port
	other.IPs = []netip.Addr{netip.MustParseAddr("10.1.0.3")}
	is("another address", "eth0", other, "lacks address 10.1.0.3")
}

// A runtime without pods, such as Podman, names no pod.
func TestCheckNamesAnotherNetworkOfAPortWithoutAPod(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "a.sock")
	l := must.Get(net.Listen("unix", socket))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(api.Port{Port: model.Port{Name: "p", Network: "blue"}, Device: "d"})
	})}
	go server.Serve(l)
	defer server.Close()
	config := fmt.Sprintf(`{"cniVersion": "1.0.0", "name": "red", "type": "vrouter", "network": "red", "socket": %q}`, socket)
	err := check(&skel.CmdArgs{ContainerID: "c", IfName: "eth0", Netns: "/none", StdinData: []byte(config)})
	must.Fail(t, err, "port p is in network blue, not red")
}
