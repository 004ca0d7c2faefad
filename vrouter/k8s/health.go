package k8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"windtunnel/vrouter/service"
)

// healthPort is the port at which load balancers ask whether the node serves services, as kube-proxy's default.
const healthPort = 10256

// healthServers answer load balancers in place of kube-proxy: on port, and on the healthCheckNodePort of each service
// with externalTrafficPolicy Local.
type healthServers struct {
	port    uint16
	mu      sync.Mutex
	checks  map[uint16]healthCheck
	running map[uint16]*http.Server
}

// healthCheck is the body of an answer, as kube-proxy's (healthcheck/service_health.go).
type healthCheck struct {
	Service struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"service"`
	Endpoints int  `json:"localEndpoints"`
	Healthy   bool `json:"serviceProxyHealthy"`
}

// keep listens on the ports of the services, and on no other ones. written reports whether the node has the rules of the
// services: if not, h.port says that the node is not healthy. It returns an error for ports that are in use.
func (h *healthServers) keep(all []service.Service, written bool) error {
	checks := map[uint16]healthCheck{h.port: {Healthy: written}}
	if written {
		checks[h.port] = healthCheck{Endpoints: 1, Healthy: true}
	}
	for _, s := range all {
		if s.Outside != nil && s.Outside.HealthPort != 0 {
			c := checks[s.Outside.HealthPort]
			c.Service.Namespace, c.Service.Name, _ = strings.Cut(s.Name, "/")
			c.Endpoints, c.Healthy = max(c.Endpoints, s.Outside.Ready), true
			checks[s.Outside.HealthPort] = c
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = checks
	if h.running == nil {
		h.running = map[uint16]*http.Server{}
	}
	for port, server := range h.running {
		if _, wanted := checks[port]; !wanted {
			server.Close()
			delete(h.running, port)
		}
	}
	var errs []error
	for port := range checks {
		if h.running[port] != nil {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprint(":", port))
		if err != nil {
			errs = append(errs, fmt.Errorf("answer health checks of load balancers: %w", err))
			continue
		}
		server := &http.Server{ReadHeaderTimeout: requestTimeout, IdleTimeout: time.Minute, Handler: h.handler(port)}
		h.running[port] = server
		go func() { _ = server.Serve(l) }() // it ends with Close
	}
	return errors.Join(errs...)
}

func (h *healthServers) handler(port uint16) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		h.mu.Lock()
		check := h.checks[port]
		h.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Load-Balancing-Endpoint-Weight", fmt.Sprint(check.Endpoints))
		if check.Endpoints == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(check) // a client that went away needs no answer
	}
}

// close ends all servers.
func (h *healthServers) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, server := range h.running {
		server.Close()
	}
}
