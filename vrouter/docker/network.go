package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// Options that a person gives with --opt.
const (
	optGeneric = "com.docker.network.generic"
	optNetwork = "network" // the virtual network's name
	optTenant  = "tenant"
	optPolicy  = "policy" // of a network that is made
)

// createNetwork notes which virtual network a docker network on this host stands
// for.
func (p *Plugin) createNetwork(ctx context.Context, r *createNetworkRequest) (any, error) {
	n, err := p.networkFor(ctx, generic(r.Options), slices.Concat(r.IPv4Data, r.IPv6Data))
	if err != nil {
		return nil, err
	}
	return nothing{}, p.kept.set(r.NetworkID, dockerNetwork{*n})
}

// allocateNetwork is asked of a swarm's manager, before it chooses addresses and
// long before a host has a container in the network. The options go to the hosts.
func (p *Plugin) allocateNetwork(ctx context.Context, r *allocateNetworkRequest) (any, error) {
	n, err := p.networkFor(ctx, r.Options, slices.Concat(r.IPv4Data, r.IPv6Data))
	if err != nil {
		return nil, err
	}
	return &allocateNetworkResponse{Options: r.Options}, p.kept.set(inSwarm(r.NetworkID), dockerNetwork{*n})
}

// inSwarm is under what a swarm's network is noted; a host may have one of the
// same id.
func inSwarm(id string) string { return "swarm:" + id }

// networkFor finds the virtual network that options name, or makes it.
func (p *Plugin) networkFor(ctx context.Context, options map[string]string, data []ipamData) (*model.Network, error) {
	name := options[optNetwork]
	if name == "" {
		return nil, errors.New("name the virtual network: --opt network=NAME")
	}
	for key := range options {
		if !slices.Contains([]string{optNetwork, optTenant, optPolicy}, key) {
			return nil, fmt.Errorf("--opt %s is not known; there are network, tenant and policy", key)
		}
	}
	subnets, err := subnetsOf(data)
	if err != nil {
		return nil, err
	}
	wanted := model.Network{Name: name, Tenant: options[optTenant], Subnets: subnets, Origin: model.Docker}
	if policy := options[optPolicy]; policy != "" {
		wanted.Policies = []string{policy}
	}
	found, err := p.find(ctx, wanted)
	if err == nil && found == nil {
		_, err = p.client.AddNetwork(ctx, wanted)
		found = &wanted
		if api.IsConflict(err) { // another host may have made it at this moment
			if there, err2 := p.find(ctx, wanted); there != nil || err2 != nil {
				found, err = there, err2
			}
		}
	}
	return found, err
}

// find looks for the virtual network that is wanted; nil where there is none of
// its name.
func (p *Plugin) find(ctx context.Context, wanted model.Network) (*model.Network, error) {
	all, err := p.client.Networks(ctx)
	at := slices.IndexFunc(all, func(n model.Network) bool { return n.Name == wanted.Name })
	if err != nil || at < 0 {
		return nil, err
	}
	return &all[at], stands(all[at], wanted.Tenant, wanted.Subnets)
}

// generic are the options of --opt.
func generic(all map[string]any) map[string]string {
	options := map[string]string{}
	given, _ := all[optGeneric].(map[string]any)
	for key, value := range given {
		options[key] = fmt.Sprint(value)
	}
	return options
}

// subnetsOf are a docker network's. Its gateways are the router's, which is the
// first address of each.
func subnetsOf(data []ipamData) (subnets []netip.Prefix, err error) {
	for _, d := range data {
		s, err := netip.ParsePrefix(d.Pool)
		if err != nil {
			return nil, fmt.Errorf("--subnet %q: %w", d.Pool, err)
		}
		s = s.Masked()
		if s.Bits() == 0 {
			return nil, errors.New("give the network a subnet: --subnet 10.1.0.0/16")
		}
		if g, err := netip.ParsePrefix(d.Gateway); err == nil && g.Addr() != model.GatewayAddress(s) {
			return nil, fmt.Errorf("--gateway %s: the router of %s has its first address, %s; leave --gateway out", g.Addr(), s, model.GatewayAddress(s))
		}
		subnets = append(subnets, s)
	}
	return subnets, nil
}

// stands tells whether a virtual network that is there is the one that is meant.
func stands(n model.Network, tenant string, subnets []netip.Prefix) error {
	if tenant != "" && tenant != n.Tenant {
		return fmt.Errorf("network %q is tenant %q's, not %q's", n.Name, n.Tenant, tenant)
	}
	for _, s := range subnets {
		if !slices.Contains(n.Subnets, s) {
			return fmt.Errorf("network %q has the subnets %v, not %s; give one of them with --subnet", n.Name, n.Subnets, s)
		}
	}
	return nil
}

// deleteNetwork is asked of a host, of a swarm's when no container there is in the
// network (any more).
func (p *Plugin) deleteNetwork(ctx context.Context, r *networkRequest) (any, error) {
	return p.giveUp(ctx, r.NetworkID)
}

// freeNetwork is asked of a swarm's manager, while the hosts' last containers may
// be ending.
func (p *Plugin) freeNetwork(ctx context.Context, r *networkRequest) (any, error) {
	return p.giveUp(ctx, inSwarm(r.NetworkID))
}

// giveUp forgets a docker network, and takes the virtual one away where it came by
// Docker, from whichever host, and has no ports. A host that still has a docker
// network of it, and a swarm's manager, make it again with its next port.
func (p *Plugin) giveUp(ctx context.Context, id string) (any, error) {
	n, err := p.kept.network(id)
	if err != nil {
		return nothing{}, nil // it is gone already
	}
	if n.Network.Origin == model.Docker {
		err := p.client.DeleteNetwork(ctx, n.Network.Name)
		if err != nil && !api.IsConflict(err) && !api.IsNotFound(err) {
			return nil, err
		}
	}
	return nothing{}, p.kept.forget(id)
}

// addPort makes a port, and its network again where another host took that away
// with the last port in it.
func (p *Plugin) addPort(ctx context.Context, r api.PortRequest) (api.Port, error) {
	port, err := p.client.AddPort(ctx, r)
	n, known := p.kept.named(r.Network)
	if !api.IsNotFound(err) || !known || n.Network.Origin != model.Docker {
		return port, err
	}
	if _, err := p.client.AddNetwork(ctx, n.Network); err != nil {
		return port, err
	}
	return p.client.AddPort(ctx, r)
}
