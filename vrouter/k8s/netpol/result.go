package netpol

import (
	"maps"
	"slices"
	"strings"

	"windtunnel/vrouter/fib"
)

// Result is what the data path of a node looks up. It is read-only.
type Result struct {
	*fib.Grouping                   // of the pods on this node; the last result's pointer if nothing has changed
	Unknown       []Endpoint        // ports on this node whose pods are not known: they are closed
	Problems      map[Name][]string // of policies
}

// closed is the group of ports whose pods the API server has not named yet.
var closed = fib.Group{Number: 1, In: true, Out: true}

// Compile returns the result for the present objects. If only pods and endpoints have changed since the last call,
// the time depends mostly on these.
func (c *Compiler) Compile() Result {
	c.numbers.begin()
	if t := c.tables; t != nil {
		t.shared = shared{true, true, true, true}
		t.update(c.changed)
	} else {
		c.compileAll()
	}
	clear(c.changed)
	c.last = c.tables.grouping
	r := Result{Grouping: c.last, Problems: map[Name][]string{}}
	for name := range c.tables.unknown {
		r.Unknown = append(r.Unknown, c.endpoints[name].Endpoint)
	}
	slices.SortFunc(r.Unknown, func(a, b Endpoint) int { return strings.Compare(a.Name, b.Name) })
	for name, p := range c.policies {
		if all := p.allProblems(); len(all) > 0 {
			r.Problems[name] = all
		}
	}
	return r
}

// compileAll makes new tables.
func (c *Compiler) compileAll() {
	t := newTables(c)
	c.tables = t
	c.regions.find()
	for _, r := range c.regions.all {
		peers := make(map[*peer]bool, len(r.peers))
		for _, p := range r.peers {
			peers[p] = true
		}
		t.ofRegions[r] = t.identity("addresses\x00"+r.text, peers, nil, nil)
		t.ofRegions[r].users++
	}
	all := make(map[string]bool, len(c.endpoints))
	for name := range c.endpoints {
		all[name] = true
	}
	for vrf, n := range c.local {
		for p := range c.regions.all {
			if n > 0 {
				t.reset(fib.RouteKey{VRF: vrf, Prefix: p})
			}
		}
	}
	t.update(all)
	for text, number := range c.numbers.known {
		if t.identities[number] == nil && t.groups[text] == nil {
			c.numbers.free(text)
		}
	}
	if l, is := c.last, t.grouping; l != nil && maps.Equal(l.Groups, is.Groups) && maps.Equal(l.Identities, is.Identities) && maps.Equal(l.Allows, is.Allows) {
		t.grouping = l
	}
}

func (c *Compiler) regionsOf(e *endpoint) []*region {
	if e.version != c.regions.version {
		e.regions, e.version = e.regions[:0], c.regions.version
		for _, a := range e.IPs {
			e.regions = append(e.regions, c.regions.of(a))
		}
	}
	return e.regions
}
