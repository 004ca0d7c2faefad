// Package docker implements Docker's network and IPAM plugin, a remote driver of
// libnetwork. A docker network is a virtual network of the fleet. An endpoint is a
// port. The plugin passes requests to the node's agent. It stores only the virtual
// network of each docker network.
//
// Docker creates an endpoint before the container. So CreateEndpoint adds the
// port, and Join sets its device.
package docker

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"windtunnel/vrouter/api"
)

// Plugin serves one daemon. Several goroutines can use it at the same time.
type Plugin struct {
	client *api.Client
	kept   *kept
	scope  string
	stale  stale
}

// Options of New.
type Options struct {
	Client *api.Client // of the node's agent
	State  string      // file that stores the docker networks
	Scope  string      // local (default): each host creates docker networks; global: the swarm does
	// Socket is the socket of the Docker daemon. If it is empty, the plugin cannot ask
	// for auxiliary addresses, and frees no address.
	Socket string
	// Reserve is the time after which the plugin frees an address that Docker reserved
	// and did not use. 0: DefaultReserve.
	Reserve time.Duration
}

// DefaultReserve is longer than Docker takes from the request of an address to the
// creation of the endpoint.
const DefaultReserve = 10 * time.Minute

// Docker's scopes of a network.
const (
	scopeLocal  = "local"
	scopeGlobal = "global"
)

// agentTimeout is the time limit of a request to the agent.
const agentTimeout = 20 * time.Second

// New makes a plugin.
func New(o Options) (*Plugin, error) {
	switch o.Scope {
	case "":
		o.Scope = scopeLocal
	case scopeLocal, scopeGlobal:
	default:
		return nil, fmt.Errorf("unknown scope %q; write local or global", o.Scope)
	}
	if o.Reserve <= 0 {
		o.Reserve = DefaultReserve
	}
	k, err := openKept(o.State)
	if err != nil {
		return nil, err
	}
	return &Plugin{o.Client, k, o.Scope, stale{o.Socket, o.Reserve, map[string]time.Time{}}}, nil
}

// Handler serves both of Docker's protocols.
func (p *Plugin) Handler() http.Handler {
	h := http.NewServeMux()
	serve(h, "/Plugin.Activate", func(context.Context, *nothing) (any, error) {
		return answer{"Implements": []string{"NetworkDriver", "IpamDriver"}}, nil
	})
	serve(h, "/NetworkDriver.GetCapabilities", func(context.Context, *nothing) (any, error) {
		return answer{"Scope": p.scope, "ConnectivityScope": scopeGlobal}, nil
	})
	serve(h, "/NetworkDriver.CreateNetwork", p.createNetwork)
	serve(h, "/NetworkDriver.DeleteNetwork", p.deleteNetwork)
	serve(h, "/NetworkDriver.CreateEndpoint", p.createEndpoint)
	serve(h, "/NetworkDriver.DeleteEndpoint", p.deleteEndpoint)
	serve(h, "/NetworkDriver.EndpointOperInfo", p.endpointInfo)
	serve(h, "/NetworkDriver.Join", p.join)
	serve(h, "/NetworkDriver.Leave", p.leave)
	serve(h, "/NetworkDriver.ProgramExternalConnectivity", p.refusePublished)
	for _, path := range []string{"/NetworkDriver.DiscoverNew", "/NetworkDriver.DiscoverDelete", "/NetworkDriver.RevokeExternalConnectivity"} {
		serve(h, path, func(context.Context, *nothing) (any, error) { return nothing{}, nil }) // not used by this driver
	}
	serve(h, "/NetworkDriver.AllocateNetwork", p.allocateNetwork)
	serve(h, "/NetworkDriver.FreeNetwork", p.freeNetwork)

	serve(h, "/IpamDriver.GetCapabilities", func(context.Context, *nothing) (any, error) {
		return answer{"RequiresMACAddress": false}, nil
	})
	serve(h, "/IpamDriver.GetDefaultAddressSpaces", func(context.Context, *nothing) (any, error) {
		return answer{"LocalDefaultAddressSpace": "vrouter", "GlobalDefaultAddressSpace": "vrouter"}, nil
	})
	serve(h, "/IpamDriver.RequestPool", p.requestPool)
	serve(h, "/IpamDriver.ReleasePool", func(context.Context, *nothing) (any, error) { return nothing{}, nil })
	serve(h, "/IpamDriver.RequestAddress", p.requestAddress)
	serve(h, "/IpamDriver.ReleaseAddress", p.releaseAddress)
	return h
}
