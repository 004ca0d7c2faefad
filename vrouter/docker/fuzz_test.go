package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// paths of all calls.
var paths = []string{
	"/Plugin.Activate", "/NetworkDriver.GetCapabilities", "/NetworkDriver.CreateNetwork", "/NetworkDriver.DeleteNetwork",
	"/NetworkDriver.AllocateNetwork", "/NetworkDriver.FreeNetwork", "/NetworkDriver.CreateEndpoint", "/NetworkDriver.DeleteEndpoint",
	"/NetworkDriver.EndpointOperInfo", "/NetworkDriver.Join", "/NetworkDriver.Leave", "/NetworkDriver.DiscoverNew",
	"/NetworkDriver.DiscoverDelete", "/NetworkDriver.ProgramExternalConnectivity", "/NetworkDriver.RevokeExternalConnectivity",
	"/IpamDriver.GetCapabilities", "/IpamDriver.GetDefaultAddressSpaces", "/IpamDriver.RequestPool", "/IpamDriver.ReleasePool",
	"/IpamDriver.RequestAddress", "/IpamDriver.ReleaseAddress",
}

// plugin is a plugin with a fake agent. The agent has the network red, allocates
// any address, and finds no ports.
func plugin(t testing.TB) *Plugin {
	t.Helper()
	agent := http.NewServeMux()
	write := func(w http.ResponseWriter, status int, body any) {
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(body)
	}
	agent.HandleFunc("GET /v1/networks", func(w http.ResponseWriter, _ *http.Request) {
		write(w, http.StatusOK, []model.Network{{Name: "red", Subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00:1::/64")}}})
	})
	agent.HandleFunc("POST /v1/networks", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusConflict, map[string]string{"error": "no more networks"})
	})
	agent.HandleFunc("GET /v1/ports", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, []model.Port{}) })
	agent.HandleFunc("POST /v1/ports", func(w http.ResponseWriter, r *http.Request) {
		var request model.PortRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			write(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		port := api.Port{Port: request.Port}
		if len(port.IPs) == 0 {
			port.IPs = []netip.Addr{netip.MustParseAddr("10.1.0.2")}
		}
		for _, a := range port.IPs {
			port.Prefixes = append(port.Prefixes, netip.PrefixFrom(a, a.BitLen()))
		}
		write(w, http.StatusOK, port)
	})
	agent.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		write(w, http.StatusNotFound, map[string]string{"error": "there is no port"})
	})
	l := must.Get(net.Listen("unix", filepath.Join(t.TempDir(), "a.sock")))(t)
	server := &http.Server{Handler: agent}
	go server.Serve(l)
	client := api.Dial(l.Addr().String())
	t.Cleanup(func() { client.Close(); server.Shutdown(context.Background()) })
	return must.Get(New(Options{Client: client, State: filepath.Join(t.TempDir(), "docker.json")}))(t)
}

// call makes one call and returns the HTTP status and the field Err.
func call(t testing.TB, p *Plugin, path string, body []byte) (status int, told string) {
	t.Helper()
	w := httptest.NewRecorder()
	p.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	var answer struct{ Err string }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s answers %q: %v", path, w.Body, err)
	}
	return w.Code, answer.Err
}

func TestCallsThatCannotBeServedHaveAReason(t *testing.T) {
	p := plugin(t)
	for _, c := range []struct{ path, body, says string }{
		{"/NetworkDriver.CreateNetwork", `{`, "parse the call"},
		{"/NetworkDriver.CreateNetwork", `{"NetworkID": 7}`, "parse the call"},
		{"/NetworkDriver.CreateNetwork", ``, `"" is not a Docker id`},
		{"/NetworkDriver.CreateNetwork", `{"NetworkID": "../../etc"}`, "is not a Docker id"},
		{"/NetworkDriver.CreateNetwork", `{"NetworkID": "n1"}`, "--opt network=NAME"},
		{"/NetworkDriver.CreateNetwork", `{"NetworkID": "n1", "Options": {"com.docker.network.generic": {"network": "red", "mtu": 9000}}}`, "unknown --opt mtu; the options are"},
		{"/NetworkDriver.CreateNetwork", `{"NetworkID": "n1", "Options": {"com.docker.network.generic": {"network": "red"}}, "IPv4Data": [{"Pool": "10.9.0.0/16"}]}`, "not 10.9.0.0/16"},
		{"/NetworkDriver.CreateNetwork", `{"NetworkID": "n1", "Options": {"com.docker.network.generic": {"network": "red"}}, "IPv4Data": [{"Pool": "10.1.0.0/16", "Gateway": "10.1.0.9/16"}]}`, "--gateway 10.1.0.9"},
		{"/NetworkDriver.CreateEndpoint", `{"NetworkID": "n2", "EndpointID": "e1"}`, "has no docker network n2"},
		{"/NetworkDriver.Join", `{"NetworkID": "n1", "EndpointID": ""}`, "is not a Docker id"},
		{"/NetworkDriver.Join", `{"NetworkID": "n1", "EndpointID": "e1"}`, "there is no port"},
		{"/NetworkDriver.ProgramExternalConnectivity", `{"NetworkID": "n1", "EndpointID": "e1", "Options": {"com.docker.network.portmap": [{"Proto": 6, "Port": 80, "HostPort": 8080}]}}`, "--publish: port 80"},
		{"/IpamDriver.RequestPool", `{"Pool": "10.9.0.0/16"}`, "no virtual network has this subnet"},
		{"/IpamDriver.RequestPool", `{"Pool": "ten", "Options": {"network": "red"}}`, `--subnet "ten"`},
		{"/IpamDriver.RequestAddress", `{"PoolID": "red"}`, "is not a pool"},
		{"/IpamDriver.RequestAddress", `{"PoolID": "red|10.1.0.0/16", "Address": "ten"}`, `--ip "ten"`},
	} {
		if status, told := call(t, p, c.path, []byte(c.body)); status != http.StatusInternalServerError || !strings.Contains(told, c.says) {
			t.Errorf("%s %s: %d %q, want %q", c.path, c.body, status, told, c.says)
		}
	}
	for _, options := range []string{`{}`, `{"com.docker.network.portmap": null}`, `{"com.docker.network.portmap": []}`, `{"com.docker.network.endpoint.exposedports": [{"Proto": 6, "Port": 80}]}`} {
		if status, told := call(t, p, "/NetworkDriver.ProgramExternalConnectivity", []byte(`{"NetworkID": "n1", "EndpointID": "e1", "Options": `+options+`}`)); status != http.StatusOK {
			t.Errorf("without published ports, %s: %d %s", options, status, told)
		}
	}
	if big, told := call(t, p, "/NetworkDriver.Leave", []byte(`{"NetworkID": "`+strings.Repeat("x", maxBody)+`"}`)); big != http.StatusInternalServerError || !strings.Contains(told, "too large") {
		t.Errorf("a call without end: %d %q", big, told)
	}
}

// FuzzCall makes any call with any body. The plugin serves it, or refuses it with
// a reason.
func FuzzCall(f *testing.F) {
	p := plugin(f)
	for path, body := range map[string]string{
		"/Plugin.Activate":               ``,
		"/NetworkDriver.CreateNetwork":   `{"NetworkID": "n1", "Options": {"com.docker.network.generic": {"network": "red", "tenant": "admin"}}, "IPv4Data": [{"Pool": "10.1.0.0/16", "Gateway": "10.1.0.1/16"}], "IPv6Data": [{"Pool": "fd00:1::/64"}]}`,
		"/NetworkDriver.DeleteNetwork":   `{"NetworkID": "n1"}`,
		"/NetworkDriver.AllocateNetwork": `{"NetworkID": "n1", "Options": {"a": "b"}}`,
		"/NetworkDriver.CreateEndpoint":  `{"NetworkID": "n1", "EndpointID": "e1", "Interface": {"Address": "10.1.0.2/16", "AddressIPv6": "fd00:1::2/64", "MacAddress": "02:42:0a:01:00:02"}}`,
		"/NetworkDriver.Join":            `{"NetworkID": "n1", "EndpointID": "e1", "SandboxKey": "/var/run/docker/netns/1"}`,
		"/NetworkDriver.Leave":           `{"NetworkID": "n1", "EndpointID": "e1"}`,
		"/IpamDriver.RequestPool":        `{"AddressSpace": "vrouter", "Pool": "10.1.0.0/16", "SubPool": "10.1.2.0/24", "Options": {"network": "red"}, "V6": false}`,
		"/IpamDriver.RequestAddress":     `{"PoolID": "red|10.1.0.0/16|10.1.2.0/24", "Address": "10.1.2.3", "Options": {"RequestAddressType": "com.docker.network.gateway"}}`,
		"/IpamDriver.ReleaseAddress":     `{"PoolID": "red|fd00:1::/64", "Address": "fd00:1::2"}`,
	} {
		f.Add(uint8(slices.Index(paths, path)), []byte(body))
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		path := paths[int(which)%len(paths)]
		switch status, told := call(t, p, path, body); {
		case status == http.StatusOK && told == "":
		case status == http.StatusInternalServerError && told != "":
		default:
			t.Errorf("%s: status %d, %q", path, status, told)
		}
	})
}
