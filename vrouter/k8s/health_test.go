package k8s

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/service"
)

// Load balancers ask as they ask kube-proxy: 200 while the node has a ready pod of the service, else 503.
func TestLoadBalancersCheckTheHealthOfServices(t *testing.T) {
	l := must.Get(net.Listen("tcp", ":0"))(t)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	var h healthServers // port 0 is any free one
	defer h.close()
	served := func(ready int) []service.Service {
		return []service.Service{{Name: "shop/web", Outside: &service.Outside{Local: true, HealthPort: port, Ready: ready}}, {Name: "shop/inside"}}
	}
	must.Fail(t, h.keep(served(1), true), "in use")
	l.Close()
	ask := func(port uint16) string {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
		if err != nil {
			return "no answer"
		}
		defer answer.Body.Close()
		return fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(must.Get(io.ReadAll(answer.Body))(t))))
	}
	for _, c := range []struct {
		ready int
		want  string
	}{{2, "200"}, {0, "503"}, {1, "200"}} {
		must.Succeed(t, h.keep(served(c.ready), true))
		must.Equal(t, fmt.Sprintf(`%s {"service":{"namespace":"shop","name":"web"},"localEndpoints":%d,"serviceProxyHealthy":true}`, c.want, c.ready), ask(port))
	}
	must.Succeed(t, h.keep(nil, true))
	must.Equal(t, "no answer", ask(port))
	h.port = port
	for written, want := range map[bool]string{true: "200", false: "503"} {
		must.Succeed(t, h.keep(nil, written))
		must.Equal(t, want, strings.Fields(ask(port))[0])
	}
}
