package fib

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
	"windtunnel/vrouter/model"
)

// letters is the inverse of encaps. t is Translated.
func letters(all []model.Encapsulation) (text string) {
	for _, e := range all {
		text += map[model.Encapsulation]string{model.Direct: "d", model.MPLSoUDP: "u", model.MPLSoGRE: "g", model.VXLAN: "v", model.Translated: "t"}[e]
	}
	return text
}

func offering(text string) []model.Node {
	return []model.Node{{Name: "a", Encapsulations: encaps(text)}, {Name: "b", Encapsulations: encaps(text)}}
}

const acceptTime = AcceptHolds * HoldTime

func always(model.Node) bool { return true }

func never(model.Node) bool { return false }

// start is the time of the first change in the tests of Offers.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// The columns of each table: seconds since the first change, what the nodes offer from then on
// ("": no change), what node a then sends with, and what it accepts in addition.
func TestNodesContinueWithTheFormerEncapsulation(t *testing.T) {
	type step struct {
		after        float64
		offer        string
		send, accept string
	}
	for _, c := range []struct {
		what   string
		before string
		steps  []step
	}{
		{"one tunnel for another", "v", []step{{0, "u", "vu", "v"}, {4.9, "", "vu", "v"}, {5, "", "u", "v"}, {29.9, "", "u", "v"}, {30, "", "u", ""}}},
		{"a better tunnel is added", "v", []step{{0, "u v", "vu", ""}, {5, "", "uv", ""}}},
		{"a tunnel is removed", "u v", []step{{0, "v", "vu", "u"}, {5, "", "v", "u"}, {30, "", "v", ""}}},
		{"direct is added", "v", []step{{0, "d v", "dv", ""}}},
		{"direct is removed", "d v", []step{{0, "v", "vd", "d"}, {5, "", "v", "d"}, {30, "", "v", ""}}},
		{"direct for a tunnel: the link may be tested again late", "v", []step{{0, "d", "dv", "v"}, {24.9, "", "dv", "v"}, {25, "", "d", "v"}, {30, "", "d", ""}}},
		{"a tunnel for direct", "d", []step{{0, "v", "dv", "d"}, {5, "", "v", "d"}, {30, "", "v", ""}}},
		{"another order", "d v u", []step{{0, "u v d", "uvd", ""}}},
		{"two changes in HoldTime: the other node may have none", "v", []step{{0, "u", "vu", "v"}, {1, "g", "vug", "vu"}, {5, "", "ug", "vu"}, {6, "", "g", "vu"}, {30, "", "g", "u"}, {31, "", "g", ""}}},
		{"an encapsulation that came and went: the other node may not know it", "v", []step{{0, "g v", "vg", ""}, {1, "u", "vgu", "gv"}}},
		{"an encapsulation that came, went and came back: the same", "v", []step{{0, "u", "vu", "v"}, {2, "v", "vu", "u"}, {4, "u", "vu", "v"}, {8.9, "", "vu", "v"}, {9, "", "u", "v"}}},
		{"back in HoldTime: as if nothing had changed", "v", []step{{0, "u", "vu", "v"}, {4, "v", "vu", "u"}, {9, "", "v", "u"}, {34, "", "v", ""}}},
		{"back after HoldTime: the other node uses the new one", "v", []step{{0, "u", "vu", "v"}, {6, "v", "uv", "u"}, {11, "", "v", "u"}}},
	} {
		o := (&Offers{}).Next(offering(c.before), "a", always, start.Add(-time.Hour))
		offered := c.before
		for _, s := range c.steps {
			now := start.Add(time.Duration(s.after * float64(time.Second)))
			if s.offer != "" {
				offered = s.offer
				o = o.Next(offering(s.offer), "a", always, now)
			}
			all, next := o.Handovers(now)
			h, changes := all["b"]
			if !changes {
				h.Send = encaps(offered)
			}
			if letters(h.Send) != s.send || letters(h.Accept) != s.accept {
				t.Errorf("%s: after %v s node a sends with %q and still accepts %q, want %q and %q", c.what, s.after, letters(h.Send), letters(h.Accept), s.send, s.accept)
			}
			if changes == next.IsZero() || changes && !next.After(now) {
				t.Errorf("%s: after %v s the next change is at %v, a handover is under way: %v", c.what, s.after, next, changes)
			}
		}
	}
}

// Where no packet can be lost, the new encapsulation is used at once.
func TestPairsWithoutPacketsDoNotWait(t *testing.T) {
	o := (&Offers{}).Next(offering("v"), "a", always, start)
	o = o.Next(offering("u"), "a", never, start.Add(time.Second))
	all, _ := o.Handovers(start.Add(time.Second))
	must.Equal(t, "uv", letters(all["b"].Send))
	o = o.Next(append(offering("u"), model.Node{Name: "c", Encapsulations: encaps("u")}), "a", always, start.Add(2*time.Second))
	if all, _ := o.Handovers(start.Add(2 * time.Second)); all["c"].Send != nil {
		t.Errorf("the handover to the new node c is %+v, want none", all["c"])
	}
	if o = o.Next(offering("u")[:1], "a", always, start.Add(3*time.Second)); len(o.Pairs) != 0 {
		t.Errorf("after node b was deleted its offers are %+v", o.Pairs["b"])
	}
}

// If direct is added again, the results of earlier tests do not count, unless the other node
// accepts direct all the time.
func TestDirectIsTestedAgainAfterItWasRemoved(t *testing.T) {
	at := func(seconds time.Duration) time.Time { return start.Add(seconds * time.Second) }
	o := (&Offers{}).Next(offering("v"), "a", always, at(-60)).Next(offering("d v"), "a", always, at(-30))
	for _, c := range []struct {
		offer string
		now   time.Duration
		want  time.Time
	}{{"v", 0, at(-30)}, {"d v", 4, at(-30)}, {"v d", 10, at(-30)}, {"v", 20, at(-30)}, {"d v", 26, at(26)}} {
		if o = o.Next(offering(c.offer), "a", always, at(c.now)); o.Since("b", model.Direct) != c.want {
			t.Errorf("after %d s, when the nodes offer %q, tests since %v count, want %v", c.now, c.offer, o.Since("b", model.Direct), c.want)
		}
	}
}

// A locator that goes away with direct stays known as long as translated packets are accepted.
func TestTranslatedPacketsAreAcceptedAfterDirectIsRemoved(t *testing.T) {
	own, other := netip.MustParsePrefix("fd00:0:0:1::/64"), netip.MustParsePrefix("fd00:0:0:2::/64")
	before := offering("d v")
	before[0].Locator, before[1].Locator = own, other
	o := (&Offers{}).Next(before, "a", always, start.Add(-time.Hour)).Next(offering("v"), "a", always, start)
	all, _ := o.Handovers(start.Add(time.Second))
	if h := all["b"]; letters(h.Accept) != "dt" || h.Own != own || h.Other != other {
		t.Errorf("the handover is %+v, want that direct and translated packets are accepted, with the locators %s and %s", h, own, other)
	}
	if all, _ := o.Handovers(start.Add(acceptTime)); len(all) != 0 {
		t.Errorf("after %v the handovers are %+v, want none", acceptTime, all)
	}
}

// If the system's clock was set back, a handover does not last until the former time.
func TestAHandoverEndsAlthoughTheClockIsSetBack(t *testing.T) {
	o := (&Offers{}).Next(offering("v"), "a", always, start.Add(-time.Hour)).Next(offering("u"), "a", always, start)
	for _, c := range []struct {
		now  time.Duration
		want int
	}{{-time.Hour, 0}, {-acceptTime / 2, 1}, {0, 1}} {
		if all, _ := o.Handovers(start.Add(c.now)); len(all) != c.want {
			t.Errorf("%v after the change the handovers are %+v, want %d", c.now, all, c.want)
		}
	}
}

// The agent saves the offers, so a restart does not end a handover.
func TestOffersStayAfterARestart(t *testing.T) {
	before := offering("d v")
	before[0].Locator, before[1].Locator = netip.MustParsePrefix("fd00:0:0:1::/64"), netip.MustParsePrefix("fd00:0:0:2::/64")
	o := (&Offers{}).Next(before, "a", always, start.Add(-time.Hour)).Next(offering("u"), "a", always, start)
	text := must.Get(json.Marshal(o))(t)
	var read Offers
	must.Succeed(t, json.Unmarshal(text, &read))
	want, _ := o.Handovers(start.Add(time.Second))
	if got, _ := read.Handovers(start.Add(time.Second)); !reflect.DeepEqual(got, want) || len(want) != 1 {
		t.Errorf("the handovers of saved offers are %+v, want %+v", got, want)
	}
}

// Whatever changes the two nodes see, and in whatever order up to HoldTime apart, each sends
// only with encapsulations that the other accepts at that time.
func TestEachNodeAcceptsWhatTheOtherSends(t *testing.T) {
	states := []string{"v", "u", "g", "u v", "v u", "g u v", "u g"}
	for i := range 300 {
		var at [2][]float64 // when each node gets each state
		var texts []string
		for j := range 5 {
			texts = append(texts, states[(i*31+j*j*17+i/7*j)%len(states)])
			begin := float64(j)*[]float64{0.1, 1, 4, 6, 20}[i%5] + float64(j)*0.01
			delay := []float64{0, 0.1, 2, 4.8}[(i/5+j)%4]
			for side := range 2 {
				get := begin
				if (i/20+j)%2 == side {
					get += delay
				}
				if j > 0 {
					get = max(get, at[side][j-1])
				}
				at[side] = append(at[side], get)
			}
		}
		if broken := disagreement(texts, at); broken != "" {
			t.Fatalf("states %q at %.2f: %s", texts, at, broken)
		}
	}
}

// disagreement plays changes of the states of nodes a and b. It returns an encapsulation that
// a node sends and the other does not accept; empty: there is none.
func disagreement(texts []string, at [2][]float64) string {
	var offers [2]*Offers
	current := [2]int{}
	first := start.Add(-time.Hour)
	for side, name := range []string{"a", "b"} {
		offers[side] = (&Offers{}).Next(offering(texts[0]), name, always, first)
	}
	last := len(texts) - 1
	end := max(at[0][last], at[1][last]) + 2*HoldTime.Seconds()
	for seconds := 0.0; seconds < end; seconds += 0.2 {
		now := start.Add(time.Duration(seconds * float64(time.Second)))
		var facts [2]Facts
		for side, name := range []string{"a", "b"} {
			for next := current[side] + 1; next < len(texts) && at[side][next] <= seconds; next++ {
				offers[side] = offers[side].Next(offering(texts[next]), name, always, now)
				current[side] = next
			}
			facts[side].Handovers, _ = offers[side].Handovers(now)
		}
		for side, name := range []string{"a", "b"} {
			other := []string{"b", "a"}[side]
			own, theirs := compilerOf(texts[current[side]], name, facts[side]), compilerOf(texts[current[1-side]], other, facts[1-side])
			all, recent := own.sendable(own.node(other))
			for _, link := range []Link{LinkWorks, LinkUntested} {
				sends, _ := choose(all, recent, link, NoLink)
				if accepted := theirs.accepted(theirs.node(name)); !slices.Contains(accepted, sends.encap) {
					return fmt.Sprintf("after %.1f s node %s sends with %s (state of the link: %d), but node %s accepts %v", seconds, name, sends.encap, link, other, accepted)
				}
			}
		}
	}
	return ""
}

func compilerOf(text, node string, f Facts) *compiler {
	c := &compiler{state: model.Slice{State: model.State{Nodes: offering(text)}}, facts: f}
	c.self = c.node(node)
	return c
}

func (c *compiler) node(name string) *model.Node {
	for i := range c.state.Nodes {
		if c.state.Nodes[i].Name == name {
			return &c.state.Nodes[i]
		}
	}
	return nil
}

// After a locator is removed, the nodes still accept translated packets, but soon do not send them
// any more: the other node may stop to accept them earlier.
func TestARemovedLocatorIsNotUsedUntilItIsRefused(t *testing.T) {
	before := offering("d v")
	before[0].Locator, before[1].Locator = prefix("fd00:0:0:1::/64"), prefix("fd00:0:0:2::/64")
	o := (&Offers{}).Next(before, "a", always, start.Add(-time.Hour)).Next(offering("d v"), "a", always, start)
	for _, c := range []struct {
		after   time.Duration
		sends   bool
		accepts bool
	}{{HoldTime - 1, true, true}, {HoldTime, false, true}, {acceptTime, false, false}} {
		all, _ := o.Handovers(start.Add(c.after))
		nodes := offering("d v")
		if h, changes := all["b"]; changes {
			nodes[0].Locator, nodes[1].Locator = h.Own, h.Other
		}
		compiler := &compiler{state: model.Slice{State: model.State{Nodes: nodes}}, facts: Facts{
			Handovers: all,
			Link:      func(netip.Addr, uint32) Link { return LinkWorks },
			Way:       func(netip.Addr, netip.Addr) ([]layout.Path, int) { return []layout.Path{{}}, 1500 },
		}}
		compiler.self = compiler.node("a")
		sends, accepts := compiler.locatorLink(compiler.node("b")) == LinkWorks, compiler.acceptsTranslated(compiler.node("b"))
		if sends != c.sends || accepts != c.accepts {
			t.Errorf("%v after the change node a sends translated packets: %v, and accepts them: %v; want %v and %v", c.after, sends, accepts, c.sends, c.accepts)
		}
	}
}

// A node and another node keep their former locators until the handover ends, whatever locators
// they get before. They soon take a tunnel, because the other node may end its handover earlier. If
// they have no tunnel in common, they translate with the former locators until the end.
func TestAFormerLocatorIsUsedUntilTheHandoverEnds(t *testing.T) {
	p := prefix
	a, b := p("fd00:0:0:a::/64"), p("fd00:0:0:b::/64")
	type step struct {
		after      time.Duration
		own, other netip.Prefix // of the state from then on; zero: no change
		wantOwn    netip.Prefix // of the handover; zero: no handover with locators
		translates bool
	}
	const s = time.Second
	for _, c := range []struct {
		what, offer string
		steps       []step
	}{
		{"this node's changes", "d v", []step{{0, p("fd00:0:0:c::/64"), b, a, true}, {HoldTime, a, a, a, false}, {acceptTime - 1, a, a, a, false}, {acceptTime, a, a, netip.Prefix{}, false}}},
		{"the other node's changes", "d v", []step{{0, a, p("fd00:0:0:c::/64"), a, true}, {HoldTime, a, a, a, false}, {acceptTime, a, a, netip.Prefix{}, false}}},
		{"no tunnel", "d", []step{{0, p("fd00:0:0:c::/64"), b, a, true}, {acceptTime - 1, a, a, a, true}, {acceptTime, a, a, netip.Prefix{}, false}}},
		{"it changes twice", "d v", []step{{0, p("fd00:0:0:c::/64"), b, a, true}, {10 * s, p("fd00:0:0:d::/64"), b, a, false}, {acceptTime - 1, a, a, a, false}, {acceptTime, a, a, netip.Prefix{}, false}}},
		{"it changes back", "d v", []step{{0, p("fd00:0:0:c::/64"), b, a, true}, {2 * s, a, b, netip.Prefix{}, false}}},
		{"it is removed, and another is added", "d v", []step{{0, netip.Prefix{}, b, a, true}, {10 * s, p("fd00:0:0:c::/64"), b, a, false}, {acceptTime - 1, a, a, a, false}, {acceptTime, a, a, netip.Prefix{}, false}}},
	} {
		nodes := offering(c.offer)
		nodes[0].Locator, nodes[1].Locator = a, b
		o := (&Offers{}).Next(nodes, "a", always, start.Add(-time.Hour))
		for i, step := range c.steps {
			now := start.Add(step.after)
			if step.own != step.other {
				nodes = slices.Clone(nodes)
				nodes[0].Locator, nodes[1].Locator = step.own, step.other
				o = o.Next(nodes, "a", always, now)
			}
			all, _ := o.Handovers(now)
			wantOther := b
			if !step.wantOwn.IsValid() {
				wantOther = netip.Prefix{}
			}
			if h := all["b"]; h.Own != step.wantOwn || h.Other != wantOther || h.Translates != step.translates {
				t.Errorf("%s, step %d: the handover is %+v, want the former locators %s and %s, and that it translates: %v", c.what, i, h, step.wantOwn, wantOther, step.translates)
			}
		}
	}
}
