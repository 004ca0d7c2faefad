package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

// statusIn is the HTTP status of a client's error; 0: none.
func statusIn(err error) int {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Status
	}
	return 0
}

// withPorts makes ports on the other node.
func (b *bed) withPorts(n int) model.State {
	s := b.state
	s.Ports = slices.Clone(s.Ports)
	for i := range n {
		s.Ports = append(s.Ports, model.Port{
			Name: fmt.Sprintf("far%d", i), Network: "red", Node: "b", MAC: model.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)},
			IPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 7, 0, byte(100 + i)})},
		})
	}
	return s
}

// TestARefusedRequestChangesNothing sends requests that the agent must refuse. State,
// maps, links and traffic must not change.
func TestARefusedRequestChangesNothing(t *testing.T) {
	t.Parallel()
	disk := agenttest.TinyDisk(t)
	b := newBed(t, func(c *config.Config) {
		if c.Node == "a" {
			c.StateDir, c.Limits = filepath.Join(disk, "a"), config.Limits{Limits: datapath.Limits{Routes: 24, Vifs: 3, Nexthops: 32, Labels: 8}}
		}
	})
	a, ctx := b.nodes["a"], context.Background()
	put := func(s model.State) error {
		_, err := a.client.PutState(ctx, s)
		return err
	}
	add := func(r model.PortRequest) error {
		_, err := a.client.AddPort(ctx, r)
		return err
	}
	spare := agenttest.NewSpace(t, "spare")
	here := func(name string) model.Attachment { return model.Attachment{Netns: spare.Name, Interface: name} }
	before, was, kept := contents(t, a.config), links(t, a.config), files(t, a.config)
	state := must.Get(a.client.State(ctx))(t)
	for _, c := range []struct {
		what   string
		do     func() error
		status int
		words  []string
	}{
		{"a state without this node", func() error { s := b.state; s.Nodes = s.Nodes[1:]; s.Ports = nil; s.Routes = nil; return put(s) }, 400, []string{`does not have this node, "a"`, "its nodes are b"}},
		{"a state without any node", func() error { return put(model.State{}) }, 400, []string{`does not have this node, "a"`}},
		{"two ports of one address", func() error { s := b.withPorts(2); s.Ports[4].IPs = s.Ports[3].IPs; return put(s) }, 400, []string{"10.7.0.100", "far"}},
		{"problems around this node and elsewhere", func() error {
			s := b.withPorts(2)
			s.Ports[4].IPs = s.Ports[3].IPs
			s.Networks = append(slices.Clone(s.Networks), model.Network{Name: "else where", ID: 4000})
			return put(s)
		}, 400, []string{"10.7.0.100", "else where"}},
		{"subnets that overlap", func() error {
			s := b.state
			s.Networks = slices.Clone(s.Networks)
			s.Networks[0].Subnets = append(slices.Clone(s.Networks[0].Subnets), netip.MustParsePrefix("10.7.0.0/16"))
			return put(s)
		}, 400, []string{"10.7.0.0/16", "10.7.0.0/24"}},
		{"more routes than there is room for", func() error { return put(b.withPorts(40)) }, 507, []string{"hosts4", "its limit is 24", "raise limits"}},
		{"more networks than labels", func() error {
			s := b.state
			s.Networks = slices.Clone(s.Networks)
			for i := range 20 {
				s.Networks = append(s.Networks, model.Network{Name: fmt.Sprint("n", i), ID: uint32(100 + i), Forwarding: model.L2})
				s.Ports = append(slices.Clone(s.Ports), model.Port{Name: fmt.Sprint("p", i), Network: fmt.Sprint("n", i), Node: "a", MAC: model.MAC{2, 3, 0, 0, 0, byte(i)}})
			}
			return put(s)
		}, 507, []string{"its limit is"}},
		{"a port in a network that is not there", func() error { return add(model.PortRequest{Port: model.Port{Network: "green", Attach: here("eth0")}}) }, 404, []string{`no network "green"`}},
		{"a port of a name that is taken", func() error {
			return add(model.PortRequest{Port: model.Port{Name: "a1", Network: "red", Attach: here("eth0")}})
		}, 409, []string{`port "a1" already exists`}},
		{"a port in a namespace that is gone", func() error {
			return add(model.PortRequest{Port: model.Port{Network: "red", Attach: model.Attachment{Netns: "vr-no-such"}}})
		}, 400, []string{"vr-no-such does not exist", "ip netns add"}},
		{"a port on a device that is gone", func() error {
			return add(model.PortRequest{Port: model.Port{Network: "red", Attach: model.Attachment{Device: "tap-none"}}})
		}, 400, []string{"device tap-none does not exist"}},
		{"a port on the underlay", func() error {
			return add(model.PortRequest{Port: model.Port{Network: "red", Attach: model.Attachment{Device: "fab0"}}})
		}, 400, []string{"fab0 is an underlay device of the node"}},
		{"a port whose interface is taken", func() error { return add(model.PortRequest{Port: model.Port{Network: "red", Attach: here("lo")}}) }, 400, []string{"has a device lo already"}},
		{"a port of an address that is taken", func() error {
			return add(model.PortRequest{Port: model.Port{Network: "red", IPs: []netip.Addr{netip.MustParseAddr("10.7.0.11")}, Attach: here("eth0")}})
		}, 0, []string{"10.7.0.11"}},
		{"the deletion of a port of the state", func() error { _, err := a.client.DeletePort(ctx, "a1"); return err }, 409, []string{"it is in the applied state"}},
		{"the deletion of no port", func() error { _, err := a.client.DeletePort(ctx, "none"); return err }, 404, []string{`no port "none"`}},
		{"a disk that is full", func() error {
			full := filepath.Join(disk, "full")
			must.Succeed(t, errors.Join(filled(full)))
			defer os.Remove(full)
			return put(b.withPorts(3))
		}, 500, []string{"no space left", "nothing was changed; free some space"}},
		{"a disk that is full, for a port", func() error {
			full := filepath.Join(disk, "full")
			must.Succeed(t, filled(full))
			defer os.Remove(full)
			return add(model.PortRequest{Port: model.Port{Network: "red", Attach: here("eth0")}})
		}, 500, []string{"no space left", "nothing was changed; free some space"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			err := c.do()
			if err == nil {
				t.Fatal("it was not refused")
			}
			if got := statusIn(err); c.status != 0 && got != c.status || got/100 != 4 && got/100 != 5 {
				t.Errorf("status %d, want %d: %v", got, c.status, err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want %q in it", err, w)
				}
			}
			unchanged(t, before, contents(t, a.config))
			now := must.Get(a.client.State(ctx))(t)
			must.Equal(t, state, now, cmpopts.EquateComparable(netip.Addr{}, netip.AddrPort{}, netip.Prefix{}))
			must.Equal(t, was, links(t, a.config))
			must.Equal(t, kept, files(t, a.config))
			if l, err := spare.Link("eth0"); l != nil || err != nil {
				t.Errorf("a device was left: %v, %v", l, err)
			}
			must.Succeed(t, errors.Join(a.healthy(), b.traffic()))
		})
	}
	t.Run("what has room is taken after all that", func(t *testing.T) {
		must.Succeed(t, put(b.withPorts(3)))
		must.Succeed(t, b.traffic())
	})
	t.Run("a port more than there is room for", func(t *testing.T) {
		must.Succeed(t, add(model.PortRequest{Port: model.Port{Name: "third", Network: "red", Attach: here("eth0")}}))
		full := contents(t, a.config)
		err := add(model.PortRequest{Port: model.Port{Name: "fourth", Network: "red", Attach: here("eth1")}})
		if statusIn(err) != 507 || !strings.Contains(err.Error(), "vifs") {
			t.Errorf("error %v, status %d", err, statusIn(err))
		}
		unchanged(t, full, contents(t, a.config))
		if l, err := spare.Link("eth1"); l != nil || err != nil {
			t.Errorf("a device was left: %v, %v", l, err)
		}
		must.Succeed(t, b.traffic())
	})
}

// files returns the agent's files and their contents.
func files(t *testing.T, c config.Config) map[string]string {
	t.Helper()
	all := map[string]string{}
	entries := must.Get(os.ReadDir(c.StateDir))(t)
	for _, e := range entries {
		if e.Name() == "store.db" {
			continue // what it holds is asked of the API
		}
		text := must.Get(os.ReadFile(filepath.Join(c.StateDir, e.Name())))(t)
		all[e.Name()] = string(text)
	}
	return all
}

// filled fills a filesystem with a file.
func filled(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	return err
}

// TestAnUnderlayTooSmallIsReportedAndChangesNothing: neither by itself nor with
// the next request.
func TestAnUnderlayTooSmallIsReportedAndChangesNothing(t *testing.T) {
	must.Long(t)
	t.Parallel()
	b := newBed(t, nil)
	a := b.nodes["a"]
	before := contents(t, a.config)
	must.Succeed(t, b.A.Links.LinkSetMTU(agenttest.LinkIn(t, b.A, "fab0"), 1200))
	must.Eventually(t, "the report", func() error { return a.complains("the underlay MTU of 1200", "IPv6 needs 1280", "raise") })
	_, err := a.client.PutState(context.Background(), b.withPorts(3))
	if statusIn(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "IPv6 needs 1280") {
		t.Errorf("error %v, status %d", err, statusIn(err))
	}
	unchanged(t, before, contents(t, a.config))
	must.Succeed(t, b.traffic())
	must.Succeed(t, b.A.Links.LinkSetMTU(agenttest.LinkIn(t, b.A, "fab0"), agenttest.UnderlayMTU))
	must.Eventually(t, "health", func() error { return errors.Join(a.healthy(), b.traffic()) })
	unchanged(t, before, contents(t, a.config))
}

// TestARefusedStartDoesNotDisturbTheRunningAgent starts agents with invalid
// configurations while another agent runs.
func TestARefusedStartDoesNotDisturbTheRunningAgent(t *testing.T) {
	t.Parallel()
	b := newBedOf(t, nil, "a")
	a := b.nodes["a"]
	before, was := contents(t, a.config), links(t, a.config)
	yaml := filepath.Join(b.Dir, "state.yaml")
	must.Succeed(t, os.WriteFile(yaml, []byte("nodes:\n- {name: a, underlay: [172.31.0.1]}\n"), 0o600))
	for _, c := range []struct {
		what   string
		change func(*config.Config)
		words  []string
	}{
		{"a second agent of the node", func(*config.Config) {}, []string{"node a already has an agent", fmt.Sprintf("process %d", os.Getpid()), "stop that process first"}},
		{"another node's state", func(c *config.Config) { c.Node, c.State, c.StateDir = "c", yaml, filepath.Join(b.Dir, "state-c") }, []string{`does not have this node, "c"`, "its nodes are a"}},
		{"another node's directory", func(c *config.Config) { c.Node = "c" }, []string{`the file belongs to node "a", but this agent runs node "c"`}},
		{"a namespace that is not there", func(c *config.Config) {
			c.Node, c.Netns, c.StateDir = "c", "vr-no-such", filepath.Join(b.Dir, "state-c")
		}, []string{"vr-no-such does not exist", "ip netns add"}},
		{"a socket's path that is a file", func(c *config.Config) { c.Node, c.Socket, c.StateDir = "c", yaml, filepath.Join(b.Dir, "state-c") }, []string{yaml, "is not a socket"}},
		{"a state that is not there", func(c *config.Config) {
			c.Node, c.State, c.StateDir = "c", filepath.Join(b.Dir, "none.yaml"), filepath.Join(b.Dir, "state-c")
		}, []string{"none.yaml", "no such file"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			config := b.Config("a")
			c.change(&config)
			if config.Node != "a" {
				if config.Socket == a.config.Socket {
					config.Socket = ""
				}
				if config.Netns == a.config.Netns {
					config.Netns = b.B.Name // a namespace has one agent
				}
				t.Cleanup(func() { takenAway(t, config) })
			}
			err := Run(context.Background(), config, Options{})
			if err == nil {
				t.Fatal("it ran")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want %q in it", err, w)
				}
			}
			unchanged(t, before, contents(t, a.config))
			must.Equal(t, was, links(t, a.config))
			must.Succeed(t, errors.Join(a.healthy(), b.traffic()))
		})
	}
}

// TestASocketStaysWithItsProgram checks that an agent does not start on the socket of another program, and does not
// delete the socket. `vrouter remove` for node a must not change node b, whose agent listens on the socket.
func TestASocketStaysWithItsProgram(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	a, other := b.nodes["a"], b.nodes["b"]
	wrong := other.config
	wrong.Socket = a.config.Socket
	must.Fail(t, Remove(t.Context(), wrong, false, RemoveTimeout), a.config.Socket, "runs node a", "stop the agent of node b")
	must.Succeed(t, errors.Join(a.healthy(), other.healthy(), b.traffic()))

	other.stop(t)
	foreign := filepath.Join(b.Dir, "foreign.sock")
	theirs := must.Get(net.Listen("unix", foreign))(t)
	defer theirs.Close()
	for _, socket := range []string{a.config.Socket, foreign} {
		wrong.Socket = socket
		must.Fail(t, Run(t.Context(), wrong, Options{}), socket, "another program listens on this socket", "set another path in the key socket")
		must.Succeed(t, connect(socket))
	}
	removed(t, wrong)
	must.Succeed(t, errors.Join(connect(foreign), a.healthy()))

	must.Succeed(t, os.Rename(foreign, a.config.Socket)) // as an older agent does
	a.stop(t)
	must.Succeed(t, connect(a.config.Socket))
}

// takenAway unmounts the pins of an agent that has refused to start.
func takenAway(t *testing.T, c config.Config) {
	t.Helper()
	c.Socket, c.State, c.StateDir = "", "", filepath.Join(t.TempDir(), "none")
	removed(t, c)
}

// raw sends a request that package api's client cannot build.
func raw(t *testing.T, r *running, method, path string, body io.Reader) (status int, text string) {
	t.Helper()
	request := must.Get(http.NewRequestWithContext(t.Context(), method, "http://vrouter"+path, body))(t)
	transport := &http.Transport{DialContext: dialSocket(r.config.Socket)}
	defer transport.CloseIdleConnections()
	response := must.Get((&http.Client{Transport: transport}).Do(request))(t)
	defer response.Body.Close()
	all := must.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, string(all)
}

// endless is a JSON text that is padded with spaces to a size in bytes.
func endless(n int64) io.Reader {
	return io.MultiReader(strings.NewReader(`{"nodes":`), io.LimitReader(blanks{}, n))
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{' '}, len(p))), nil }

// TestInvalidRequestsAreRefused checks that invalid requests are refused
// and change nothing.
func TestInvalidRequestsAreRefused(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	must.Get(a.client.PutState(context.Background(), f.State(nil)))(t)
	before := contents(t, a.config)
	for _, c := range []struct {
		method, path string
		body         io.Reader
		status       int
		words        string
	}{
		{"PUT", "/v1/state", strings.NewReader(`{"nodes":[],"colour":"red"}`), 400, `unknown field \"colour\"`},
		{"PUT", "/v1/state", strings.NewReader(`{"networks":[{"name":"x","vlan":3}]}`), 400, `unknown field \"vlan\"`},
		{"PUT", "/v1/state", strings.NewReader(``), 400, "the JSON text is empty"},
		{"PUT", "/v1/state", strings.NewReader(`{"nodes":[`), 400, "ends too early"},
		{"PUT", "/v1/state", strings.NewReader(`{} {}`), 400, "after top-level value"},
		{"PUT", "/v1/state", strings.NewReader(`{"nodes":7}`), 400, "field nodes"},
		{"PUT", "/v1/state", strings.NewReader(`nodes: []`), 400, "invalid JSON at byte"},
		{"PUT", "/v1/state", endless(maxBody), 400, "more than 32 MB"},
		{"PUT", "/v1/state", strings.NewReader(`{"ports":[` + strings.Repeat("{},", model.MaxValues) + `{}]}`), 400, "more than the allowed 2000000 JSON values"},
		{"POST", "/v1/ports", strings.NewReader(`{"network":"red","vlan":3}`), 400, `unknown field \"vlan\"`},
		{"POST", "/v1/ports", strings.NewReader(`{"network":"red","attach":{"netns":"n","device":"d"}}`), 400, "give one of netns, device and host"},
		{"POST", "/v1/networks", strings.NewReader(`{"name":"red","subnets":["10.99.0.0/16"]}`), 409, `network \"red\" already exists`},
		{"POST", "/v1/networks", strings.NewReader(`{"name":"pink","subnets":["10.7.0.0/25"]}`), 400, "overlaps 10.7.0.0/24"},
		{"PATCH", "/v1/networks/red", strings.NewReader(`{"vlan":3}`), 400, `unknown field \"vlan\"`},
		{"PATCH", "/v1/networks/red", strings.NewReader(`{"name":"pink"}`), 400, `the path has \"red\"`},
		{"PATCH", "/v1/networks/red", strings.NewReader(`["pink"]`), 400, "read the request"},
		{"PATCH", "/v1/networks/red", strings.NewReader(`{"vni":"red"}`), 400, "field vni"},
		{"PATCH", "/v1/networks/none", strings.NewReader(`{}`), 404, `no network \"none\"`},
		{"PUT", "/v1/policies/web", strings.NewReader(`{"name":"wob","rules":[]}`), 400, `the path has \"web\"`},
		{"PUT", "/v1/nodes/c", strings.NewReader(`{"underlay":["10.7.0.99"]}`), 400, "underlay address 10.7.0.99"},
		{"PATCH", "/v1/ports/none", strings.NewReader(`{"attach":{}}`), 404, `no port \"none\"`},
		{"GET", "/v1/ports?address=x", nil, 400, "address"},
		{"DELETE", "/v1/networks/none", nil, 404, `no network \"none\"`},
		{"DELETE", "/v1/nodes/a", nil, 409, "vrouter remove"},
		{"DELETE", "/v1/routes?network=red&prefix=10.0.0.0", nil, 400, "prefix"},
		{"POST", "/v1/ports", strings.NewReader(`{"network":"red","mac":"red"}`), 400, "read the request"},
		{"POST", "/v1/trace", strings.NewReader(`{"from":"nobody","to":"10.7.0.1","protocol":"icmp"}`), 404, "nobody"},
		{"POST", "/v1/shutdown", strings.NewReader(`{"delete":true}`), 400, `unknown field \"delete\"`},
		{"GET", "/v1/rt?vrf=red", nil, 400, "vrf=red is not the number of a VRF"},
		{"GET", "/v1/rt?vrf=-1", nil, 400, "vrf=-1 is not the number of a VRF"},
		{"GET", "/v1/nothing", nil, 404, "the API has no GET /v1/nothing"},
		{"GET", "/", nil, 404, "the API has no GET /"},
		{"POST", "/v1/state", strings.NewReader(`{}`), 404, "the API has no POST /v1/state"},
		{"DELETE", "/v1/state", nil, 404, "the API has no DELETE /v1/state"},
		{"DELETE", "/v1/ports/none", nil, 404, `no port \"none\"`},
		{"PUT", "/metrics", nil, 404, "the API has no PUT /metrics"},
	} {
		status, text := raw(t, a, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(text, c.words) || !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s %s: %d %s, want %d with %q", c.method, c.path, status, text, c.status, c.words)
		}
	}
	unchanged(t, before, contents(t, a.config))
	must.Succeed(t, a.healthy())
}

// TestOnlyRootMayOpenTheSocket connects as another user.
func TestOnlyRootMayOpenTheSocket(t *testing.T) {
	t.Parallel()
	f := agenttest.NewFleet(t)
	a := start(t, f.Config("a"))
	info := must.Get(os.Stat(a.config.Socket))(t)
	must.Equal(t, os.ModeSocket|0o600, info.Mode())
	for path, most := range map[string]os.FileMode{a.config.StateDir: 0o700, a.config.PinsDir(): 0o700} {
		info := must.Get(os.Stat(path))(t)
		if info.Mode().Perm()&^most != 0 {
			t.Errorf("the mode of %s is %v, want %v at most", path, info.Mode(), most)
		}
	}
	// Others get through to the directory, and not into the socket.
	must.Succeed(t, os.Chmod(filepath.Dir(f.Dir), 0o755))
	must.Succeed(t, os.Chmod(f.Dir, 0o755))
	if err := asNobody(func() error { return connect(a.config.Socket) }); !errors.Is(err, unix.EACCES) {
		t.Errorf("as nobody: %v, want permission denied", err)
	}
	must.Succeed(t, connect(a.config.Socket))
}

func connect(socket string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
}

// asNobody runs f on a new thread without root's rights.
func asNobody(f func() error) error {
	done := make(chan error, 1)
	go func() {
		agenttest.LockThread()
		// The thread's own: the C library's would change every thread's.
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); e != 0 {
			done <- e
			return
		}
		done <- f()
	}()
	return <-done
}

func TestTheErrorOfAStoreThatHasNotBeenReadHasAReason(t *testing.T) {
	for problem, want := range map[error]string{
		nil:                  "the store has not been read yet: the agent is still reading it; try again in a moment",
		store.ErrUnavailable: "the store has not been read yet: the store is unreachable; try again when it is reachable",
	} {
		must.Equal(t, want, notReadBecause(problem).Error())
	}
}
