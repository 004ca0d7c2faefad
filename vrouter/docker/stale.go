package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// stale tracks the ports that reserve an address for an endpoint. If the Docker daemon
// crashes before it creates the endpoint, it does not release the address.
type stale struct {
	socket string               // of the Docker daemon
	after  time.Duration        // age at which a reservation is deleted
	since  map[string]time.Time // time at which the plugin first saw a reservation, by port
}

// collect deletes stale reservations of this node until ctx ends. It logs an error that
// repeats only once.
func (p *Plugin) collect(ctx context.Context) {
	ticker := time.NewTicker(max(p.stale.after/10, 100*time.Millisecond))
	defer ticker.Stop()
	for logged := ""; ; {
		if err := p.collectOnce(ctx, time.Now()); err != nil && err.Error() != logged && ctx.Err() == nil {
			logged = err.Error()
			slog.Warn("cannot free the addresses that Docker no longer uses", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *Plugin) collectOnce(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	status, err := p.client.Status(ctx)
	if err != nil {
		return err
	}
	ports, err := p.client.Ports(ctx, api.PortFilter{Node: status.Node, Origin: model.Docker})
	if err != nil {
		return err
	}
	since, old := map[string]time.Time{}, []model.Port{}
	for _, port := range ports {
		if port.Owner != reserved {
			continue
		}
		since[port.Name] = now
		if first, known := p.stale.since[port.Name]; known {
			since[port.Name] = first
		}
		if now.Sub(since[port.Name]) >= p.stale.after {
			old = append(old, port)
		}
	}
	p.stale.since = since
	if len(old) == 0 {
		return nil
	}
	auxiliary := p.auxiliary(ctx)
	for _, port := range old {
		addresses, here := auxiliary[port.Network]
		if here && addresses == nil || len(port.IPs) != 1 || addresses[port.IPs[0]] {
			continue
		}
		if err := p.client.EnsureNoPort(ctx, port.Name); err != nil {
			return err
		}
		slog.Info("freed an address that Docker no longer uses", "address", port.IPs[0], "network", port.Network)
	}
	return nil
}

// auxiliary returns the addresses that users reserve with `docker network create
// --aux-address`, by virtual network. The value is nil if they are unknown, because the
// docker network belongs to a swarm or the daemon does not answer. The map has only
// virtual networks that have a docker network on this host.
func (p *Plugin) auxiliary(ctx context.Context) map[string]map[netip.Addr]bool {
	all := map[string]map[netip.Addr]bool{}
	var unknown []string
	for id, n := range p.kept.networks() {
		if strings.HasPrefix(id, inSwarm("")) || p.scope == scopeGlobal {
			unknown = append(unknown, n.Network.Name)
			continue
		}
		addresses, err := p.stale.ask(ctx, id)
		if err != nil {
			unknown = append(unknown, n.Network.Name)
			continue
		}
		if all[n.Network.Name] == nil {
			all[n.Network.Name] = map[netip.Addr]bool{}
		}
		for _, a := range addresses {
			all[n.Network.Name][a] = true
		}
	}
	for _, name := range unknown {
		all[name] = nil
	}
	return all
}

// ask requests the auxiliary addresses of a docker network from the daemon. If the
// daemon does not know the network, it returns no addresses.
func (s *stale) ask(ctx context.Context, id string) (all []netip.Addr, err error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/networks/"+id, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, fmt.Errorf("read a network from the Docker daemon at %s: %w", s.socket, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	var network struct {
		IPAM struct {
			Config []struct {
				AuxiliaryAddresses map[string]netip.Addr
			}
		}
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read a network from the Docker daemon at %s: %s", s.socket, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&network); err != nil {
		return nil, fmt.Errorf("read a network from the Docker daemon at %s: %w", s.socket, err)
	}
	for _, c := range network.IPAM.Config {
		for _, a := range c.AuxiliaryAddresses {
			all = append(all, a)
		}
	}
	return all, nil
}
