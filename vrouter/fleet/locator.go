package fleet

import (
	"context"
	"net/netip"

	"windtunnel/vrouter/model"
)

// PutNodeFromPool is like PutNode, but the fleet chooses the locator. A node keeps the locator
// that it has if avoid does not refuse it. Otherwise it gets a free one from the pool
// settings.locators. Every commit of a node depends on all other nodes, so two nodes never get
// the same locator. avoid refuses locators that the node's host cannot have; nil: it refuses none.
func (f *Fleet) PutNodeFromPool(ctx context.Context, n model.Node, avoid func(netip.Prefix) error) error {
	return f.put(ctx, Need{Around: n.Name}, func(v *View) *draft {
		n := n
		if n.Locator = v.nodes[n.Name].Locator; n.Locator.IsValid() && (avoid == nil || avoid(n.Locator) == nil) {
			return v.putNode(n)
		}
		free, err := model.State{Settings: v.settings, Nodes: v.Nodes(), Gateways: v.Gateways()}.FreeLocator(avoid)
		if err != nil {
			d := v.draft()
			why := Invalid
			if v.settings.Locators.IsValid() {
				why = Full
			}
			d.refused = &Refusal{why, err}
			return d
		}
		n.Locator = free
		return v.putNode(n)
	})
}
