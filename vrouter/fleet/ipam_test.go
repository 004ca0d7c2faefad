package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/store"
)

func TestAPortGetsTheNextFreeAddressOfEachFamily(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	x := add(t, f, port("x"))
	y := add(t, f, port("y", "10.1.0.9"))
	z := add(t, f, port("z"))
	for _, c := range []struct {
		got  model.Port
		want string
	}{{x, "[10.1.0.2 fd00:1::2]"}, {y, "[10.1.0.9]"}, {z, "[10.1.0.3 fd00:1::3]"}} {
		if fmt.Sprint(c.got.IPs) != c.want || c.got.MAC.IsZero() {
			t.Errorf("%s has %v, %s; want %s", c.got.Name, c.got.IPs, c.got.MAC, c.want)
		}
	}
	unnamed := add(t, f, port(""))
	must.Equal(t, "red-10-1-0-4", unnamed.Name)
	state(t, f)
}

func TestTheDNSAddressIsNotAllocated(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].DNS = []netip.Addr{netip.MustParseAddr("10.1.0.2")}
	apply(t, f, s)
	if x := add(t, f, port("x")); fmt.Sprint(x.IPs) != "[10.1.0.3 fd00:1::2]" {
		t.Errorf("the port has the addresses %v, want [10.1.0.3 fd00:1::2]", x.IPs)
	}
	state(t, f)
}

// An address that becomes free is the last one that is allocated again. The position is in the
// store: it is the same for all nodes, and after a restart.
func TestAFreedAddressIsNotAllocatedAtOnce(t *testing.T) {
	s := fileStore(t)
	tight := small()
	tight.Networks[0].Subnets = prefixes("10.1.0.0/29", "10.1.1.0/29", "fd00:1::/64") // 5 addresses each
	f := follow(t, s)
	apply(t, f, tight)
	for i, want := range []string{
		"[10.1.0.2 fd00:1::2]", "[10.1.0.3 fd00:1::3]", "[10.1.0.4 fd00:1::4]", "[10.1.0.5 fd00:1::5]", "[10.1.0.6 fd00:1::6]", "[10.1.1.2 fd00:1::7]",
		"[10.1.1.3 fd00:1::8]", "[10.1.1.4 fd00:1::9]", "[10.1.1.5 fd00:1::a]", "[10.1.1.6 fd00:1::b]", "[10.1.0.2 fd00:1::c]", "[10.1.0.3 fd00:1::d]",
	} {
		p := port(fmt.Sprint("p", i))
		p.Node = []string{"a", "b"}[i/2%2]
		f := follow(t, s) // a new copy
		if got := add(t, f, p); fmt.Sprint(got.IPs) != want {
			t.Errorf("port %d has %v, want %s", i, got.IPs, want)
		}
		must.Get(f.DeletePort(ctx(t), p.Name, nil))(t)
	}
}

// Nodes with ranges of addresses, such as the pod CIDRs of Kubernetes, allocate each in its range.
func TestEachNodeContinuesInItsRange(t *testing.T) {
	f := open(t)
	apply(t, f, small())
	for i, want := range []string{"10.1.0.16", "10.1.0.32", "10.1.0.17", "10.1.0.33", "10.1.0.18", "10.1.0.34", "10.1.0.19", "10.1.0.35", "10.1.0.16"} {
		p := port(fmt.Sprint("p", i))
		p.Node = []string{"a", "b"}[i%2]
		got, _, err := f.AddPort(ctx(t), model.PortRequest{Port: p, From: []model.Range{model.RangeOf(prefixes([]string{"10.1.0.16/30", "10.1.0.32/30"}[i%2])[0])}, Four: true})
		if err != nil || fmt.Sprint(got.IPs) != "["+want+"]" {
			t.Errorf("%v, %v; want %s", got.IPs, err, want)
		}
		must.Get(f.DeletePort(ctx(t), p.Name, nil))(t)
	}
}

// Eight hosts, each with a copy, ask for the last addresses of a subnet at once.
// Each gets a different address, and then none is left.
func TestNoTwoHostsGetTheSameAddress(t *testing.T) {
	s := fileStore(t)
	hosts := make([]*Fleet, 8)
	for i := range hosts {
		hosts[i] = follow(t, s)
	}
	tight := small()
	tight.Networks[0].Subnets = prefixes("10.1.0.0/25") // of which a host may have 125
	apply(t, hosts[0], tight)
	for _, f := range hosts {
		f.awaitRevision(ctx(t), hosts[0].Health().Revision)
	}
	var mu sync.Mutex
	got := map[netip.Addr]string{}
	full := 0
	var all sync.WaitGroup
	for i, f := range hosts {
		all.Go(func() {
			for j := range 17 {
				p := port(fmt.Sprintf("p-%d-%d", i, j))
				made, _, err := f.AddPort(ctx(t), model.PortRequest{Port: p})
				mu.Lock()
				switch {
				case IsWhy(err, Full):
					full++
				case err != nil:
					t.Error(err)
				case got[made.IPs[0]] != "":
					t.Errorf("%s and %s both have %s", got[made.IPs[0]], p.Name, made.IPs[0])
				default:
					got[made.IPs[0]] = p.Name
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(got) != 125 || full != 8*17-125 {
		t.Errorf("%d addresses were given out, %d refused; want 125 and %d", len(got), full, 8*17-125)
	}
	must.Succeed(t, state(t, hosts[7]).Validate())
}

func TestTheErrorOfAnExhaustedNetworkNamesTheNetworkAndTheRange(t *testing.T) {
	f := open(t)
	s := small()
	s.Networks[0].Ranges = []model.Range{{First: netip.MustParseAddr("10.1.0.7"), Last: netip.MustParseAddr("10.1.0.7")}}
	apply(t, f, s)
	add(t, f, port("x"))
	_, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("y")})
	if !IsWhy(err, Full) || !strings.Contains(err.Error(), `network "red" has no free IPv4 address in 10.1.0.7`) {
		t.Errorf("error %v, want that the network has no free IPv4 address", err)
	}
	// Others may still be asked for by name, and by a family that has some.
	add(t, f, port("z", "10.1.0.99"))
	six, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("six"), Six: true})
	if err != nil || fmt.Sprint(six.IPs) != "[fd00:1::3]" {
		t.Errorf("the port has the addresses %v (%v), want fd00:1::3", six.IPs, err)
	}
}

func TestAddressesAreAllocatedInTheRequestedRange(t *testing.T) {
	f := open(t)
	s := small()
	s.Routes = []model.Route{{Network: "red", Prefix: netip.MustParsePrefix("10.1.0.17/32"), Discard: true}}
	apply(t, f, s)
	for i, want := range []string{"10.1.0.16", "10.1.0.18", "10.1.0.19"} {
		p, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port(fmt.Sprint("p", i)), From: []model.Range{model.RangeOf(prefixes("10.1.0.16/30")[0])}, Four: true})
		if err != nil || fmt.Sprint(p.IPs) != "["+want+"]" {
			t.Errorf("%v, %v; want %s", p.IPs, err, want)
		}
	}
	if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("q"), From: []model.Range{model.RangeOf(prefixes("10.1.0.16/30")[0])}, Four: true}); !IsWhy(err, Full) {
		t.Errorf("a fifth of four: %v", err)
	}
	if _, _, err := f.AddPort(ctx(t), model.PortRequest{Port: port("q"), From: []model.Range{model.RangeOf(prefixes("10.9.0.0/24")[0])}, Four: true}); !IsWhy(err, Invalid) {
		t.Errorf("from elsewhere: %v", err)
	}
}

// conflicts counts the commits that a store refused.
type conflicts struct {
	store.Store
	n atomic.Int32
}

func (c *conflicts) Commit(ctx context.Context, commit store.Commit) (int64, error) {
	revision, err := c.Store.Commit(ctx, commit)
	if errors.As(err, new(*store.ConflictError)) {
		c.n.Add(1)
	}
	return revision, err
}

// Ports that are added concurrently on one host do not conflict.
func TestPortsOfOneHostDoNotWantTheSameAddress(t *testing.T) {
	s := fileStore(t)
	counted := &conflicts{Store: s}
	f := follow(t, counted)
	apply(t, f, small())
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			if _, _, err := f.AddPort(t.Context(), model.PortRequest{Port: port(fmt.Sprint("p", i))}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := counted.n.Load(); n > 0 {
		t.Errorf("%d commits were refused", n)
	}
	if len(f.claims.of) > 0 {
		t.Errorf("claims are left: %v", f.claims.of)
	}
	state(t, f)
}

// The last address is tried even if an uncommitted change claims it.
func TestAClaimedAddressIsAllocatedIfNoOtherIsFree(t *testing.T) {
	f := open(t)
	tight := small()
	tight.Networks[0].Subnets = prefixes("10.1.0.0/30")
	apply(t, f, tight)
	f.claims.choose("red", func(map[netip.Addr]bool) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.1.0.2")} })
	if p := add(t, f, port("x")); fmt.Sprint(p.IPs) != "[10.1.0.2]" {
		t.Errorf("it got %v", p.IPs)
	}
}
