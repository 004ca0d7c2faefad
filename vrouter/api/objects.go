package api

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"windtunnel/vrouter/model"
)

// Node is a node with what is known of its agent.
type Node struct {
	model.Node
	Ports int    `json:"ports"`
	Agent *Agent `json:"agent,omitempty"` // nil: none is known to run
	// Gone: its lease is over, and the others have dropped its routes.
	Gone bool `json:"gone,omitempty"`
}

// Agent is what a node's agent says of itself.
type Agent struct {
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
}

// PortChange changes a port; what is nil stays.
type PortChange struct {
	Attach       *model.Attachment `json:"attach,omitempty"` // where it is; an empty one: nowhere
	Policies     *[]string         `json:"policies,omitempty"`
	AllowSources *[]netip.Prefix   `json:"allow_sources,omitempty"`
	Bandwidth    *model.Bandwidth  `json:"bandwidth,omitempty"`
}

// Networks asks for the fleet's networks, by name. So do the others for theirs.
func (c *Client) Networks(ctx context.Context) ([]model.Network, error) {
	return rows[model.Network](ctx, c, "networks", 0)
}

// AddNetwork makes a network; what is left open is chosen.
func (c *Client) AddNetwork(ctx context.Context, n model.Network) (model.Network, error) {
	return call[model.Network](ctx, c, http.MethodPost, "/v1/networks", n)
}

// PutNetwork changes a network.
func (c *Client) PutNetwork(ctx context.Context, n model.Network) (model.Network, error) {
	return call[model.Network](ctx, c, http.MethodPut, at("networks", n.Name), n)
}

// DeleteNetwork takes away a network that has no ports.
func (c *Client) DeleteNetwork(ctx context.Context, name string) error {
	return c.delete(ctx, at("networks", name))
}

// Nodes asks for nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	return rows[Node](ctx, c, "nodes", 0)
}

// PutNode makes a node known, or changes it.
func (c *Client) PutNode(ctx context.Context, n model.Node) error {
	return c.put(ctx, at("nodes", n.Name), n)
}

// DeleteNode declares a node gone for good, and its ports with it if asked to.
func (c *Client) DeleteNode(ctx context.Context, name string, withPorts bool) error {
	path := at("nodes", name)
	if withPorts {
		path += "?ports=true"
	}
	return c.delete(ctx, path)
}

// Policies asks for policies.
func (c *Client) Policies(ctx context.Context) ([]model.Policy, error) {
	return rows[model.Policy](ctx, c, "policies", 0)
}

// PutPolicy makes or changes a policy.
func (c *Client) PutPolicy(ctx context.Context, p model.Policy) error {
	return c.put(ctx, at("policies", p.Name), p)
}

// DeletePolicy takes away a policy that nobody has.
func (c *Client) DeletePolicy(ctx context.Context, name string) error {
	return c.delete(ctx, at("policies", name))
}

// Gateways asks for gateways.
func (c *Client) Gateways(ctx context.Context) ([]model.Gateway, error) {
	return rows[model.Gateway](ctx, c, "gateways", 0)
}

// PutGateway makes or changes a gateway.
func (c *Client) PutGateway(ctx context.Context, g model.Gateway) error {
	return c.put(ctx, at("gateways", g.Name), g)
}

// DeleteGateway takes away a gateway that no route leads through.
func (c *Client) DeleteGateway(ctx context.Context, name string) error {
	return c.delete(ctx, at("gateways", name))
}

// StaticRoutes asks for the static routes of the desired state.
func (c *Client) StaticRoutes(ctx context.Context) ([]model.Route, error) {
	return rows[model.Route](ctx, c, "routes", 0)
}

// PutRoute makes or changes a static route.
func (c *Client) PutRoute(ctx context.Context, r model.Route) error {
	return c.put(ctx, "/v1/routes", r)
}

// DeleteRoute takes a static route away.
func (c *Client) DeleteRoute(ctx context.Context, network string, prefix netip.Prefix) error {
	return c.delete(ctx, "/v1/routes?"+url.Values{"network": {network}, "prefix": {prefix.String()}}.Encode())
}

// PortFilter asks for some ports; what is empty does not matter.
type PortFilter struct {
	Network, Node string
	Address       netip.Addr
	Origin        model.Origin
}

// Query is the filter as the API's path has it.
func (f PortFilter) Query() string {
	q := url.Values{}
	for key, value := range map[string]string{"network": f.Network, "node": f.Node, "origin": string(f.Origin)} {
		if value != "" {
			q.Set(key, value)
		}
	}
	if f.Address.IsValid() {
		q.Set("address", f.Address.String())
	}
	return q.Encode()
}

// Ports asks for the fleet's ports, by name.
func (c *Client) Ports(ctx context.Context, f PortFilter) ([]model.Port, error) {
	return rows[model.Port](ctx, c, "ports?"+f.Query(), 0)
}

// Port asks for one port, with what its workload has.
func (c *Client) Port(ctx context.Context, name string) (Port, error) {
	return call[Port](ctx, c, http.MethodGet, at("ports", name), nil)
}

// ChangePort changes a port. Where it is told its place on this node, it
// forwards when this returns.
func (c *Client) ChangePort(ctx context.Context, name string, change PortChange) (Port, error) {
	return call[Port](ctx, c, http.MethodPatch, at("ports", name), change)
}

func at(kind, name string) string { return "/v1/" + kind + "/" + url.PathEscape(name) }

func (c *Client) put(ctx context.Context, path string, object any) error {
	_, err := call[struct{}](ctx, c, http.MethodPut, path, object)
	return err
}

func (c *Client) delete(ctx context.Context, path string) error {
	_, err := call[struct{}](ctx, c, http.MethodDelete, path, nil)
	return err
}
