package k8s

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"windtunnel/lab/testbed/remote"
)

// noteCarrier records the encapsulations by which the node's agent of vrouter sends packets to other
// nodes. pods are those of vrouter on the node; other networks have none. A failure is recorded, and
// fails no trial.
func (m *machine) noteCarrier(ctx context.Context, pods []podObject) {
	const agent = "agent" // the container of vrouter's manifest
	for _, p := range pods {
		if !slices.ContainsFunc(p.Spec.Containers, func(c container) bool { return c.Name == agent }) {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		defer cancel()
		out, said, err := remote.Run(ctx, nil, append(m.cluster.kubectl, "exec", "-n", p.Metadata.Namespace, p.Metadata.Name, "-c", agent, "--", "vrouter", "nh", "list", "-o", "json")...)
		if err != nil {
			err = fmt.Errorf("list the nexthops by pod %s: %w: %s", p.Metadata.Name, err, said)
		}
		used := ""
		if err == nil {
			used, err = carriers([]byte(out))
		}
		if err != nil {
			used = "not known: " + err.Error()
		}
		m.base.Note("vrouter encapsulation", used)
	}
}

// carriers returns the encapsulations of the nexthops that `vrouter nh list -o json` lists, sorted
// by name.
func carriers(nexthops []byte) (string, error) {
	var list []struct {
		Encapsulation string
		Paths         []struct{ Device string }
	}
	if err := json.Unmarshal(nexthops, &list); err != nil {
		return "", fmt.Errorf("read vrouter's nexthops: %w", err)
	}
	var used []string
	for _, n := range list {
		if n.Encapsulation != "" && len(n.Paths) > 0 && !slices.Contains(used, n.Encapsulation) {
			used = append(used, n.Encapsulation)
		}
	}
	slices.Sort(used)
	return strings.Join(used, ", "), nil
}
