package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDiffPortsFindsEachDifference compares random lists, which share some pointers and have
// equal ports at other pointers.
func TestDiffPortsFindsEachDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var before, after []*CompactPort
		want, got := map[string]bool{}, map[string]bool{}
		for i := range r.IntN(12) {
			at := Place{fmt.Sprint("n", r.IntN(2)), fmt.Sprint("h", r.IntN(2))}
			make := func(router bool) *CompactPort {
				p := Port{Name: fmt.Sprint("p", i), Network: at.Network, Node: at.Node, Router: router}
				c := p.Compact(&Place{at.Network, at.Node})
				return &c
			}
			p := make(false)
			switch r.IntN(5) {
			case 0:
				before, after = append(before, p), append(after, p)
			case 1:
				before, after = append(before, p), append(after, make(false))
			case 2:
				before, after = append(before, p), append(after, make(true))
				want["changed "+p.Name] = true
			case 3:
				before = append(before, p)
				want["deleted "+p.Name] = true
			case 4:
				after = append(after, p)
				want["new "+p.Name] = true
			}
		}
		slices.SortFunc(before, ComparePorts)
		slices.SortFunc(after, ComparePorts)
		DiffPorts(before, after, func(was, is *CompactPort) {
			switch {
			case was == nil:
				got["new "+is.Name] = true
			case is == nil:
				got["deleted "+was.Name] = true
			default:
				got["changed "+is.Name] = was.Name == is.Name && !was.Router && is.Router
			}
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("differences %v, want %v", got, want)
		}
		if on := (Slice{All: after}).On("n1", "h0"); slices.ContainsFunc(on, func(p *CompactPort) bool { return p.Network != "n1" || p.Node != "h0" }) ||
			len(on) != len(slices.DeleteFunc(slices.Clone(after), func(p *CompactPort) bool { return p.Network != "n1" || p.Node != "h0" })) {
			t.Fatalf("ports of n1 on h0: %v", on)
		}
	}
}
