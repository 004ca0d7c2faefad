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

// Keys of --opt.
const (
	optGeneric = "com.docker.network.generic"
	optNetwork = "network" // the virtual network's name
	optTenant  = "tenant"
	optPolicy  = "policy" // policy of a new virtual network
)

// createNetwork stores the virtual network of a docker network on this host.
func (p *Plugin) createNetwork(ctx context.Context, r *networkRequest) (any, error) {
	given, _ := r.Options[optGeneric].(map[string]any) // of --opt
	n, err := p.networkFor(ctx, r, given)
	if err != nil {
		return nil, err
	}
	return nothing{}, p.kept.set(r.NetworkID, dockerNetwork{*n})
}

// allocateNetwork handles a call on a swarm's manager, which comes before the
// calls that allocate addresses. Docker passes the returned options to the
// hosts.
func (p *Plugin) allocateNetwork(ctx context.Context, r *networkRequest) (any, error) {
	n, err := p.networkFor(ctx, r, r.Options)
	if err != nil {
		return nil, err
	}
	return answer{"Options": r.Options}, p.kept.set(inSwarm(r.NetworkID), dockerNetwork{*n})
}

// inSwarm returns the key under which a manager stores a swarm's network. It
// differs from the id, since the manager's host may store a docker network with
// that id.
func inSwarm(id string) string { return "swarm:" + id }

// networkFor finds or creates the virtual network that the given options name.
func (p *Plugin) networkFor(ctx context.Context, r *networkRequest, given map[string]any) (*model.Network, error) {
	options := map[string]string{}
	for key, value := range given {
		options[key] = fmt.Sprint(value)
	}
	name := options[optNetwork]
	if name == "" {
		return nil, errors.New("the virtual network is missing: give --opt network=NAME")
	}
	for key := range options {
		if !slices.Contains([]string{optNetwork, optTenant, optPolicy}, key) {
			return nil, fmt.Errorf("unknown --opt %s; the options are network, tenant and policy", key)
		}
	}
	subnets, err := subnetsOf(slices.Concat(r.IPv4Data, r.IPv6Data))
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
		if api.IsConflict(err) { // another host may have just created it
			if there, err2 := p.find(ctx, wanted); there != nil || err2 != nil {
				found, err = there, err2
			}
		}
	}
	return found, err
}

// find finds a virtual network by name; nil: no such network. It returns an
// error if the tenant or the subnets differ from the wanted ones.
func (p *Plugin) find(ctx context.Context, wanted model.Network) (*model.Network, error) {
	all, err := p.client.Networks(ctx)
	at := slices.IndexFunc(all, func(n model.Network) bool { return n.Name == wanted.Name })
	if err != nil || at < 0 {
		return nil, err
	}
	return &all[at], matches(all[at], wanted.Tenant, wanted.Subnets)
}

// subnetsOf returns the subnets of a docker network. Their gateways must be the
// router's addresses: the first address of each subnet.
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
			return nil, fmt.Errorf("--gateway %s: the gateway of subnet %s must be its first address, %s; remove --gateway", g.Addr(), s, model.GatewayAddress(s))
		}
		subnets = append(subnets, s)
	}
	return subnets, nil
}

// matches checks the tenant and the subnets of an existing virtual network.
func matches(n model.Network, tenant string, subnets []netip.Prefix) error {
	if tenant != "" && tenant != n.Tenant {
		return fmt.Errorf("network %q belongs to tenant %q, not to %q", n.Name, n.Tenant, tenant)
	}
	for _, s := range subnets {
		if !slices.Contains(n.Subnets, s) {
			return fmt.Errorf("network %q has the subnets %v, not %s; give one of them with --subnet", n.Name, n.Subnets, s)
		}
	}
	return nil
}

// deleteNetwork handles a call on a host. In a swarm, Docker makes the call
// when the host has no more containers in the network.
func (p *Plugin) deleteNetwork(ctx context.Context, r *networkRequest) (any, error) {
	return p.drop(ctx, r.NetworkID)
}

// freeNetwork handles a call on a swarm's manager. Containers on hosts may
// still be stopping.
func (p *Plugin) freeNetwork(ctx context.Context, r *networkRequest) (any, error) {
	return p.drop(ctx, inSwarm(r.NetworkID))
}

// drop deletes the record of a docker network. It also deletes the virtual
// network if Docker created that network, no port uses it and it has no
// policies. If another host still needs the network, addPort creates it again.
// It could not create the policies again that someone has set since.
func (p *Plugin) drop(ctx context.Context, id string) (any, error) {
	n, err := p.kept.network(id)
	if err != nil {
		return nothing{}, nil // already deleted
	}
	if n.Network.Origin == model.Docker {
		now, err := p.find(ctx, n.Network)
		isOurs := now != nil && err == nil && now.Origin == model.Docker
		if isOurs && len(now.Policies) == 0 {
			err = p.client.DeleteNetwork(ctx, now.Name)
		}
		if (now == nil || isOurs) && err != nil && !api.IsConflict(err) && !api.IsNotFound(err) && !api.IsForbidden(err) {
			return nil, err
		}
	}
	return nothing{}, p.kept.forget(id)
}

// addPort adds a port. If another host has deleted the network with its last port,
// addPort creates it again.
func (p *Plugin) addPort(ctx context.Context, r model.PortRequest) (api.Port, error) {
	port, err := p.client.AddPort(ctx, r)
	n, known := p.kept.byName(r.Network)
	if !api.IsNotFound(err) || !known || n.Network.Origin != model.Docker {
		return port, err
	}
	if _, err := p.client.AddNetwork(ctx, n.Network); err != nil {
		return port, err
	}
	return p.client.AddPort(ctx, r)
}
