package suite

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"windtunnel/internal/must"
)

func hostNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("h%d", i))
	}
	return names
}

func TestRoundsHaveEveryPairOnceAndNoHostTwice(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 6, 7, 8, 9, 26, 27, 100, 101, 1000} {
		m, err := NewMatrix(hostNames(n), "all", 1)
		must.Succeed(t, err)
		checkRounds(t, m)
		want := 2 * (n - 1 + n%2)
		if got := len(m.Rounds()); got != want {
			t.Errorf("%d hosts have %d rounds, want %d", n, got, want)
		}
		if m.Len() != n*(n-1) {
			t.Errorf("%d hosts have %d pairs, want %d", n, m.Len(), n*(n-1))
		}
	}
	for _, pairs := range []string{"ring", "h0:h1", "h0:h1,h1:h0,h2:h3,h0:h3", "h4:h0,h3:h0,h2:h0"} {
		m, err := NewMatrix(hostNames(5), pairs, 2)
		must.Succeed(t, err)
		checkRounds(t, m)
	}
}

func TestPairsMayHaveSpaces(t *testing.T) {
	m, err := NewMatrix(hostNames(3), " h0 : h1 , h1 :h2", 1)
	if want := []HostPair{{"h0", "h1"}, {"h1", "h2"}}; err != nil || !slices.Equal(m.Pairs, want) {
		t.Errorf("%+v (%v), want %v", m, err, want)
	}
}

// checkRounds checks that each pair is in one round, and each host in one pair of a round.
func checkRounds(t *testing.T, m *Matrix) {
	t.Helper()
	seen := map[HostPair]int{}
	for r, round := range m.Rounds() {
		busy := map[string]bool{}
		for _, i := range round {
			p := m.Pair(i)
			seen[p]++
			for _, h := range []string{p.From, p.To} {
				if busy[h] {
					t.Errorf("%v: host %s is twice in round %d", m, h, r)
				}
				busy[h] = true
			}
		}
	}
	if len(seen) != m.Len() {
		t.Errorf("%v: the rounds have %d pairs, want %d", m, len(seen), m.Len())
	}
	for p, n := range seen {
		if n != 1 || p.From == p.To {
			t.Errorf("%v: %v is in %d rounds, want 1", m, p, n)
		}
	}
}

func TestARingHasFewRounds(t *testing.T) {
	m, err := NewMatrix(hostNames(100), "ring", 50)
	must.Succeed(t, err)
	if got := len(m.Rounds()); got > 3 || m.Len() != 100 {
		t.Errorf("a ring of 100 hosts has %d pairs in %d rounds, want 100 pairs in 3 rounds at most", m.Len(), got)
	}
}

func TestMistakesInPairsAreErrors(t *testing.T) {
	for pairs, want := range map[string]string{
		"h0":          `"h0" is not a pair of hosts; write all, ring, or pairs such as h0:h1,h1:h0`,
		"":            `"" is not a pair`,
		"h0:h9":       `there is no host "h9"`,
		"h0:h0":       "has one host twice",
		"h0:h1,h0:h1": "the pair h0:h1 is listed twice",
	} {
		_, err := NewMatrix(hostNames(4), pairs, 1)
		must.Fail(t, err, want)
	}
	if _, err := NewMatrix(hostNames(1), "all", 1); err == nil {
		t.Error("a matrix of one host is no error")
	}
	if _, err := NewMatrix(hostNames(4), "all", 0); err == nil {
		t.Error("no trial at a time is no error")
	}
}

func TestHostsWithoutAPairAreLeftOut(t *testing.T) {
	m, err := NewMatrix(hostNames(5), "h3:h1, h1:h3", 1)
	must.Succeed(t, err)
	if want := []string{"h1", "h3"}; !slices.Equal(m.Hosts, want) {
		t.Errorf("the hosts are %v, want %v", m.Hosts, want)
	}
}

func TestThePairOfAnIDIsFound(t *testing.T) {
	p := HostPair{"a-1.example", "b_2"}
	id := PairID("raw/one", p)
	if id != "raw/one a-1.example→b_2" {
		t.Errorf("the ID is %q", id)
	}
	if sc, got, ok := SplitPairID(id); !ok || sc != "raw/one" || got != p {
		t.Errorf("%q is scenario %q of %v (%t), want raw/one of %v", id, sc, got, ok, p)
	}
	if sc, got, ok := SplitPairID("raw/one"); ok || sc != "raw/one" || got != (HostPair{}) {
		t.Errorf("raw/one is scenario %q of %v (%t), want no hosts", sc, got, ok)
	}
}

func TestAPlanBecomesPairwise(t *testing.T) {
	m, err := NewMatrix(hostNames(3), "all", 1)
	must.Succeed(t, err)
	timing := Timing{Duration: time.Second}
	p := &Plan{Trials: 2, Scenarios: []Scenario{{ID: "raw/one", Timing: timing}, {ID: "bridge/one", Timing: timing}}, Comparisons: []Comparison{{Baseline: "raw/one", Subject: "bridge/one"}}, Matrix: m}
	one := *p
	one.Matrix = nil
	if got, want := p.Estimate(), 6*one.Estimate(); got != want {
		t.Errorf("6 pairs take %v, want %v", got, want)
	}
	w := p.Pairwise()
	if len(w.Scenarios) != 12 || w.Scenarios[0].ID != "raw/one h0→h1" || w.Scenarios[11].ID != "bridge/one h2→h1" || w.Scenarios[11].Hosts != (HostPair{"h2", "h1"}) {
		t.Errorf("the scenarios are %+v", w.Scenarios)
	}
	if len(w.Comparisons) != 6 || w.Comparisons[5] != (Comparison{Baseline: "raw/one h2→h1", Subject: "bridge/one h2→h1"}) {
		t.Errorf("the comparisons are %+v", w.Comparisons)
	}
	if again := one.Pairwise(); !reflect.DeepEqual(*again, one) {
		t.Error("a plan without a matrix changed")
	}
	p.Skipped = map[string]string{"bridge/one": "no bridge", "raw/one h0→h1": "no program"}
	if got := p.Cells(); got != 5 {
		t.Errorf("%d trials in a block, want 5", got)
	}
}
