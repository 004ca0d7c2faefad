package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/service"
)

// Client is a client of the agent at one socket. Several goroutines can use it at
// the same time.
type Client struct {
	socket string
	http   *http.Client
}

// Dial makes a client for the agent at a socket. The first request connects, and
// fails if no agent runs.
func Dial(socket string) *Client {
	var dialer net.Dialer
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}}
}

// Within sets the time limit of each request, including the time to read the
// answer; 0: no limit. Without a limit a request to a stopped agent process
// would never return, since the kernel accepts its connections.
func (c *Client) Within(d time.Duration) *Client {
	c.http.Timeout = d
	return c
}

// Socket is the path that the client speaks to.
func (c *Client) Socket() string { return c.socket }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status returns the state of the agent.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// State returns the desired state of the whole fleet.
func (c *Client) State(ctx context.Context) (model.State, error) {
	return call[model.State](ctx, c, http.MethodGet, "/v1/state", nil)
}

// KnownState returns the desired state as the agent knows it, without reading the store. It has
// all ports of the networks that have ports on this node, and may lack the ports of the others.
func (c *Client) KnownState(ctx context.Context) (model.State, error) {
	return call[model.State](ctx, c, http.MethodGet, "/v1/state?known=true", nil)
}

// PutState replaces the desired state. An invalid state changes nothing.
func (c *Client) PutState(ctx context.Context, s model.State) (Applied, error) {
	return call[Applied](ctx, c, http.MethodPut, "/v1/state", s)
}

// AddPort adds a port and returns it once it forwards.
func (c *Client) AddPort(ctx context.Context, p model.PortRequest) (Port, error) {
	return call[Port](ctx, c, http.MethodPost, "/v1/ports", p)
}

// DeletePort deletes a port.
func (c *Client) DeletePort(ctx context.Context, name string) (Applied, error) {
	return call[Applied](ctx, c, http.MethodDelete, "/v1/ports/"+url.PathEscape(name), nil)
}

// EnsureNoPort deletes a port. A missing port is not an error.
func (c *Client) EnsureNoPort(ctx context.Context, name string) error {
	_, err := c.DeletePort(ctx, name)
	if IsNotFound(err) {
		return nil
	}
	return err
}

// Vifs returns the vifs of a VRF; vrf 0: of all VRFs.
func (c *Client) Vifs(ctx context.Context, vrf uint32) ([]inspect.Vif, error) {
	return rows[inspect.Vif](ctx, c, "vif", vrf)
}

// Nexthops returns the nexthops of a VRF; vrf 0: of all VRFs.
func (c *Client) Nexthops(ctx context.Context, vrf uint32) ([]inspect.Nexthop, error) {
	return rows[inspect.Nexthop](ctx, c, "nh", vrf)
}

// Routes returns the routes of a VRF; vrf 0: of all VRFs.
func (c *Client) Routes(ctx context.Context, vrf uint32) ([]inspect.Route, error) {
	return rows[inspect.Route](ctx, c, "rt", vrf)
}

// Bridge returns the bridge entries of a VRF; vrf 0: of all VRFs.
func (c *Client) Bridge(ctx context.Context, vrf uint32) ([]inspect.Bridge, error) {
	return rows[inspect.Bridge](ctx, c, "bridge", vrf)
}

// Labels returns the ILM of a VRF; vrf 0: of all VRFs.
func (c *Client) Labels(ctx context.Context, vrf uint32) ([]inspect.Target, error) {
	return rows[inspect.Target](ctx, c, "mpls", vrf)
}

// VNIs returns the VNIs of a VRF; vrf 0: of all VRFs.
func (c *Client) VNIs(ctx context.Context, vrf uint32) ([]inspect.Target, error) {
	return rows[inspect.Target](ctx, c, "vxlan", vrf)
}

// Flows returns the flows of a VRF; vrf 0: of all VRFs.
func (c *Client) Flows(ctx context.Context, vrf uint32) ([]inspect.Flow, error) {
	return rows[inspect.Flow](ctx, c, "flow", vrf)
}

// Drops returns the drop counters.
func (c *Client) Drops(ctx context.Context) ([]inspect.Drop, error) {
	return rows[inspect.Drop](ctx, c, "dropstats", 0)
}

// DropLog returns the latest dropped packets, oldest first.
func (c *Client) DropLog(ctx context.Context) ([]inspect.DropEvent, error) {
	return rows[inspect.DropEvent](ctx, c, "droplog", 0)
}

// VRFStats returns the counters of networks.
func (c *Client) VRFStats(ctx context.Context) ([]inspect.VRFStats, error) {
	return rows[inspect.VRFStats](ctx, c, "vrfstats", 0)
}

// Fallbacks returns the counters of packets that direct cannot carry.
func (c *Client) Fallbacks(ctx context.Context) ([]inspect.Fallback, error) {
	return rows[inspect.Fallback](ctx, c, "fallbackstats", 0)
}

// Services returns the services in the data path.
func (c *Client) Services(ctx context.Context) ([]service.Service, error) {
	return rows[service.Service](ctx, c, "service", 0)
}

// Trace runs a test packet through the tables. No packet is sent.
func (c *Client) Trace(ctx context.Context, r TraceRequest) (inspect.Trace, error) {
	return call[inspect.Trace](ctx, c, http.MethodPost, "/v1/trace", r)
}

// Doctor returns the agent's findings about its host.
func (c *Client) Doctor(ctx context.Context) ([]Finding, error) {
	return rows[Finding](ctx, c, "doctor", 0)
}

// Shutdown stops the agent. Packets keep flowing unless the request removes
// everything.
func (c *Client) Shutdown(ctx context.Context, r ShutdownRequest) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/shutdown", r)
	return err
}

// Metrics returns the metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	response, err := c.do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read the agent's metrics at %s: %w", c.socket, err)
	}
	return string(text), nil
}

// rows fetches a list. An empty list is not nil, so that its JSON is [].
func rows[T any](ctx context.Context, c *Client, what string, vrf uint32) ([]T, error) {
	path := "/v1/" + what
	if vrf != 0 {
		path += "?vrf=" + strconv.FormatUint(uint64(vrf), 10)
	}
	all, err := call[[]T](ctx, c, http.MethodGet, path, nil)
	if err == nil && all == nil {
		all = []T{}
	}
	return all, err
}

// call sends a request and decodes the JSON answer. It sends body as JSON,
// unless body is nil.
func call[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var answer T
	response, err := c.do(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		if isTimeout(err) {
			return answer, c.unreachable(ctx, err)
		}
		return answer, fmt.Errorf("read the agent's answer to %s %s: %w; agent and command may have different versions, see `vrouter status`", method, path, err)
	}
	return answer, nil
}

// do sends a request. An answer with an error status is an *Error.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request %s %s: %w", method, path, err)
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://vrouter"+path, reader)
	if err != nil {
		return nil, fmt.Errorf("request %s %s: %w", method, path, err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	return response, nil
}
