package fib

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"windtunnel/vrouter/model"
)

// HoldTime is the default of Offers.Hold.
const HoldTime = 5 * time.Second

// Offers are the encapsulations that this node and each other node have in common, and had in
// common until a short time ago. They let a change of encapsulations lose no packet although the
// two nodes get it at different times: a node accepts the encapsulations of before for a time,
// and sends with an encapsulation of before until the other node has the change. The zero value
// is ready for use.
type Offers struct {
	Pairs map[string]*PairOffers `json:"pairs"` // by name of the other node
	// Hold is the time for which a node still sends with a former encapsulation after a change. The
	// other node must have the change before this time ends. All nodes must use the same value.
	// 0: HoldTime.
	Hold time.Duration `json:"-"`
}

// AcceptHolds times Hold is the time for which a node still accepts former encapsulations after a
// change. The other node may get the change Hold later, and then sends with a former encapsulation
// for Hold. The rest is a margin for changes that remove one of several encapsulations.
const AcceptHolds = 6

func (o *Offers) hold() time.Duration { return cmp.Or(o.Hold, HoldTime) }

// accept is the time for which a node still accepts former encapsulations.
func (o *Offers) accept() time.Duration { return AcceptHolds * o.hold() }

// PairOffers are the encapsulations of this node and another node.
type PairOffers struct {
	Common []Offer `json:"common"`           // both nodes offer them, best first; Translated is last
	Former []Offer `json:"former,omitempty"` // both nodes offered them before, in the order of Until
}

// Offer is an encapsulation that two nodes have or had in common.
type Offer struct {
	Encapsulation model.Encapsulation `json:"encapsulation"`
	Since         time.Time           `json:"since,omitzero"` // zero: no other encapsulation was in use before
	Until         time.Time           `json:"until,omitzero"` // of PairOffers.Former
	Own           netip.Prefix        `json:"own,omitzero"`   // with Translated: locator of this node
	Other         netip.Prefix        `json:"other,omitzero"` // with Translated: locator of the other node
}

// Handover is what remains of earlier encapsulations of this node and another node.
type Handover struct {
	Accept []model.Encapsulation // this node accepts them, although not both nodes offer them any more
	Send   []model.Encapsulation // encapsulations that this node may send with, best first
	Recent int                   // so many encapsulations at the end of Send may not be known to the other node yet
	// Own and Other are the locators of this node and the other node, if Accept has Translated.
	// They stay in use until the handover ends, also if the nodes have other locators by then.
	Own, Other netip.Prefix
	Translates bool // this node may still send translated packets, if Accept has Translated
}

// Accepts reports whether this node still accepts an encapsulation that not both nodes offer.
func (h Handover) Accepts(e model.Encapsulation) bool { return slices.Contains(h.Accept, e) }

// Next returns the offers after a change of the nodes in the desired state. node is the name of
// this node. reached reports whether this node sent packets to another node in the state before:
// if it did not, no packet can be lost.
func (o *Offers) Next(nodes []model.Node, node string, reached func(model.Node) bool, now time.Time) *Offers {
	i := slices.IndexFunc(nodes, func(n model.Node) bool { return n.Name == node })
	if i < 0 {
		return o
	}
	pairs := make(map[string]*PairOffers, len(nodes))
	for _, n := range nodes {
		if n.Name != node {
			pairs[n.Name] = o.next(o.Pairs[n.Name], offersOf(nodes[i], n), reached(n), now)
		}
	}
	return &Offers{pairs, o.Hold}
}

// offersOf returns what two nodes have in common. self is this node.
func offersOf(self, other model.Node) (common []Offer) {
	for _, e := range commonEncapsulations(self, other) {
		common = append(common, Offer{Encapsulation: e})
	}
	if self.Translates() && other.Translates() {
		common = append(common, Offer{Encapsulation: model.Translated, Own: self.Locator, Other: other.Locator})
	}
	return common
}

// next returns the offers of a pair after it has these in common. A nil pair is new. If a locator
// changes again before its handover has ended, the locators in between were never in use.
func (o *Offers) next(p *PairOffers, common []Offer, reached bool, now time.Time) *PairOffers {
	if p == nil {
		return &PairOffers{Common: common}
	}
	next := &PairOffers{Common: common}
	kept := false // the locators of before p.Common are in use
	for _, f := range p.Former {
		if !now.Before(f.Until.Add(o.accept())) {
			continue
		}
		kept = kept || f.Encapsulation == model.Translated
		if !hasOffer(common, f) {
			next.Former = append(next.Former, f)
		}
	}
	for _, was := range p.Common {
		if !hasOffer(common, was) && !(kept && was.Encapsulation == model.Translated) {
			was.Until = now
			next.Former = append(next.Former, was)
		}
	}
	for i := range common {
		if reached {
			common[i].Since = p.since(common[i].Encapsulation, o.hold(), now)
		}
	}
	return next
}

// since returns the time since which the pair has an encapsulation in common. If the pair has it
// again after a time shorter than hold, that time does not count: the other node accepts it
// also if it has not seen any of the changes. But the other node may never have known an
// encapsulation that was only in common for a time shorter than hold.
func (p *PairOffers) since(e model.Encapsulation, hold time.Duration, now time.Time) time.Time {
	if was := find(p.Common, e); was != nil {
		return was.Since
	}
	if was := find(p.Former, e); was != nil && now.Before(was.Until.Add(hold)) && was.doubtful(hold).IsZero() {
		return was.Since
	}
	return now
}

// isTested reports whether a test shows that the other node accepts an encapsulation. Then the
// two nodes need no other until both have it.
func isTested(e model.Encapsulation) bool { return e == model.Direct || e == model.Translated }

// Since returns the time since which this node and another have had an encapsulation in common,
// now or until a short time ago. Results of earlier tests do not count.
func (o *Offers) Since(other string, e model.Encapsulation) time.Time {
	if p := o.Pairs[other]; p != nil {
		for _, all := range [][]Offer{p.Common, p.Former} {
			if f := find(all, e); f != nil {
				return f.Since
			}
		}
	}
	return time.Time{}
}

// hasOffer reports whether an encapsulation is among the offers, with the same locators.
func hasOffer(all []Offer, o Offer) bool {
	same := find(all, o.Encapsulation)
	return same != nil && same.Own == o.Own && same.Other == o.Other
}

func find(all []Offer, e model.Encapsulation) *Offer {
	for i := range all {
		if all[i].Encapsulation == e {
			return &all[i]
		}
	}
	return nil
}

// Handovers returns the handovers that are under way, by name of the other node. next is the time
// of their next change; zero: none is under way.
func (o *Offers) Handovers(now time.Time) (all map[string]Handover, next time.Time) {
	all = map[string]Handover{}
	ahead := func(begin time.Time, length time.Duration) bool {
		end := begin.Add(length)
		if !now.Before(end) || begin.After(now.Add(o.accept())) { // the system's clock was set back
			return false
		}
		if next.IsZero() || end.Before(next) {
			next = end
		}
		return true
	}
	for name, p := range o.Pairs {
		if h, changes := o.handover(p, ahead); changes {
			all[name] = h
		}
	}
	return all, next
}

// handover returns the pair's handover. changes is false if none is under way. ahead reports
// whether the end of a time is ahead.
func (o *Offers) handover(p *PairOffers, ahead func(begin time.Time, length time.Duration) bool) (h Handover, changes bool) {
	var held []Offer
	var recent []model.Encapsulation
	former := o.hold()
	if !p.hasTunnel() {
		// The link may not work before a later test. The other node accepts this long, if it got the change at
		// most hold earlier.
		former = o.accept() - o.hold()
	}
	for _, f := range p.Former {
		if !ahead(f.Until, o.accept()) {
			continue
		}
		h.Accept = append(h.Accept, f.Encapsulation)
		if f.Encapsulation == model.Translated {
			h.Own, h.Other, h.Translates = f.Own, f.Other, ahead(f.Until, o.hold()) || find(p.Common, model.Translated) != nil && !p.hasTunnel()
		} else if ahead(f.Until, former) {
			held = append(held, f)
		}
	}
	for _, c := range p.Common {
		switch {
		case c.Encapsulation == model.Translated: // goes with Direct
		case isTested(c.Encapsulation):
			h.Send = append(h.Send, c.Encapsulation)
		case ahead(c.Since, o.hold()):
			recent = append(recent, c.Encapsulation)
		default:
			h.Send = append(h.Send, c.Encapsulation)
		}
	}
	slices.SortStableFunc(held, func(x, y Offer) int { return x.doubtful(o.hold()).Compare(y.doubtful(o.hold())) })
	for _, f := range held {
		h.Send = append(h.Send, f.Encapsulation)
	}
	h.Send, h.Recent = append(h.Send, recent...), len(recent)
	return h, len(h.Accept)+len(recent) > 0
}

// hasTunnel reports whether the pair has a tunnel in common.
func (p *PairOffers) hasTunnel() bool {
	return slices.ContainsFunc(p.Common, func(o Offer) bool { return !isTested(o.Encapsulation) })
}

// doubtful returns the beginning of a former offer that ended within hold: the other node may
// not have known it, so older offers are better. It is zero for other offers.
func (f Offer) doubtful(hold time.Duration) time.Time {
	if f.Until.Sub(f.Since) < hold {
		return f.Since
	}
	return time.Time{}
}
