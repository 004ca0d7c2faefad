package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// Options of RequestAddress.
const (
	optRequestType = "RequestAddressType"
	requestGateway = "com.docker.network.gateway"
)

// pool is a subnet of a virtual network, or a part of it, from which addresses are
// allocated. Its text is the pool id for Docker.
type pool struct {
	network      string
	subnet, part netip.Prefix // part is zero for the whole subnet
}

func (p pool) String() string {
	text := p.network + "|" + p.subnet.String()
	if p.part.IsValid() {
		text += "|" + p.part.String()
	}
	return text
}

func parsePool(text string) (p pool, err error) {
	parts := strings.Split(text, "|")
	if len(parts) < 2 || len(parts) > 3 {
		return p, fmt.Errorf("%q is not a pool of vrouter", text)
	}
	p.network = parts[0]
	if p.subnet, err = netip.ParsePrefix(parts[1]); err == nil && len(parts) == 3 {
		p.part, err = netip.ParsePrefix(parts[2])
	}
	if err != nil {
		return p, fmt.Errorf("%q is not a pool of vrouter: %w", text, err)
	}
	return p, nil
}

// requestPool finds the virtual network that allocates a docker network's
// addresses. That is the network of --ipam-opt network=NAME, else the only
// network with the subnet. Docker calls it before it creates the network.
func (p *Plugin) requestPool(ctx context.Context, r *requestPoolRequest) (any, error) {
	all, err := p.client.Networks(ctx)
	if err != nil {
		return nil, err
	}
	name := r.Options[optNetwork]
	var subnet netip.Prefix
	if r.Pool != "" {
		if subnet, err = netip.ParsePrefix(r.Pool); err != nil {
			return nil, fmt.Errorf("--subnet %q: %w", r.Pool, err)
		}
		subnet = subnet.Masked()
	}
	found := slices.DeleteFunc(all, func(n model.Network) bool {
		return name != "" && n.Name != name || subnet.IsValid() && !slices.Contains(n.Subnets, subnet)
	})
	switch {
	case len(found) == 0 && name != "" && subnet.IsValid():
		// createNetwork creates the network later.
		return answerPool(pool{network: name, subnet: subnet}, r)
	case len(found) == 0:
		return nil, errors.New("no virtual network has this subnet; give --subnet and --ipam-opt network=NAME with the name of --opt, or create the network first with `vrouter network create`")
	case len(found) > 1:
		return nil, fmt.Errorf("%d virtual networks match: select one with --ipam-opt network=NAME", len(found))
	}
	if !subnet.IsValid() {
		at := slices.IndexFunc(found[0].Subnets, func(s netip.Prefix) bool { return s.Addr().Is6() == r.V6 })
		if at < 0 {
			return nil, fmt.Errorf("network %q has no subnet of the requested address family; give --subnet", found[0].Name)
		}
		subnet = found[0].Subnets[at]
	}
	return answerPool(pool{network: found[0].Name, subnet: subnet}, r)
}

func answerPool(p pool, r *requestPoolRequest) (any, error) {
	if r.SubPool != "" {
		part, err := netip.ParsePrefix(r.SubPool)
		if err != nil {
			return nil, fmt.Errorf("--ip-range %q: %w", r.SubPool, err)
		}
		p.part = part.Masked()
	}
	return answer{"PoolID": p.String(), "Pool": p.subnet.String()}, nil
}

// reserved is the owner of a port that reserves an address until Docker creates
// the endpoint.
const reserved = "reserved"

// holder returns Docker's port with an address; nil: no such port.
func (p *Plugin) holder(ctx context.Context, network string, a netip.Addr) (*model.Port, error) {
	ports, err := p.client.Ports(ctx, api.PortFilter{Network: network, Address: a})
	if err != nil || len(ports) == 0 || ports[0].Origin != model.Docker {
		return nil, err
	}
	return &ports[0], nil
}

// reservation returns the port that reserves an address for a later endpoint;
// nil: no such port.
func (p *Plugin) reservation(ctx context.Context, network string, a netip.Addr) (*model.Port, error) {
	port, err := p.holder(ctx, network, a)
	if err != nil || port == nil || port.Owner != reserved {
		return nil, err
	}
	return port, nil
}

// requestAddress allocates an address. For the gateway it returns the router's
// address.
func (p *Plugin) requestAddress(ctx context.Context, r *addressRequest) (any, error) {
	from, err := parsePool(r.PoolID)
	if err != nil {
		return nil, err
	}
	full := func(a netip.Addr) any {
		return answer{"Address": netip.PrefixFrom(a, from.subnet.Bits()).String()}
	}
	if r.Options[optRequestType] == requestGateway {
		return full(model.GatewayAddress(from.subnet)), nil
	}
	request := model.PortRequest{
		Port: model.Port{Network: from.network, Origin: model.Docker, Owner: reserved},
		From: []model.Range{model.RangeOf(from.subnet)}, Four: from.subnet.Addr().Is4(), Six: from.subnet.Addr().Is6(),
	}
	if from.part.IsValid() {
		request.From = []model.Range{model.RangeOf(from.part)}
	}
	if r.Address != "" {
		a, err := netip.ParseAddr(r.Address)
		if err != nil {
			return nil, fmt.Errorf("--ip %q: %w", r.Address, err)
		}
		if p.scope == scopeGlobal {
			// In a swarm, several hosts request the same address: the manager,
			// the container's host, and a new manager.
			if is, err := p.holder(ctx, from.network, a); is != nil || err != nil {
				return full(a), err
			}
		}
		request.IPs = []netip.Addr{a}
	}
	port, err := p.addPort(ctx, request)
	if err != nil {
		return nil, err
	}
	return full(port.IPs[0]), nil
}

// releaseAddress frees an address that no endpoint uses.
func (p *Plugin) releaseAddress(ctx context.Context, r *addressRequest) (any, error) {
	from, err := parsePool(r.PoolID)
	if err != nil {
		return nil, err
	}
	a, err := netip.ParseAddr(r.Address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", r.Address, err)
	}
	port, err := p.reservation(ctx, from.network, a)
	if err != nil || port == nil {
		return nothing{}, err
	}
	return nothing{}, p.client.EnsureNoPort(ctx, port.Name)
}
