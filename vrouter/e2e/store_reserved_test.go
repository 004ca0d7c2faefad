package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// ask sends a request of Docker's plugin protocol to the plugin, and returns the response.
func (d *dockerd) ask(path string, body map[string]any) (map[string]any, error) {
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.home+"/run/docker/plugins/vrouter.sock")
	}}}
	defer client.CloseIdleConnections()
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	answer, err := client.Post("http://plugin/"+path, "application/json", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", path, answer.Status, text)
	}
	var got map[string]any
	return got, errors.Join(err, json.Unmarshal(text, &got))
}

// fakeDocker serves the API of a Docker daemon that has one docker network with one
// auxiliary address.
func fakeDocker(t *testing.T, socket, network, auxiliary string) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must.Succeed(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/networks/"+network {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"Name": "red", "IPAM": {"Config": [{"Subnet": "10.1.0.0/24", "AuxiliaryAddresses": {"printer": %q}}]}}`, auxiliary)
	})}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}

// reservedBed makes a node with the plugin and a docker network. The returned function
// requests an address.
func reservedBed(t *testing.T) (*dockerd, func(body map[string]any) string) {
	b := fleetBed(t, "10s")
	home, err := os.MkdirTemp("", "vr-dk") // a short path: a socket's path has at most 107 bytes
	b.must(err)
	d := &dockerd{node: b.nodes[0], home: home}
	t.Cleanup(func() { os.RemoveAll(home) })
	b.must(os.MkdirAll(home+"/run/docker/plugins", 0o700))
	d.startPlugin(t, "--reserve", "1s", "--docker-socket", home+"/docker.sock")
	t.Cleanup(d.stopPlugin)
	d.node.run("network", "create", "red", "--subnet", "10.1.0.0/24")
	pool, err := d.ask("IpamDriver.RequestPool", map[string]any{"Pool": "10.1.0.0/24", "Options": map[string]string{"network": "red"}})
	b.must(err)
	_, err = d.ask("NetworkDriver.CreateNetwork", map[string]any{
		"NetworkID": "n1", "Options": map[string]any{"com.docker.network.generic": map[string]string{"network": "red"}}, "IPv4Data": []map[string]string{{"Pool": "10.1.0.0/24"}},
	})
	b.must(err)
	return d, func(body map[string]any) string {
		t.Helper()
		body["PoolID"] = pool["PoolID"]
		got, err := d.ask("IpamDriver.RequestAddress", body)
		b.must(err)
		address, _, _ := strings.Cut(got["Address"].(string), "/")
		return address
	}
}

// The plugin frees an address that Docker reserved but did not use. It keeps addresses of
// endpoints and auxiliary addresses.
func TestAnAddressThatDockerDoesNotUseIsFreed(t *testing.T) {
	t.Parallel()
	d, reserve := reservedBed(t)
	auxiliary, used, lost := reserve(map[string]any{"Address": "10.1.0.200"}), reserve(map[string]any{}), reserve(map[string]any{})
	addresses := func() (all []string) {
		for _, p := range rows[model.Port](d.node, "port", "list") {
			all = append(all, p.IPs[0].String())
		}
		return all
	}
	_, err := d.ask("NetworkDriver.CreateEndpoint", map[string]any{
		"NetworkID": "n1", "EndpointID": "e1e1e1e1e1e1e1e1e1e1e1e1e1e1", "Interface": map[string]string{"Address": used + "/24"},
	})
	must.Succeed(t, err)
	time.Sleep(3 * time.Second)
	if got := addresses(); len(got) != 3 {
		t.Fatalf("without the daemon's socket: ports %v, want 3", got)
	}
	fakeDocker(t, d.home+"/docker.sock", "n1", auxiliary)
	soon(t, "the lost address is freed", func() error {
		for _, a := range addresses() {
			if a == lost {
				return fmt.Errorf("%s is still reserved", a)
			}
		}
		return nil
	})
	time.Sleep(2 * time.Second)
	if got := strings.Join(addresses(), " "); len(addresses()) != 2 || !strings.Contains(got, auxiliary) || !strings.Contains(got, used) {
		t.Errorf("the ports are %s, want %s and %s", got, auxiliary, used)
	}
	reserve(map[string]any{"Address": lost})
}
