package experiment

import (
	"errors"
	"maps"
	"math/rand/v2"

	"windtunnel/lab/probe"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
	"windtunnel/lab/testbed"
)

// suspectAfter is the number of a host's consecutive failures after which its trials are
// no longer repeated. A lost host costs many seconds in each attempt.
const suspectAfter = 3

// suspect reports whether trials between the hosts are not repeated.
func (e *Experiment) suspect(p suite.HostPair) bool {
	return e.failures[p.From] >= suspectAfter || e.failures[p.To] >= suspectAfter
}

// observe counts the failures of hosts. A partner of a lost host is no suspect for long,
// because its other trials succeed.
func (e *Experiment) observe(p suite.HostPair, s *sample.Sample) {
	if p == (suite.HostPair{}) {
		return
	}
	if e.failures == nil {
		e.failures = map[string]int{}
	}
	for _, host := range []string{p.From, p.To} {
		switch {
		case s.OK():
			e.failures[host] = 0
		case s.Failure.Kind == sample.AgentLost, s.Failure.Kind == sample.SetupFailed, s.Failure.Kind == sample.NoConnectivity:
			e.failures[host]++
		}
	}
}

// rounds returns a block of a matrix: every scenario once between every pair of hosts. The
// order of the rounds is random. In a round the scenarios follow each other in random
// order, so that those of one pair are measured close to each other.
func (e *Experiment) rounds(block int) (list []entry) {
	rng := rand.New(rand.NewPCG(e.Seed, uint64(block)))
	rounds := e.Plan.Matrix.Rounds()
	for _, r := range rng.Perm(len(rounds)) {
		for _, sc := range rng.Perm(len(e.Plan.Scenarios)) {
			for _, p := range rng.Perm(len(rounds[r])) {
				list = append(list, entry{scenario: sc, pair: rounds[r][p]})
			}
		}
	}
	return list
}

// hosts returns the hosts of a trial; the zero value without a matrix.
func (e *Experiment) hosts(q queued) suite.HostPair {
	if e.Plan.Matrix == nil {
		return suite.HostPair{}
	}
	return e.Plan.Matrix.Pair(q.pair)
}

// scenario returns the scenario of a trial, with its hosts.
func (e *Experiment) scenario(q queued) *suite.Scenario {
	if e.Plan.Matrix == nil {
		return &e.Plan.Scenarios[q.scenario]
	}
	sc := e.Plan.Scenarios[q.scenario].Between(e.hosts(q))
	return &sc
}

// executorOf returns the executor of a scenario's testbed.
func executorOf(x testbed.Executor, sc *suite.Scenario) (testbed.Executor, error) {
	if sc.Hosts == (suite.HostPair{}) {
		return x, nil
	}
	c, ok := x.(testbed.Chooser)
	if !ok {
		return nil, errors.New("the scenario runs between two named hosts, and the testbed is on one machine; give a hosts file with --testbed")
	}
	return c.Between(sc.Hosts.From, sc.Hosts.To)
}

// skipsOfPairs is Skips for a plan with a matrix. A scenario that cannot run between any
// pair has one entry, with the reason of the first pair.
func skipsOfPairs(plan *suite.Plan, x testbed.Executor, facts []*probe.Facts) map[string]string {
	skips, at := map[string]string{}, map[string]int{}
	for i, host := range plan.Matrix.Hosts {
		at[host] = i
	}
	for i := range plan.Scenarios {
		lacking := map[string]string{}
		first := ""
		for k := range plan.Matrix.Len() {
			sc := plan.Scenarios[i].Between(plan.Matrix.Pair(k))
			var machines []*probe.Facts
			for _, host := range []string{sc.Hosts.From, sc.Hosts.To} {
				if at[host] < len(facts) {
					machines = append(machines, facts[at[host]])
				}
			}
			if why := skipBetween(&sc, plan.Nodes, x, machines); why != "" {
				lacking[sc.ID] = why
				if first == "" {
					first = why
				}
			}
		}
		if len(lacking) == plan.Matrix.Len() {
			lacking = map[string]string{plan.Scenarios[i].ID: first}
		}
		maps.Copy(skips, lacking)
	}
	return skips
}

// skipBetween is skip for a scenario between two named hosts.
func skipBetween(sc *suite.Scenario, nodes int, x testbed.Executor, machines []*probe.Facts) string {
	if sc.Placement == suite.Colocated {
		return "both of its endpoints are on one node, so it does not run between hosts"
	}
	pair, err := executorOf(x, sc)
	if err != nil {
		return err.Error()
	}
	return skip(sc, nodes, pair, machines)
}
