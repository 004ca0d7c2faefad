// Package docker is vrouter as Docker's network and address plugin: a remote
// driver of libnetwork. A docker network is a virtual network of the fleet, an
// endpoint a port. What the plugin is asked it asks the node's agent; its own is
// only which docker network is which virtual one.
//
// Docker asks for an endpoint before it makes the container: the port exists from
// CreateEndpoint on, and is told its device by Join.
package docker

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"windtunnel/vrouter/api"
)

// Plugin serves one daemon's requests. It may be used by several goroutines.
type Plugin struct {
	client *api.Client
	kept   *kept
	scope  string
}

// Options of New.
type Options struct {
	Client *api.Client // of the node's agent
	State  string      // the file in which docker networks are noted
	Scope  string      // local (the default): docker networks are made on each host; global: by a swarm
}

// How far Docker believes a network to reach.
const (
	scopeLocal  = "local"
	scopeGlobal = "global"
)

// patience is how long Docker is let wait for the agent.
const patience = 20 * time.Second

// New makes a plugin.
func New(o Options) (*Plugin, error) {
	switch o.Scope {
	case "":
		o.Scope = scopeLocal
	case scopeLocal, scopeGlobal:
	default:
		return nil, fmt.Errorf("scope %q is not known; write local or global", o.Scope)
	}
	k, err := openKept(o.State)
	if err != nil {
		return nil, err
	}
	return &Plugin{o.Client, k, o.Scope}, nil
}

// Handler serves both of Docker's protocols.
func (p *Plugin) Handler() http.Handler {
	h := http.NewServeMux()
	answer(h, "/Plugin.Activate", func(context.Context, *nothing) (any, error) {
		return map[string][]string{"Implements": {"NetworkDriver", "IpamDriver"}}, nil
	})
	answer(h, "/NetworkDriver.GetCapabilities", func(context.Context, *nothing) (any, error) {
		return &capabilities{Scope: p.scope, ConnectivityScope: scopeGlobal}, nil
	})
	answer(h, "/NetworkDriver.CreateNetwork", p.createNetwork)
	answer(h, "/NetworkDriver.DeleteNetwork", p.deleteNetwork)
	answer(h, "/NetworkDriver.CreateEndpoint", p.createEndpoint)
	answer(h, "/NetworkDriver.DeleteEndpoint", p.deleteEndpoint)
	answer(h, "/NetworkDriver.EndpointOperInfo", p.endpointInfo)
	answer(h, "/NetworkDriver.Join", p.join)
	answer(h, "/NetworkDriver.Leave", p.leave)
	for _, path := range []string{
		"/NetworkDriver.DiscoverNew", "/NetworkDriver.DiscoverDelete",
		"/NetworkDriver.ProgramExternalConnectivity", "/NetworkDriver.RevokeExternalConnectivity",
	} {
		answer(h, path, func(context.Context, *nothing) (any, error) { return nothing{}, nil }) // nothing of it is this driver's
	}
	answer(h, "/NetworkDriver.AllocateNetwork", p.allocateNetwork)
	answer(h, "/NetworkDriver.FreeNetwork", p.freeNetwork)

	answer(h, "/IpamDriver.GetCapabilities", func(context.Context, *nothing) (any, error) {
		return &ipamCapabilities{}, nil
	})
	answer(h, "/IpamDriver.GetDefaultAddressSpaces", func(context.Context, *nothing) (any, error) {
		return &addressSpaces{LocalDefaultAddressSpace: "vrouter", GlobalDefaultAddressSpace: "vrouter"}, nil
	})
	answer(h, "/IpamDriver.RequestPool", p.requestPool)
	answer(h, "/IpamDriver.ReleasePool", func(context.Context, *nothing) (any, error) { return nothing{}, nil })
	answer(h, "/IpamDriver.RequestAddress", p.requestAddress)
	answer(h, "/IpamDriver.ReleaseAddress", p.releaseAddress)
	return h
}
