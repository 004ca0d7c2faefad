package suite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"windtunnel/internal/phrase"
)

// Matrix lists the pairs of hosts between which a plan measures. Every scenario of the
// plan runs between every pair. The plan stays small, because it does not list them:
// 1,000 hosts have 999,000 pairs.
type Matrix struct {
	Hosts []string   `json:"hosts"`           // names of the hosts, in the order of the reports
	Pairs []HostPair `json:"pairs,omitempty"` // nil: each host to each other host
	// Parallel is the maximum number of trials at the same time. Two trials at the same
	// time have no host in common.
	Parallel int `json:"parallel"`
}

// HostPair is the hosts of a scenario's two nodes. The zero value leaves the choice to
// the testbed.
type HostPair struct {
	From string `json:"from"` // host of the sender
	To   string `json:"to"`   // host of the receiver
}

// String returns "a→b".
func (p HostPair) String() string { return p.From + "→" + p.To }

// Reverse returns the pair of the opposite direction.
func (p HostPair) Reverse() HostPair { return HostPair{From: p.To, To: p.From} }

// Has reports whether the host is in the pair.
func (p HostPair) Has(host string) bool { return p.From == host || p.To == host }

// Between returns the scenario between two hosts. Its ID is "raw/one a→b".
func (sc Scenario) Between(p HostPair) Scenario {
	sc.ID, sc.Title, sc.Hosts = PairID(sc.ID, p), sc.Title+", "+p.String(), p
	return sc
}

// PairID returns the ID of a scenario between two hosts: "raw/one a→b".
func PairID(scenario string, p HostPair) string { return scenario + " " + p.String() }

// SplitPairID is the inverse of PairID. ok is false for an ID without hosts. IDs of suites
// and names of hosts contain neither spaces nor arrows.
func SplitPairID(id string) (scenario string, p HostPair, ok bool) {
	scenario, pair, _ := strings.Cut(id, " ")
	p.From, p.To, ok = strings.Cut(pair, "→")
	return scenario, p, ok
}

// Len returns the number of pairs.
func (m *Matrix) Len() int {
	if m.Pairs != nil {
		return len(m.Pairs)
	}
	return len(m.Hosts) * (len(m.Hosts) - 1)
}

// Pair returns a pair by its index, 0 to Len() − 1.
func (m *Matrix) Pair(i int) HostPair {
	if m.Pairs != nil {
		return m.Pairs[i]
	}
	others := len(m.Hosts) - 1
	from, to := i/others, i%others
	if to >= from {
		to++
	}
	return HostPair{From: m.Hosts[from], To: m.Hosts[to]}
}

// index is the inverse of Pair for a matrix of all pairs. It takes indices of hosts.
func (m *Matrix) index(from, to int) int {
	if to > from {
		to--
	}
	return from*(len(m.Hosts)-1) + to
}

// Rounds divides the pairs into rounds. In a round no host is in two pairs, so all pairs
// of a round can be measured at the same time. A pair is its index; see Pair. All pairs
// of n hosts have 2(n−1) rounds if n is even, else 2n: the fewest possible.
func (m *Matrix) Rounds() [][]int {
	if m.Pairs == nil {
		return m.tournament()
	}
	return m.firstFit()
}

// tournament uses the circle method of round-robin tournaments: the last host stays, and
// the others move around it by one place in each round. With an odd number of hosts the
// place that stays is empty. Each round is used a second time with the opposite
// directions.
func (m *Matrix) tournament() (rounds [][]int) {
	n := len(m.Hosts)
	circle := n - 1 // number of hosts that move
	if n%2 == 1 {
		circle = n
	}
	for r := range circle {
		var there, back []int
		add := func(a, b int) { there, back = append(there, m.index(a, b)), append(back, m.index(b, a)) }
		if n%2 == 0 {
			add(n-1, r)
		}
		for k := 1; k <= (circle-1)/2; k++ {
			add((r+k)%circle, (r-k+circle)%circle)
		}
		rounds = append(rounds, there, back)
	}
	return rounds
}

// firstFit puts each pair into the first round in which both of its hosts are free.
func (m *Matrix) firstFit() (rounds [][]int) {
	var busy []map[string]bool
	for i, p := range m.Pairs {
		r := slices.IndexFunc(busy, func(hosts map[string]bool) bool { return !hosts[p.From] && !hosts[p.To] })
		if r < 0 {
			r = len(rounds)
			rounds, busy = append(rounds, nil), append(busy, map[string]bool{})
		}
		rounds[r] = append(rounds[r], i)
		busy[r][p.From], busy[r][p.To] = true, true
	}
	return rounds
}

// String describes the matrix: "6 pairs of 3 hosts in 6 rounds, 1 at a time".
func (m *Matrix) String() string {
	return fmt.Sprintf("%s of %s in %s, %d at a time", phrase.Count(m.Len(), "pair"), phrase.Count(len(m.Hosts), "host"), phrase.Count(len(m.Rounds()), "round"), m.Concurrent())
}

// Concurrent returns the maximum number of trials that can run at the same time.
func (m *Matrix) Concurrent() int { return max(1, min(m.Parallel, len(m.Hosts)/2)) }

// NewMatrix returns the matrix of a choice of pairs: "all", "ring" (each host to the
// next one, and the last to the first), or a list such as "a:b,b:c". Hosts that are in no
// pair are left out.
func NewMatrix(hosts []string, pairs string, parallel int) (*Matrix, error) {
	m := &Matrix{Hosts: hosts, Parallel: parallel}
	if len(hosts) < 2 {
		return nil, errors.New("a matrix needs two hosts or more")
	}
	if parallel < 1 {
		return nil, fmt.Errorf("%d trials at the same time: give a number of 1 or more", parallel)
	}
	switch pairs {
	case "all":
		return m, nil
	case "ring":
		for i, h := range hosts {
			m.Pairs = append(m.Pairs, HostPair{From: h, To: hosts[(i+1)%len(hosts)]})
		}
		return m, nil
	}
	for word := range strings.SplitSeq(pairs, ",") {
		p, err := parsePair(strings.TrimSpace(word), hosts)
		if err != nil {
			return nil, err
		}
		if slices.Contains(m.Pairs, p) {
			return nil, fmt.Errorf("the pair %s:%s is listed twice; remove one of the two", p.From, p.To)
		}
		m.Pairs = append(m.Pairs, p)
	}
	m.Hosts = slices.DeleteFunc(slices.Clone(hosts), func(h string) bool {
		return !slices.ContainsFunc(m.Pairs, func(p HostPair) bool { return p.Has(h) })
	})
	return m, nil
}

func parsePair(word string, hosts []string) (p HostPair, err error) {
	var ok bool
	if p.From, p.To, ok = strings.Cut(word, ":"); !ok {
		return p, fmt.Errorf("%q is not a pair of hosts; write all, ring, or pairs such as %s:%s,%s:%s", clip(word), hosts[0], hosts[1], hosts[1], hosts[0])
	}
	p.From, p.To = strings.TrimSpace(p.From), strings.TrimSpace(p.To)
	for _, h := range []string{p.From, p.To} {
		if !slices.Contains(hosts, h) {
			return p, fmt.Errorf("the pair %s: there is no host %q; %s", clip(word), clip(h), Suggest(h, "hosts", hosts))
		}
	}
	if p.From == p.To {
		return p, fmt.Errorf("the pair %s has one host twice; name two hosts", word)
	}
	return p, nil
}

// Pairwise returns the plan with a scenario for each pair of hosts, and with the
// comparisons between scenarios of the same pair. Without a matrix it returns the plan
// itself.
func (p *Plan) Pairwise() *Plan {
	if p.Matrix == nil {
		return p
	}
	wide := *p
	wide.Matrix, wide.Scenarios, wide.Comparisons = nil, nil, nil
	// A ladder or a hypothesis for each pair would be too many to read.
	wide.Ladders, wide.Hypotheses, wide.Tables, wide.Published, wide.Causes = nil, nil, nil, nil, nil
	for _, sc := range p.Scenarios {
		for i := range p.Matrix.Len() {
			wide.Scenarios = append(wide.Scenarios, sc.Between(p.Matrix.Pair(i)))
		}
	}
	for _, c := range p.Comparisons {
		for i := range p.Matrix.Len() {
			pair := p.Matrix.Pair(i)
			wide.Comparisons = append(wide.Comparisons, Comparison{Title: c.Title, Baseline: PairID(c.Baseline, pair), Subject: PairID(c.Subject, pair)})
		}
	}
	return &wide
}

// Large reports whether the plan has too many scenarios between pairs of hosts to report
// each of them. Its reports have the matrices only.
func (p *Plan) Large() bool {
	return p.Matrix != nil && len(p.Scenarios)*p.Matrix.Len() > mostScenarios
}

// Cells returns the number of trials in a block: of the scenarios, each between all pairs
// of hosts, without those that are skipped.
func (p *Plan) Cells() (n int) {
	pairs := 1
	if p.Matrix != nil {
		pairs = p.Matrix.Len()
	}
	for _, sc := range p.Scenarios {
		if p.Skipped[sc.ID] == "" {
			n += pairs
		}
	}
	if p.Matrix != nil {
		for id := range p.Skipped {
			if _, _, ok := SplitPairID(id); ok {
				n--
			}
		}
	}
	return n
}
