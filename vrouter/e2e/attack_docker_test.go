package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/api"
)

// call calls the plugin as Docker does.
func (d *dockerd) call(t *testing.T, path, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.home+"/run/docker/plugins/vrouter.sock")
	}}}
	defer client.CloseIdleConnections()
	answer, err := client.Post("http://plugin/NetworkDriver."+path, "application/json", strings.NewReader(body))
	must.Succeed(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, error %v: %s", path, answer.StatusCode, err, text)
	}
}

// TestDockerDoesNotRemoveANetworkWithAPolicy: Docker deletes its network on one host. If
// that removed the virtual network, another host would create it again without policy.
func TestDockerDoesNotRemoveANetworkWithAPolicy(t *testing.T) {
	t.Parallel()
	b := fleetBed(t, "10s")
	n := b.nodes[0]
	home, err := os.MkdirTemp("", "vr-dk") // short: sockets lie deep in it
	must.Succeed(t, err)
	d := &dockerd{node: n, home: home}
	t.Cleanup(func() { os.RemoveAll(home) })
	b.must(os.MkdirAll(home+"/run/docker/plugins", 0o700))
	d.startPlugin(t)
	t.Cleanup(d.stopPlugin)
	n.run("policy", "create", "closed", "--rule", "ingress deny")
	create := func(id, name string) {
		d.call(t, "CreateNetwork", fmt.Sprintf(`{"NetworkID": %q, "Options": {"com.docker.network.generic": {"network": %q}}, "IPv4Data": [{"Pool": "10.%d.0.0/16"}]}`, id, name, len(name)))
	}
	create("n1", "red")
	create("n2", "blue")
	n.run("network", "set", "red", "--policy", "closed")
	d.call(t, "DeleteNetwork", `{"NetworkID": "n1"}`)
	d.call(t, "DeleteNetwork", `{"NetworkID": "n2"}`)
	left := answer(n, (*api.Client).Networks)
	if len(left) != 1 || left[0].Name != "red" || len(left[0].Policies) != 1 {
		t.Errorf("networks %+v, want red alone, with its policy", left)
	}
}
