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

// What Docker asks an address for.
const (
	optRequestType = "RequestAddressType"
	requestGateway = "com.docker.network.gateway"
)

// pool is a subnet of a virtual network, with the part of it that addresses are
// chosen from. Its text is Docker's id of it.
type pool struct {
	network      string
	subnet, part netip.Prefix // part is zero for all of it
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
		return p, fmt.Errorf("%q is no pool of vrouter's", text)
	}
	p.network = parts[0]
	if p.subnet, err = netip.ParsePrefix(parts[1]); err == nil && len(parts) == 3 {
		p.part, err = netip.ParsePrefix(parts[2])
	}
	if err != nil {
		return p, fmt.Errorf("%q is no pool of vrouter's: %w", text, err)
	}
	return p, nil
}

// requestPool finds the network that a docker network's addresses are of: the
// one of --ipam-opt network=NAME, else the only one that has the subnet. Docker
// asks this before it makes the network.
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
		// It will be made with the docker network.
		return answerPool(pool{network: name, subnet: subnet}, r)
	case len(found) == 0:
		return nil, errors.New("no virtual network has this subnet yet: name it with --ipam-opt network=NAME, as with --opt, and give --subnet; or make it first with `vrouter network create`")
	case len(found) > 1:
		return nil, fmt.Errorf("%d virtual networks could be meant: name one with --ipam-opt network=NAME", len(found))
	}
	if !subnet.IsValid() {
		at := slices.IndexFunc(found[0].Subnets, func(s netip.Prefix) bool { return s.Addr().Is6() == r.V6 })
		if at < 0 {
			return nil, fmt.Errorf("network %q has no subnet of that family", found[0].Name)
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
	return &requestPoolResponse{PoolID: p.String(), Pool: p.subnet.String()}, nil
}

// reserved marks a port that holds an address until an endpoint takes it over.
const reserved = "reserved"

// holder is the port of Docker's that has an address; nil where none has.
func (p *Plugin) holder(ctx context.Context, network string, a netip.Addr) (*model.Port, error) {
	ports, err := p.client.Ports(ctx, api.PortFilter{Network: network, Address: a})
	if err != nil || len(ports) == 0 || ports[0].Origin != model.Docker {
		return nil, err
	}
	return &ports[0], nil
}

// reservation is the port that holds an address for an endpoint to come; nil
// where none does.
func (p *Plugin) reservation(ctx context.Context, network string, a netip.Addr) (*model.Port, error) {
	port, err := p.holder(ctx, network, a)
	if err != nil || port == nil || port.Owner != reserved {
		return nil, err
	}
	return port, nil
}

// requestAddress gives an address out: the router's for the gateway, else one
// that nobody in the fleet has.
func (p *Plugin) requestAddress(ctx context.Context, r *requestAddressRequest) (any, error) {
	from, err := parsePool(r.PoolID)
	if err != nil {
		return nil, err
	}
	full := func(a netip.Addr) any {
		return &requestAddressResponse{Address: netip.PrefixFrom(a, from.subnet.Bits()).String()}
	}
	if r.Options[optRequestType] == requestGateway {
		return full(model.GatewayAddress(from.subnet)), nil
	}
	request := api.PortRequest{
		Port: model.Port{Network: from.network, Origin: model.Docker, Owner: reserved},
		From: []netip.Prefix{from.subnet}, Four: from.subnet.Addr().Is4(), Six: from.subnet.Addr().Is6(),
	}
	if from.part.IsValid() {
		request.From = []netip.Prefix{from.part}
	}
	if r.Address != "" {
		a, err := netip.ParseAddr(r.Address)
		if err != nil {
			return nil, fmt.Errorf("--ip %q: %w", r.Address, err)
		}
		if p.scope == scopeGlobal {
			// The manager has asked for it, and the host of the container, or the
			// next manager, asks again.
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

// releaseAddress gives an address back that no endpoint has taken over, or whose
// endpoint is gone.
func (p *Plugin) releaseAddress(ctx context.Context, r *releaseAddressRequest) (any, error) {
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
	if _, err = p.client.DeletePort(ctx, port.Name); api.IsNotFound(err) {
		err = nil
	}
	return nothing{}, err
}
