package main

import (
	"fmt"
	"maps"
	"slices"

	"windtunnel/internal/phrase"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed/ssh"
)

// chooseHosts returns the hosts of the hosts file that the plan uses. A resumed run uses the
// hosts of its record. If the plan has a matrix, some of these may be missing from the file.
func (o *runOptions) chooseHosts(plan *suite.Plan) (*ssh.Hosts, error) {
	hosts, err := ssh.ReadHosts(o.testbed)
	if err != nil {
		return nil, err
	}
	switch {
	case o.hosts != nil:
		if o.lost, err = hosts.Resume(o.hosts); err == nil {
			err = enough(plan, o.lost)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.testbed, err)
		}
		return hosts, nil
	case plan.Matrix != nil:
		err = hosts.Only(plan.Matrix.Hosts)
	default:
		hosts.First(plan.Nodes)
	}
	o.hosts = hosts.Record()
	return hosts, err
}

// enough returns an error if a resumed run cannot continue without the lost hosts.
func enough(plan *suite.Plan, lost []string) error {
	if len(lost) == 0 {
		return nil
	}
	if plan.Matrix == nil {
		return fmt.Errorf("the file does not have all hosts of the run: %s; add them again, or start a new run", phrase.Some(lost, mostSkipped))
	}
	for i := range plan.Matrix.Len() {
		if lostHost(plan.Matrix.Pair(i), lost) == "" {
			return nil
		}
	}
	return fmt.Errorf("no pair of the run is left without these hosts: %s; add them again, or start a new run", phrase.Some(lost, mostSkipped))
}

// lostHost returns the first lost host of a pair; "" if there is none.
func lostHost(p suite.HostPair, lost []string) string {
	if i := slices.IndexFunc(lost, p.Has); i >= 0 {
		return lost[i]
	}
	return ""
}

func whyLost(host string) string {
	return "host " + host + " was not in the hosts file when the run was resumed"
}

// skipLost adds the pairs of the lost hosts to the skipped scenarios of a resumed matrix. It removes
// the pairs of hosts that are in the file again.
func skipLost(plan *suite.Plan, skipped map[string]string, lost []string) map[string]string {
	all := maps.Clone(skipped)
	if all == nil {
		all = map[string]string{}
	}
	maps.DeleteFunc(all, func(_, why string) bool {
		return slices.ContainsFunc(plan.Matrix.Hosts, func(h string) bool { return why == whyLost(h) })
	})
	for i := range plan.Matrix.Len() {
		pair := plan.Matrix.Pair(i)
		host := lostHost(pair, lost)
		if host == "" {
			continue
		}
		for _, sc := range plan.Scenarios {
			if id := suite.PairID(sc.ID, pair); all[sc.ID] == "" && all[id] == "" {
				all[id] = whyLost(host)
			}
		}
	}
	return all
}
