package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/vrouter/inspect"
	"windtunnel/vrouter/model"
)

// serve runs a server with the handler and returns its client.
func serve(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "a.sock")
	l := must.Get(net.Listen("unix", socket))(t)
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	client := Dial(socket)
	t.Cleanup(func() { client.Close(); server.Close(); <-done })
	return client
}

// request is a request that the server has received.
type request struct{ Line, Body string }

// Every endpoint of the package comment, with its request and its answer.
func TestEveryEndpointIsAskedAsDocumented(t *testing.T) {
	ctx := context.Background()
	status := Status{Node: "a", Version: "1", Routes: 3, Fabric: []Fabric{{Device: "eth1", Mode: "tcx", MTU: 1500}}}
	port := Port{Port: model.Port{Name: "web1"}, MTU: 1468}
	for line, c := range map[string]struct {
		ask    func(*Client) (any, error)
		body   string
		answer any
	}{
		"GET /v1/status":             {func(c *Client) (any, error) { return c.Status(ctx) }, "", status},
		"GET /v1/vif":                {func(c *Client) (any, error) { return c.Vifs(ctx, 0) }, "", []inspect.Vif{{ID: 1, Type: "virtual"}}},
		"GET /v1/vif?vrf=7":          {func(c *Client) (any, error) { return c.Vifs(ctx, 7) }, "", []inspect.Vif{}},
		"GET /v1/nh?vrf=1":           {func(c *Client) (any, error) { return c.Nexthops(ctx, 1) }, "", []inspect.Nexthop{{ID: 4, Type: "vrf"}}},
		"GET /v1/rt?vrf=4095":        {func(c *Client) (any, error) { return c.Routes(ctx, 4095) }, "", []inspect.Route{{VRF: 4095, Destination: netip.MustParsePrefix("::/0")}}},
		"GET /v1/bridge":             {func(c *Client) (any, error) { return c.Bridge(ctx, 0) }, "", []inspect.Bridge{{VRF: 1, MAC: model.RouterMAC}}},
		"GET /v1/mpls":               {func(c *Client) (any, error) { return c.Labels(ctx, 0) }, "", []inspect.Target{{ID: 18, Payload: "ip"}}},
		"GET /v1/vxlan":              {func(c *Client) (any, error) { return c.VNIs(ctx, 0) }, "", []inspect.Target{{ID: 1, Payload: "ethernet"}}},
		"GET /v1/flow?vrf=2":         {func(c *Client) (any, error) { return c.Flows(ctx, 2) }, "", []inspect.Flow{{Vif: 1, Protocol: 6, Idle: time.Second}}},
		"GET /v1/dropstats":          {func(c *Client) (any, error) { return c.Drops(ctx) }, "", []inspect.Drop{{Vif: 1, Reason: "no_route", Packets: 1 << 63}}},
		"GET /v1/droplog":            {func(c *Client) (any, error) { return c.DropLog(ctx) }, "", []inspect.DropEvent{{Vif: 1, Data: []byte{1, 2}}}},
		"GET /v1/fallbackstats":      {func(c *Client) (any, error) { return c.Fallbacks(ctx) }, "", []inspect.Fallback{{VRF: 1, Reason: "fragment", Packets: 1 << 63}}},
		"GET /v1/vrfstats":           {func(c *Client) (any, error) { return c.VRFStats(ctx) }, "", []inspect.VRFStats{{VRF: 1, ByEncapsulation: map[string]inspect.Traffic{"vxlan": {TxBytes: 5}}}}},
		"GET /v1/doctor":             {func(c *Client) (any, error) { return c.Doctor(ctx) }, "", []Finding{{Topic: "mtu", Level: "ok", Text: "fine"}}},
		"DELETE /v1/ports/a%2Fb%20c": {func(c *Client) (any, error) { return c.DeletePort(ctx, "a/b c") }, "", Applied{Deleted: 4}},
		"POST /v1/ports": {func(c *Client) (any, error) {
			return c.AddPort(ctx, model.PortRequest{Port: model.Port{Network: "red", Attach: model.Attachment{Netns: "n1"}}})
		}, `{"name":"","network":"red","node":"","mac":"","attach":{"netns":"n1"}}`, port},
		"POST /v1/trace": {func(c *Client) (any, error) {
			return c.Trace(ctx, TraceRequest{From: "web1", To: netip.MustParseAddr("10.0.0.4"), Protocol: "tcp", DestinationPort: 80})
		}, `{"from":"web1","to":"10.0.0.4","protocol":"tcp","destination_port":80}`, inspect.Trace{Packet: "p", Dropped: true}},
	} {
		t.Run(line, func(t *testing.T) {
			var got request
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = request{r.Method + " " + r.URL.RequestURI(), string(body)}
				json.NewEncoder(w).Encode(c.answer)
			})
			answer := must.Get(c.ask(client))(t)
			must.Equal(t, (request{line, c.body}), got)
			must.Equal(t, c.answer, answer, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
				cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }))
		})
	}
}

func TestAStateIsSentAndReturnedUnchanged(t *testing.T) {
	state := model.State{Nodes: []model.Node{{Name: "a", Underlay: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}}
	var kept model.State
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + r.URL.Path {
		case "PUT/v1/state":
			if err := json.NewDecoder(r.Body).Decode(&kept); err != nil {
				t.Error(err)
			}
			fmt.Fprint(w, `{"updated": 12, "took_ns": 1500000}`)
		case "GET/v1/state":
			json.NewEncoder(w).Encode(kept)
		default:
			t.Errorf("unexpected %s %s", r.Method, r.URL)
		}
	})
	applied, err := client.PutState(context.Background(), state)
	if err != nil || applied.Updated != 12 || applied.Took != 1500*time.Microsecond {
		t.Fatalf("PutState returns %+v (%v), want 12 updated entries in 1.5 ms", applied, err)
	}
	back, err := client.State(context.Background())
	if err != nil || len(back.Nodes) != 1 || back.Nodes[0].Name != "a" || back.Nodes[0].Underlay[0] != state.Nodes[0].Underlay[0] {
		t.Fatalf("State returns %+v (%v), want node a with its underlay address", back, err)
	}
}

func TestShutdownAndMetrics(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + r.URL.Path {
		case "POST/v1/shutdown":
			body, _ := io.ReadAll(r.Body)
			if string(body) != `{"remove":true}` {
				t.Errorf("body %s", body)
			}
			fmt.Fprint(w, "{}")
		case "GET/metrics":
			fmt.Fprint(w, "vrouter_routes 3\n")
		}
	})
	must.Succeed(t, client.Shutdown(context.Background(), ShutdownRequest{Remove: true}))
	if text, err := client.Metrics(context.Background()); err != nil || text != "vrouter_routes 3\n" {
		t.Errorf("Metrics returns %q (%v), want one metric", text, err)
	}
}

// Empty lists are [] for programs that read `-o json`.
func TestNoRowsAreAnEmptyList(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "null") })
	rows, err := client.Flows(context.Background(), 0)
	if err != nil || rows == nil || len(rows) != 0 {
		t.Errorf("Flows returns %#v (%v), want an empty list that is not nil", rows, err)
	}
}

func TestARefusalHasTheTextOfTheAgent(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error": "port \"web9\": no such port"}`)
	})
	_, err := client.DeletePort(context.Background(), "web9")
	if err == nil || err.Error() != `port "web9": no such port` || !IsNotFound(err) {
		t.Errorf("error %v, want %s", err, `port "web9": no such port`)
	}
}

func TestAnInvalidAnswerIsQuoted(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"an old agent":        {404, "404 page not found\n", "the agent answered GET /v1/status with 404 Not Found: 404 page not found; agent and command may have different versions"},
		"an older agent":      {400, `{"error": "read the request: unknown field \"node\""}`, `read the request: unknown field "node"; this command and the agent have different versions: restart the agent with the version of this command, and retry`},
		"an agent without it": {404, `{"error": "the API has no GET /v1/status"}`, "the API has no GET /v1/status; this command and the agent have different versions"},
		"not JSON":            {200, "<html>", "read the agent's answer to GET /v1/status: invalid character"},
		"cut short":           {200, `{"node": "a`, "unexpected EOF"},
		"a field of its own":  {200, `{"node": 7}`, "cannot unmarshal number"},
		"a long page":         {500, strings.Repeat("x", 5000), strings.Repeat("x", 200) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(c.status); fmt.Fprint(w, c.body) })
			_, err := client.Status(context.Background())
			must.Fail(t, err, c.want)
		})
	}
}

func TestNoAgentSaysHowToStartOne(t *testing.T) {
	_, err := Dial(filepath.Join(t.TempDir(), "none.sock")).Status(context.Background())
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "none.sock; start one with `vrouter agent --config") || strings.Contains(err.Error(), "http://") {
		t.Errorf("error %v, want fs.ErrNotExist with the socket and the command that starts an agent", err)
	}
}

// abandonSocket makes a socket file without a listener. A killed agent leaves
// such a file.
func abandonSocket(t *testing.T, path string) {
	t.Helper()
	l := must.Get(net.Listen("unix", path))(t)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
}

func TestTheErrorOfAnAbandonedSocketSaysThatPacketsKeepFlowing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.sock")
	abandonSocket(t, path)
	_, err := Dial(path).Status(context.Background())
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "ended without removing its socket; packets keep flowing") {
		t.Errorf("error %v, want ECONNREFUSED with what the agent has left", err)
	}
}

func TestTheErrorOfAnAgentThatEndsDuringARequestSaysSo(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })
	_, err := client.Status(context.Background())
	must.Fail(t, err, "ended before it answered")
}

func TestTheErrorOfAnInterruptIsItsCause(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if _, err := client.Status(ctx); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
}
