package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

// bed is two nodes with agents, and workloads a1, a2 and b1 that reach each
// other.
type bed struct {
	*agenttest.TwoNodes
	workloads map[string]*netdev.Space
	nodes     map[string]*running
	state     model.State
}

func newBed(t *testing.T, change func(*config.Config)) *bed {
	t.Helper()
	return newBedOf(t, change, "a", "b")
}

// newBedOf makes a bed in which only the given nodes have agents.
func newBedOf(t *testing.T, change func(*config.Config), nodes ...string) *bed {
	t.Helper()
	b := &bed{TwoNodes: agenttest.NewFleet(t), workloads: map[string]*netdev.Space{}, nodes: map[string]*running{}}
	for _, name := range []string{"a1", "b1", "a2"} {
		b.workloads[name] = agenttest.NewSpace(t, "w"+name)
	}
	b.state = b.TwoNodes.State(b.workloads)
	b.state.Routes = []model.Route{{Network: "red", Prefix: netip.MustParsePrefix("198.51.100.0/24"), Via: []model.Via{{Port: "b1"}}}}
	for _, node := range nodes {
		c := b.Config(node)
		if change != nil {
			change(&c)
		}
		b.nodes[node] = start(t, c)
		b.apply(t, node, b.state)
		if c.RepairInterval < time.Second {
			must.Eventually(t, "links instead of the first filters", b.nodes[node].linked)
		}
	}
	must.Succeed(t, b.traffic())
	return b
}

func (b *bed) apply(t *testing.T, node string, s model.State) api.Applied {
	t.Helper()
	return must.Get(b.nodes[node].client.PutState(context.Background(), s))(t)
}

// traffic returns nil if all workloads on the nodes with agents reach each other by
// IPv4 and IPv6.
func (b *bed) traffic() error {
	for _, way := range [][3]string{{"a1", "b1", "10.7.0.11"}, {"b1", "a1", "fd07::10"}, {"a2", "a1", "10.7.0.10"}} {
		if b.nodes[way[0][:1]] == nil || b.nodes[way[1][:1]] == nil {
			continue
		}
		if err := exchange(b.workloads[way[0]], b.workloads[way[1]], way[2]); err != nil {
			return fmt.Errorf("%s to %s: %w", way[0], way[2], err)
		}
	}
	return nil
}

// pinsOf is the path of an agent's pins.
func pinsOf(t *testing.T, c config.Config) string {
	t.Helper()
	return must.Get(datapath.MountPins(c.PinsDir()))(t)
}

// desiredMaps are the maps whose contents derive from the desired state.
var desiredMaps = []string{"settings", "vifs", "vrfs", "nexthops", "members", "hosts4", "hosts6", "lpm4", "lpm6", "bridge", "ilm", "vnis", "remotes", "policies"}

// pinnedMap opens a pinned map of an agent.
func pinnedMap(t *testing.T, c config.Config, name string) *ebpf.Map {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(pinsOf(t, c), "g*", name))
	if len(found) != 1 {
		t.Fatalf("pins of map %s: %q", name, found)
	}
	m := must.Get(ebpf.LoadPinnedMap(found[0], nil))(t)
	t.Cleanup(func() { m.Close() })
	return m
}

// contents reads maps: map → key → value, as bytes.
func contents(t *testing.T, c config.Config) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, name := range desiredMaps {
		all[name] = entries(t, pinnedMap(t, c, name))
	}
	all["nexthops"] = nexthopsInUse(all["nexthops"], entries(t, pinnedMap(t, c, "nexthop_entries")))
	return all
}

// nexthopsInUse returns the nexthops in use, by id. keys maps each id to a key of all.
func nexthopsInUse(all, keys map[string]string) map[string]string {
	used := map[string]string{}
	for id, key := range keys {
		if value, ok := all[key]; ok {
			used[id] = value
		}
	}
	return used
}

func entries(t *testing.T, m *ebpf.Map) map[string]string {
	t.Helper()
	all := map[string]string{}
	var key, value []byte
	it := m.Iterate()
	for it.Next(&key, &value) {
		if strings.Trim(string(value), "\x00") != "" { // an array's entries are always there
			all[string(key)] = string(value)
		}
	}
	must.Succeed(t, it.Err())
	return all
}

// links returns the pinned links of an agent: name → id in the kernel.
func links(t *testing.T, c config.Config) map[string]link.ID {
	t.Helper()
	all := map[string]link.ID{}
	found, _ := filepath.Glob(filepath.Join(pinsOf(t, c), "links", "*-*"))
	for _, path := range found {
		if strings.HasPrefix(filepath.Base(path), "qdisc-") {
			continue // a note about a hook
		}
		l, err := link.LoadPinnedLink(path, nil)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must.Succeed(t, err)
		info := must.Get(l.Info())(t)
		all[filepath.Base(path)] = info.ID
		l.Close()
	}
	return all
}

// healthy returns nil if the status of an agent has no problems, else an error.
func (r *running) healthy() error {
	s, err := r.client.Status(context.Background())
	if err == nil && len(s.Problems) > 0 {
		err = fmt.Errorf("status: %+v", s.Problems)
	}
	return err
}

// linked returns nil if the programs of all vifs are attached by tcx links. A new device first
// gets a filter.
func (r *running) linked() error {
	rows, err := r.client.Vifs(context.Background(), 0)
	for _, row := range rows {
		if row.Type == "virtual" && row.Mode != "tcx" && r.config.TCX != config.Off {
			err = errors.Join(err, fmt.Errorf("the program of port %s is attached by %s", row.Port, row.Mode))
		}
	}
	return err
}

// complains returns nil if a problem in the agent's status contains all words.
func (r *running) complains(words ...string) error {
	s, err := r.client.Status(context.Background())
	if err != nil {
		return err
	}
	for _, p := range s.Problems {
		has := true
		for _, w := range words {
			has = has && strings.Contains(p.Text, w)
		}
		if has {
			return nil
		}
	}
	return fmt.Errorf("no problem has %q: %+v", words, s.Problems)
}

// problemOf returns an object's problem in the status of an agent; zero: it has none.
func (r *running) problemOf(t *testing.T, kind, name string) api.Problem {
	t.Helper()
	s := must.Get(r.client.Status(context.Background()))(t)
	for _, p := range s.Problems {
		if p.Kind == kind && p.Name == name {
			return p
		}
	}
	return api.Problem{}
}

func (r *running) repairs(t *testing.T) uint64 {
	t.Helper()
	s := must.Get(r.client.Status(context.Background()))(t)
	return s.Repairs
}

// unchanged compares maps with earlier contents.
func unchanged(t *testing.T, before, now map[string]map[string]string) {
	t.Helper()
	must.Equal(t, before, now)
}

// device returns the device of a port on its node.
func (r *running) device(t *testing.T, port string) string {
	t.Helper()
	rows := must.Get(r.client.Vifs(context.Background(), 0))(t)
	for _, row := range rows {
		if row.Port == port {
			return row.Device
		}
	}
	t.Fatalf("no vif of port %s: %+v", port, rows)
	return ""
}

// ways returns the tunnels of an agent: destination → MTU and device.
func (r *running) tunnelMTU(t *testing.T, to string) int {
	t.Helper()
	rows := must.Get(r.client.Nexthops(context.Background(), 0))(t)
	for _, row := range rows {
		if row.Type == "tunnel" && len(row.Paths) > 0 && row.Paths[0].Destination == netip.MustParseAddr(to) {
			return int(row.MTU)
		}
	}
	return 0
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
