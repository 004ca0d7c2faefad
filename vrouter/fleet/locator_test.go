package fleet

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

// locators returns the locators of the fleet's nodes by their names.
func locators(t *testing.T, f *Fleet) map[string]netip.Prefix {
	t.Helper()
	all := map[string]netip.Prefix{}
	for _, n := range state(t, f).Nodes {
		all[n.Name] = n.Locator
	}
	return all
}

// joining returns the n-th node that joins.
func joining(n int) model.Node {
	return model.Node{Name: fmt.Sprint("n", n), Underlay: addresses(fmt.Sprint("192.0.2.", 10+n))}
}

// Nodes that join at the same time over two hosts get different locators of the pool.
func TestNodesThatJoinAtOnceGetDifferentLocators(t *testing.T) {
	store := fileStore(t)
	hosts := []*Fleet{follow(t, store), follow(t, store)}
	s := small()
	s.Settings.Locators = netip.MustParsePrefix("fd00:77::/48")
	s.Nodes[0].Locator = netip.MustParsePrefix("fd00:77:0:2::/64")
	apply(t, hosts[0], s)
	hosts[1].awaitRevision(ctx(t), hosts[0].Health().Revision) // the pool
	const count = 16
	var wait sync.WaitGroup
	for n := range count {
		wait.Go(func() {
			if err := hosts[n%2].PutNodeFromPool(ctx(t), joining(n), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	owners := map[netip.Prefix]string{}
	for name, l := range locators(t, follow(t, store)) { // the other views may still lack commits of each other
		if name == "b" {
			continue // it has none
		}
		if owners[l] != "" || !s.Settings.Locators.Contains(l.Addr()) || l.Bits() != 64 {
			t.Errorf("nodes %q and %q have the locator %s, want one each of the pool %s", name, owners[l], l, s.Settings.Locators)
		}
		owners[l] = name
	}
	must.Equal(t, count+1, len(owners))
}

// Two nodes are written with one locator over two hosts at the same time: one of them is refused.
func TestOneOfTwoNodesWithOneLocatorIsRefused(t *testing.T) {
	store := fileStore(t)
	hosts := []*Fleet{follow(t, store), follow(t, store)}
	apply(t, hosts[0], small())
	for round := range 20 {
		locator := netip.MustParsePrefix(fmt.Sprintf("fd00:77:0:%x::/64", round+1))
		var errs [2]error
		var wait sync.WaitGroup
		for i, host := range hosts {
			n := joining(2*round + i)
			n.Locator = locator
			wait.Go(func() { errs[i] = host.PutNode(ctx(t), n) })
		}
		wait.Wait()
		refused := slices.IndexFunc(errs[:], func(err error) bool { return IsWhy(err, Invalid) })
		if refused < 0 || errs[1-refused] != nil || !strings.Contains(errs[refused].Error(), "overlaps the locator of node") {
			t.Fatalf("round %d: two nodes with the locator %s gave the errors %v and %v, want that one is refused because of the other", round, locator, errs[0], errs[1])
		}
		owners := 0
		for _, l := range locators(t, follow(t, store)) {
			if l == locator {
				owners++
			}
		}
		if owners != 1 {
			t.Fatalf("round %d: %d nodes have the locator %s, want 1", round, owners, locator)
		}
	}
}

// A node keeps its locator if it is written again. The locator of a deleted node is free.
func TestALocatorOfThePoolIsKeptAndFreed(t *testing.T) {
	f := open(t)
	s := small()
	s.Settings.Locators = netip.MustParsePrefix("fd00:77::/56")
	apply(t, f, s)
	put := func(n int) {
		t.Helper()
		must.Succeed(t, f.PutNodeFromPool(ctx(t), joining(n), nil))
	}
	put(0)
	put(1)
	first := locators(t, f)["n0"]
	put(0)
	if again := locators(t, f)["n0"]; !first.IsValid() || again != first {
		t.Errorf("the locator of n0 was %s and is %s, want the same", first, again)
	}
	must.Succeed(t, f.DeleteNode(ctx(t), "n0", false))
	put(2)
	if l := locators(t, f)["n2"]; l != first {
		t.Errorf("n2 has the locator %s, want %s, which the deleted node had", l, first)
	}
}

// A node gets no locator that its host refuses, and a new one if its host begins to use it.
func TestALocatorOfThePoolSuitsTheHost(t *testing.T) {
	f := open(t)
	s := small()
	s.Settings.Locators = netip.MustParsePrefix("fd00:77::/48")
	apply(t, f, s)
	avoid := func(l netip.Prefix) error {
		if l.Addr().Less(netip.MustParseAddr("fd00:77:0:3::")) {
			return errors.New("a link of the host has this prefix")
		}
		return nil
	}
	must.Succeed(t, f.PutNodeFromPool(ctx(t), joining(0), avoid))
	if l := locators(t, f)["n0"]; l != netip.MustParsePrefix("fd00:77:0:3::/64") {
		t.Errorf("n0 has the locator %s, want fd00:77:0:3::/64, the first that its host does not refuse", l)
	}
	later := func(l netip.Prefix) error { // the host has one more link
		if l == netip.MustParsePrefix("fd00:77:0:3::/64") {
			return errors.New("a link of the host has this prefix")
		}
		return avoid(l)
	}
	for range 2 { // the second time it keeps the locator
		must.Succeed(t, f.PutNodeFromPool(ctx(t), joining(0), later))
		if l := locators(t, f)["n0"]; l != netip.MustParsePrefix("fd00:77:0:4::/64") {
			t.Errorf("n0 has the locator %s after its host uses the last one, want fd00:77:0:4::/64", l)
		}
	}
	refuse := func(netip.Prefix) error { return errors.New("the host refuses all") }
	if err := f.PutNodeFromPool(ctx(t), joining(1), refuse); !IsWhy(err, Full) {
		t.Errorf("without a locator that the host accepts: %v, want a refusal", err)
	}
}

func TestAPoolThatIsMissingOrFullIsRefused(t *testing.T) {
	f := open(t)
	s := small()
	apply(t, f, s)
	if err := f.PutNodeFromPool(ctx(t), joining(0), nil); !IsWhy(err, Invalid) || !strings.Contains(err.Error(), "set settings.locators") {
		t.Errorf("without a pool: %v, want a refusal that names settings.locators", err)
	}
	s.Settings.Locators = netip.MustParsePrefix("fd00:77::/56")
	for i := 1; i < 256; i++ {
		s.Nodes = append(s.Nodes, model.Node{Name: fmt.Sprint("x", i), Underlay: addresses(fmt.Sprint("192.0.3.", i)), Locator: netip.MustParsePrefix(fmt.Sprintf("fd00:77:0:%x::/64", i))})
	}
	apply(t, f, s)
	if err := f.PutNodeFromPool(ctx(t), joining(0), nil); !IsWhy(err, Full) || !strings.Contains(err.Error(), "delete nodes that will not come back") {
		t.Errorf("with a full pool: %v, want a refusal that says what to delete", err)
	}
}

// A locator and a gateway's address that overlap are refused, whichever is written second.
func TestALocatorAroundAGatewaysAddressIsRefused(t *testing.T) {
	f := open(t)
	s := small()
	s.Nodes[0].Locator = netip.MustParsePrefix("fd00:77:0:1::/64")
	s.Gateways = []model.Gateway{{Name: "g", Addresses: addresses("fd00:77:0:2::9"), Encapsulation: model.VXLAN}}
	apply(t, f, s)
	b := s.Nodes[1]
	b.Locator = netip.MustParsePrefix("fd00:77:0:2::/64")
	if err := f.PutNode(ctx(t), b); !IsWhy(err, Invalid) {
		t.Errorf("a locator around a gateway's address: %v, want a refusal", err)
	}
	if err := f.PutGateway(ctx(t), model.Gateway{Name: "h", Addresses: addresses("fd00:77:0:1::9"), Encapsulation: model.VXLAN}); !IsWhy(err, Invalid) {
		t.Errorf("a gateway in a locator: %v, want a refusal", err)
	}
}

// The same for a locator that settings.locators derives.
func TestADerivedLocatorAroundAGatewaysAddressIsRefused(t *testing.T) {
	f := open(t)
	s := small()
	s.Settings.Locators = netip.MustParsePrefix("fd00:77::/32")
	s.Gateways = []model.Gateway{{Name: "g", Addresses: addresses("fd00:77:c000:304::9"), Encapsulation: model.VXLAN}}
	apply(t, f, s)
	if err := f.PutNode(ctx(t), model.Node{Name: "late", Underlay: addresses("192.0.3.4")}); !IsWhy(err, Invalid) {
		t.Errorf("a node whose locator is around a gateway's address: %v, want a refusal", err)
	}
	must.Succeed(t, f.PutNode(ctx(t), joining(1)))
	if err := f.PutGateway(ctx(t), model.Gateway{Name: "h", Addresses: addresses("fd00:77:c000:20b::9"), Encapsulation: model.VXLAN}); !IsWhy(err, Invalid) {
		t.Errorf("a gateway in the locator of 192.0.2.11: %v, want a refusal", err)
	}
}
