package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"windtunnel/vrouter/bgp"
	"windtunnel/vrouter/model"
)

// Node is a node and its agent.
type Node struct {
	model.Node
	Ports int    `json:"ports"`
	Agent *Agent `json:"agent,omitempty"` // nil: no agent runs
	// Gone: the lease of the node's agent has expired, and the other nodes have
	// removed their routes to this node.
	Gone bool `json:"gone,omitempty"`
}

// Agent is the record of a running agent.
type Agent struct {
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
}

// PortChange changes a port. Nil fields stay as they are.
type PortChange struct {
	Attach       *model.Attachment `json:"attach,omitempty"` // an empty one detaches the port
	Policies     *[]string         `json:"policies,omitempty"`
	AllowSources *[]netip.Prefix   `json:"allow_sources,omitempty"`
	Bandwidth    *model.Bandwidth  `json:"bandwidth,omitempty"`
}

// Networks returns the fleet's networks, sorted by name.
func (c *Client) Networks(ctx context.Context) ([]model.Network, error) {
	return rows[model.Network](ctx, c, "networks", 0)
}

// AddNetwork adds a network. It allocates the id and the VNI if they are 0.
func (c *Client) AddNetwork(ctx context.Context, n model.Network) (model.Network, error) {
	return call[model.Network](ctx, c, http.MethodPost, "/v1/networks", n)
}

// ChangeNetwork changes the fields of a network that differ between was and now. The other fields keep the values that
// they have in the store, also if another client has changed them since.
func (c *Client) ChangeNetwork(ctx context.Context, was, now model.Network) (model.Network, error) {
	old, err := json.Marshal(was)
	if err != nil {
		return now, err
	}
	new, err := json.Marshal(now)
	if err != nil {
		return now, err
	}
	patch, err := jsonpatch.CreateMergePatch(old, new)
	if err != nil {
		return now, err
	}
	return call[model.Network](ctx, c, http.MethodPatch, at("networks", was.Name), json.RawMessage(patch))
}

// DeleteNetwork deletes a network that has no ports.
func (c *Client) DeleteNetwork(ctx context.Context, name string) error {
	return c.delete(ctx, at("networks", name))
}

// Nodes returns the fleet's nodes, sorted by name.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	return rows[Node](ctx, c, "nodes", 0)
}

// NodeRequest adds or changes a node.
type NodeRequest struct {
	model.Node
	// FromPool: a node without a locator gets a free one from the pool settings.locators.
	FromPool bool `json:"locator_from_pool,omitempty"`
}

// PutNode adds or changes a node.
func (c *Client) PutNode(ctx context.Context, r NodeRequest) error {
	return c.put(ctx, at("nodes", r.Name), r)
}

// BGPRequest changes the BGP of a node. BGP nil: the node has none.
type BGPRequest struct {
	Node string     `json:"node"`
	BGP  *model.BGP `json:"bgp"`
}

// PutBGP changes the BGP of a node.
func (c *Client) PutBGP(ctx context.Context, r BGPRequest) error { return c.put(ctx, "/v1/bgp", r) }

// BGPNeighbors returns the states of the node's BGP sessions.
func (c *Client) BGPNeighbors(ctx context.Context) ([]bgp.Neighbor, error) {
	return rows[bgp.Neighbor](ctx, c, "bgp/neighbors", 0)
}

// BGPPaths returns the paths that the node's neighbours announce, or those that the node announces.
func (c *Client) BGPPaths(ctx context.Context, announced bool) ([]bgp.Verdict, error) {
	return rows[bgp.Verdict](ctx, c, fmt.Sprintf("bgp/rib?announced=%t", announced), 0)
}

// DeleteNode deletes a node, and with withPorts its ports.
func (c *Client) DeleteNode(ctx context.Context, name string, withPorts bool) error {
	path := at("nodes", name)
	if withPorts {
		path += "?ports=true"
	}
	return c.delete(ctx, path)
}

// Policies returns the fleet's policies, sorted by name.
func (c *Client) Policies(ctx context.Context) ([]model.Policy, error) {
	return rows[model.Policy](ctx, c, "policies", 0)
}

// PutPolicy adds or changes a policy.
func (c *Client) PutPolicy(ctx context.Context, p model.Policy) error {
	return c.put(ctx, at("policies", p.Name), p)
}

// DeletePolicy deletes a policy that no network or port uses.
func (c *Client) DeletePolicy(ctx context.Context, name string) error {
	return c.delete(ctx, at("policies", name))
}

// Gateways returns the fleet's gateways, sorted by name.
func (c *Client) Gateways(ctx context.Context) ([]model.Gateway, error) {
	return rows[model.Gateway](ctx, c, "gateways", 0)
}

// PutGateway adds or changes a gateway.
func (c *Client) PutGateway(ctx context.Context, g model.Gateway) error {
	return c.put(ctx, at("gateways", g.Name), g)
}

// DeleteGateway deletes a gateway that no route uses.
func (c *Client) DeleteGateway(ctx context.Context, name string) error {
	return c.delete(ctx, at("gateways", name))
}

// StaticRoutes returns the static routes of the desired state.
func (c *Client) StaticRoutes(ctx context.Context) ([]model.Route, error) {
	return rows[model.Route](ctx, c, "routes", 0)
}

// PutRoute adds or changes a static route.
func (c *Client) PutRoute(ctx context.Context, r model.Route) error {
	return c.put(ctx, "/v1/routes", r)
}

// DeleteRoute deletes a static route.
func (c *Client) DeleteRoute(ctx context.Context, network string, prefix netip.Prefix) error {
	return c.delete(ctx, "/v1/routes?"+url.Values{"network": {network}, "prefix": {prefix.String()}}.Encode())
}

// PortFilter selects ports. Empty fields select all.
type PortFilter struct {
	Network, Node string
	Address       netip.Addr
	Origin        model.Origin
}

// Query returns the filter as the query of a URL.
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

// Ports returns the selected ports of the fleet, sorted by name.
func (c *Client) Ports(ctx context.Context, f PortFilter) ([]model.Port, error) {
	return rows[model.Port](ctx, c, "ports?"+f.Query(), 0)
}

// Port returns one port with the settings of its workload.
func (c *Client) Port(ctx context.Context, name string) (Port, error) {
	return call[Port](ctx, c, http.MethodGet, at("ports", name), nil)
}

// ChangePort changes a port. If it attaches the port to this node, the port
// forwards when ChangePort returns.
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
