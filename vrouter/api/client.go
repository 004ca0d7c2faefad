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
)

// Client speaks to the agent behind one socket. It may be used by several
// goroutines at once.
type Client struct {
	socket string
	http   *http.Client
}

// Dial makes a client for the agent at a socket. It connects with the first
// request, so that is where an agent that is not there shows.
func Dial(socket string) *Client {
	var dialer net.Dialer
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}}}
}

// Within bounds each request, its answer included. An agent whose process is
// stopped accepts connections and never answers. 0: no bound.
func (c *Client) Within(d time.Duration) *Client {
	c.http.Timeout = d
	return c
}

// Socket is the path that the client speaks to.
func (c *Client) Socket() string { return c.socket }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks how the agent is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return call[Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// State asks for the desired state that the agent works to.
func (c *Client) State(ctx context.Context) (model.State, error) {
	return call[model.State](ctx, c, http.MethodGet, "/v1/state", nil)
}

// PutState replaces the desired state. It is refused whole when invalid.
func (c *Client) PutState(ctx context.Context, s model.State) (Applied, error) {
	return call[Applied](ctx, c, http.MethodPut, "/v1/state", s)
}

// AddPort makes a port on the agent's node and returns what its workload has,
// once it forwards.
func (c *Client) AddPort(ctx context.Context, p PortRequest) (Port, error) {
	return call[Port](ctx, c, http.MethodPost, "/v1/ports", p)
}

// DeletePort removes a port.
func (c *Client) DeletePort(ctx context.Context, name string) (Applied, error) {
	return call[Applied](ctx, c, http.MethodDelete, "/v1/ports/"+url.PathEscape(name), nil)
}

// Vifs asks for the vifs of a VRF; 0: of all. So do the others that take one.
func (c *Client) Vifs(ctx context.Context, vrf uint32) ([]inspect.Vif, error) {
	return rows[inspect.Vif](ctx, c, "vif", vrf)
}

// Nexthops asks for nexthops.
func (c *Client) Nexthops(ctx context.Context, vrf uint32) ([]inspect.Nexthop, error) {
	return rows[inspect.Nexthop](ctx, c, "nh", vrf)
}

// Routes asks for routes.
func (c *Client) Routes(ctx context.Context, vrf uint32) ([]inspect.Route, error) {
	return rows[inspect.Route](ctx, c, "rt", vrf)
}

// Bridge asks for bridge entries.
func (c *Client) Bridge(ctx context.Context, vrf uint32) ([]inspect.Bridge, error) {
	return rows[inspect.Bridge](ctx, c, "bridge", vrf)
}

// Labels asks for the ILM.
func (c *Client) Labels(ctx context.Context, vrf uint32) ([]inspect.Target, error) {
	return rows[inspect.Target](ctx, c, "mpls", vrf)
}

// VNIs asks for the VNIs.
func (c *Client) VNIs(ctx context.Context, vrf uint32) ([]inspect.Target, error) {
	return rows[inspect.Target](ctx, c, "vxlan", vrf)
}

// Flows asks for flows.
func (c *Client) Flows(ctx context.Context, vrf uint32) ([]inspect.Flow, error) {
	return rows[inspect.Flow](ctx, c, "flow", vrf)
}

// Drops asks for the drop counters.
func (c *Client) Drops(ctx context.Context) ([]inspect.Drop, error) {
	return rows[inspect.Drop](ctx, c, "dropstats", 0)
}

// DropLog asks for the last dropped packets, oldest first.
func (c *Client) DropLog(ctx context.Context) ([]inspect.DropEvent, error) {
	return rows[inspect.DropEvent](ctx, c, "droplog", 0)
}

// VRFStats asks for the networks' counters.
func (c *Client) VRFStats(ctx context.Context) ([]inspect.VRFStats, error) {
	return rows[inspect.VRFStats](ctx, c, "vrfstats", 0)
}

// Trace asks how a packet would travel. No packet is sent.
func (c *Client) Trace(ctx context.Context, r TraceRequest) (inspect.Trace, error) {
	return call[inspect.Trace](ctx, c, http.MethodPost, "/v1/trace", r)
}

// Doctor asks what the agent found about its host.
func (c *Client) Doctor(ctx context.Context) ([]Finding, error) {
	return rows[Finding](ctx, c, "doctor", 0)
}

// Shutdown ends the agent. Packets flow on unless everything is removed too.
func (c *Client) Shutdown(ctx context.Context, r ShutdownRequest) error {
	_, err := call[struct{}](ctx, c, http.MethodPost, "/v1/shutdown", r)
	return err
}

// Metrics asks for the metrics in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	response, err := c.do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("reading the agent's metrics at %s: %w", c.socket, err)
	}
	return string(text), nil
}

// rows fetches a list. An empty one is no nil, so that it prints as [].
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

// call sends a request with a JSON body, unless nil, and reads a JSON answer.
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
		return answer, fmt.Errorf("reading the agent's answer to %s %s: %w; agent and command may be of different versions, see `vrouter status`", method, path, err)
	}
	return answer, nil
}

// do sends a request; an answer that is no success comes back as *Error.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("writing the request %s %s: %w", method, path, err)
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
