package docker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"windtunnel/vrouter/api"
	"windtunnel/vrouter/model"
)

// portName is the name of an endpoint's port.
func portName(endpoint string) string { return "docker-" + endpoint[:min(len(endpoint), 24)] }

// createEndpoint adds a port without a device. The port replaces the ports by
// which requestAddress has reserved its addresses.
func (p *Plugin) createEndpoint(ctx context.Context, r *endpointRequest) (any, error) {
	n, err := p.kept.network(r.NetworkID)
	if err != nil {
		return nil, err
	}
	request := model.PortRequest{Port: model.Port{
		Name: portName(r.EndpointID), Network: n.Network.Name, Origin: model.Docker, Owner: r.EndpointID,
	}}
	given := endpointInterface{}
	if r.Interface != nil {
		given = *r.Interface
	}
	for _, text := range []string{given.Address, given.AddressIPv6} {
		if text == "" {
			continue
		}
		a, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", text, err)
		}
		request.IPs = append(request.IPs, a.Addr())
		held, err := p.reservation(ctx, n.Network.Name, a.Addr())
		if err != nil {
			return nil, err
		}
		if held != nil {
			request.Replaces = append(request.Replaces, held.Name)
		}
	}
	if given.MacAddress != "" {
		if request.MAC, err = model.ParseMAC(given.MacAddress); err != nil {
			return nil, err
		}
	}
	port, err := p.addPort(ctx, request)
	if api.IsConflict(err) {
		return nil, fmt.Errorf("%w. Docker has allocated the address; let the fleet allocate it: docker network create --driver vrouter --ipam-driver vrouter …", err)
	}
	if err != nil {
		return nil, err
	}
	// The answer must omit values that Docker has sent, else Docker refuses it.
	var chosen endpointInterface
	if given.MacAddress == "" {
		chosen.MacAddress = port.MAC.String()
	}
	for _, a := range port.Prefixes {
		switch {
		case a.Addr().Is4() && given.Address == "":
			chosen.Address = a.String()
		case a.Addr().Is6() && given.AddressIPv6 == "":
			chosen.AddressIPv6 = a.String()
		}
	}
	return answer{"Interface": chosen}, nil
}

func (p *Plugin) deleteEndpoint(ctx context.Context, r *endpointRequest) (any, error) {
	removePair(r.EndpointID)
	return nothing{}, p.client.EnsureNoPort(ctx, portName(r.EndpointID))
}

func (p *Plugin) endpointInfo(ctx context.Context, r *endpointRequest) (any, error) {
	port, err := p.client.Port(ctx, portName(r.EndpointID))
	if err != nil {
		return nil, err
	}
	return answer{"Value": answer{"vrouter.network": port.Network, "vrouter.port": port.Name, "vrouter.device": port.Device}}, nil
}

// join creates the veth pair and attaches the port to its host end. Docker moves
// the other end into the container.
func (p *Plugin) join(ctx context.Context, r *endpointRequest) (any, error) {
	port, err := p.client.Port(ctx, portName(r.EndpointID))
	if err != nil {
		return nil, err
	}
	host, inside, err := makePair(r.EndpointID, port.MAC)
	if err != nil {
		return nil, err
	}
	attached, err := p.client.ChangePort(ctx, port.Name, api.PortChange{Attach: &model.Attachment{Device: host}})
	if err == nil {
		err = setMTU(attached.MTU, host, inside)
	}
	if err != nil {
		removePair(r.EndpointID)
		return nil, err
	}
	response := answer{"InterfaceName": answer{"SrcName": inside, "DstPrefix": "eth"}}
	for _, g := range attached.Gateways {
		if g.Is4() {
			response["Gateway"] = g.String()
		} else {
			response["GatewayIPv6"] = g.String()
		}
	}
	return response, nil
}

// refusePublished refuses the ports of docker run --publish: this driver does not translate
// packets to the host's addresses.
func (p *Plugin) refusePublished(_ context.Context, r *externalRequest) (any, error) {
	if published := r.Options.Published; len(published) > 0 {
		return nil, fmt.Errorf("--publish: port %d: a vrouter network publishes no ports on the host; start the container without --publish and reach its address in the virtual network, or connect it to a bridge network too", published[0].Port)
	}
	return nothing{}, nil
}

// leave deletes the veth pair. The port and its addresses stay until the endpoint
// is deleted.
func (p *Plugin) leave(ctx context.Context, r *endpointRequest) (any, error) {
	_, err := p.client.ChangePort(ctx, portName(r.EndpointID), api.PortChange{Attach: &model.Attachment{}})
	if api.IsNotFound(err) {
		err = nil
	}
	return nothing{}, errors.Join(err, removePair(r.EndpointID))
}
