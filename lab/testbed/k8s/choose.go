package k8s

import (
	"context"
	"fmt"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chooseNodes returns the nodes with the given names. Without names it returns the first
// usable nodes without taints, in the order of their names. least is the smallest number.
func chooseNodes(all []core.Node, names []string, least int) ([]core.Node, error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b core.Node) int { return strings.Compare(a.Name, b.Name) })
	if len(names) > 0 {
		return namedNodes(all, names, least)
	}
	var chosen []core.Node
	var why []string
	for _, n := range all {
		err := usable(&n)
		if err == nil && tainted(&n) {
			err = fmt.Errorf("node %s has a taint; name the node in --nodes to use it", n.Name)
		}
		if err != nil {
			why = append(why, err.Error())
			continue
		}
		if len(chosen) < least {
			chosen = append(chosen, n)
		}
	}
	if len(chosen) < least {
		return nil, fmt.Errorf("the plan needs %d nodes, and %d of the cluster's %d can be used: %s", least, len(chosen), len(all), strings.Join(append(why, "add nodes"), "; "))
	}
	return chosen, nil
}

func namedNodes(all []core.Node, names []string, least int) ([]core.Node, error) {
	var known []string
	for _, n := range all {
		known = append(known, n.Name)
	}
	var chosen []core.Node
	for i, name := range names {
		at := slices.Index(known, name)
		if at < 0 {
			return nil, fmt.Errorf("the cluster has no node %q; its nodes: %s", name, strings.Join(known, ", "))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("--nodes names %s twice; give each node once", name)
		}
		if err := usable(&all[at]); err != nil {
			return nil, err
		}
		chosen = append(chosen, all[at])
	}
	if len(chosen) < least {
		return nil, fmt.Errorf("the plan needs %d nodes, and --nodes has %d; add nodes", least, len(chosen))
	}
	return chosen, nil
}

// usable returns the reason why no pod can be started on a node.
func usable(n *core.Node) error {
	if n.Spec.Unschedulable {
		return fmt.Errorf("node %s is cordoned or drained; `kubectl uncordon %s` makes it available", n.Name, n.Name)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == core.NodeReady && c.Status == core.ConditionTrue {
			return nil
		}
		if c.Type == core.NodeReady {
			return fmt.Errorf("node %s is not ready (%s: %s)", n.Name, c.Reason, c.Message)
		}
	}
	return fmt.Errorf("node %s is not ready: its kubelet has not reported", n.Name)
}

func tainted(n *core.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t core.Taint) bool {
		return t.Effect == core.TaintEffectNoSchedule || t.Effect == core.TaintEffectNoExecute
	})
}

// addressesOf lists a node's internal addresses.
func addressesOf(n *core.Node) (list []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == core.NodeInternalIP {
			list = append(list, a.Address)
		}
	}
	return list
}

// allNodes lists the cluster's nodes.
func (c *cluster) allNodes(ctx context.Context) ([]core.Node, error) {
	list, err := c.nodes.List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the cluster's nodes: %w", err)
	}
	return list.Items, nil
}
