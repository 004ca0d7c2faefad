package k8s

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/lists"
)

// chooseNodes returns the first least of the named nodes, or all of them if every is set.
// Without names it returns the first usable nodes without taints, in the order of their
// names, or all of them if every is set. These nodes have the same CPU architecture, because most
// images are for one architecture only. least is the number of nodes that the run needs. left has
// the reason for each node that was not chosen.
func chooseNodes(all []nodeObject, names []string, least int, every bool) (chosen []nodeObject, left []string, err error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b nodeObject) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) })
	if len(names) > 0 {
		if !every {
			names = names[:min(least, len(names))]
		}
		chosen, err = namedNodes(all, names, least)
		return chosen, nil, err
	}
	var usables []nodeObject
	for _, n := range all {
		err := usable(&n)
		if err == nil && tainted(&n) {
			err = fmt.Errorf("node %s has a taint; name the node in --nodes to use it", n.Metadata.Name)
		}
		if err != nil {
			left = append(left, err.Error())
			continue
		}
		usables = append(usables, n)
	}
	enough := least
	if every {
		enough = len(usables)
	}
	chosen = oneArchitecture(usables, enough)
	for _, n := range usables {
		if a := n.Status.NodeInfo.Architecture; a != chosen[0].Status.NodeInfo.Architecture {
			left = append(left, fmt.Sprintf("node %s has another CPU architecture (%s); name the nodes in --nodes if the image is for several", n.Metadata.Name, a))
		}
	}
	if len(chosen) < least {
		return nil, left, fmt.Errorf("the plan needs %d nodes, and %d of the cluster's %d can be used: %s", least, len(chosen), len(all), strings.Join(append(left, "add nodes"), "; "))
	}
	if !every {
		chosen = chosen[:least]
	}
	return chosen, left, nil
}

// oneArchitecture returns the nodes of the first CPU architecture that has enough of them,
// or the nodes of the architecture with the most nodes.
func oneArchitecture(all []nodeObject, least int) (most []nodeObject) {
	same := map[string][]nodeObject{}
	for _, n := range all {
		same[n.Status.NodeInfo.Architecture] = append(same[n.Status.NodeInfo.Architecture], n)
	}
	for _, n := range all {
		group := same[n.Status.NodeInfo.Architecture]
		if len(group) > len(most) {
			most = group
		}
		if len(most) >= least {
			break
		}
	}
	return most
}

func namedNodes(all []nodeObject, names []string, least int) ([]nodeObject, error) {
	known := lists.Map(all, func(n nodeObject) string { return n.Metadata.Name })
	var chosen []nodeObject
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
func usable(n *nodeObject) error {
	if os := n.Status.NodeInfo.OperatingSystem; os != "linux" {
		return fmt.Errorf("node %s runs the operating system %q, and the lab needs linux", n.Metadata.Name, os)
	}
	if n.Spec.Unschedulable {
		return fmt.Errorf("node %s is cordoned or drained; `kubectl uncordon %s` makes it available", n.Metadata.Name, n.Metadata.Name)
	}
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return nil
		}
		if c.Type == "Ready" {
			return fmt.Errorf("node %s is not ready (%s)", n.Metadata.Name, given(c.Reason, c.Message))
		}
	}
	return fmt.Errorf("node %s is not ready: its kubelet has not reported", n.Metadata.Name)
}

func tainted(n *nodeObject) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t taint) bool {
		return t.Effect == "NoSchedule" || t.Effect == "NoExecute"
	})
}

// addressesOf lists a node's internal addresses.
func addressesOf(n *nodeObject) (list []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == "InternalIP" {
			list = append(list, a.Address)
		}
	}
	return list
}

// allNodes lists the cluster's nodes.
func (c *cluster) allNodes(ctx context.Context) ([]nodeObject, error) {
	all, err := list[nodeObject](ctx, c, nodesPath)
	if err != nil {
		return nil, c.contactError(ctx, "list the cluster's nodes", err)
	}
	return all, nil
}
