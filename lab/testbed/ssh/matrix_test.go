package ssh

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/text"
	"windtunnel/lab/stats"
	"windtunnel/lab/suite"
)

// Host c is slow in both directions, and host a sends slowly.
func TestAMatrixNamesTheSlowHostAndTheAsymmetricPair(t *testing.T) {
	must.Long(t)
	s := newSiteOf(t, []string{"a", "b", "c"})
	s.Limit(s.spaces[2], "data", 440e6) // c sends
	s.Limit(s.Switch, "c", 440e6)       // c receives
	s.Limit(s.spaces[0], "data", 620e6) // a sends
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	sc := scenario("raw", 300*time.Millisecond)
	sc.Workload.Rate = 800e6
	r, err := runPairs(x, n, "a:b,b:a,b:c,c:b", stats.MinimumTrials(stats.Level), 1, sc)
	s.Must(err)
	for _, smp := range n.samples {
		if !smp.OK() {
			t.Errorf("%s: %v", smp.Scenario, smp.Failure)
		}
	}
	var slow, lopsided []string
	for _, f := range r.HostMatrices[0].Pairs {
		if f.Figure == nil || f.Figure.N < stats.MinimumTrials(stats.Level) {
			t.Fatalf("%v has the figure %v, want one of %d trials", f.HostPair(), f.Figure, stats.MinimumTrials(stats.Level))
		}
		if f.Slow {
			slow = append(slow, f.HostPair().String())
		}
		if f.Asymmetric {
			lopsided = append(lopsided, f.HostPair().String())
		}
	}
	var page bytes.Buffer
	s.Must(text.Write(&page, report.Document(r), text.Options{Width: 100}))
	if want := []string{"b→c", "c→b"}; !slices.Equal(slow, want) {
		t.Errorf("the slow pairs are %v, want %v, those of host c:\n%s", slow, want, &page)
	}
	if want := []string{"a→b"}; !slices.Equal(lopsided, want) {
		t.Errorf("the asymmetric pairs are %v, want %v:\n%s", lopsided, want, &page)
	}
	for _, want := range []string{"raw: c→b is slow: ", "raw: a and b are asymmetric: a to b is "} {
		if !strings.Contains(strings.Join(r.Findings, "\n"), want) {
			t.Errorf("no finding says %q:\n%s", want, strings.Join(r.Findings, "\n"))
		}
	}
	s.Must(x.Close(context.Background()))
	if left := leftovers(t, runID()); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A host is the sender in one trial and the receiver in the next one. Its data device must
// stay in one namespace all the time.
func TestDedicatedHostsChangeTheirRoles(t *testing.T) {
	must.Long(t)
	s := newSiteOf(t, []string{"a", "b", "c"})
	var before []string
	for i := range s.spaces {
		before = append(before, s.dataDevice(i))
	}
	s.hosts.Dedicated = true
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	_, err := runPairs(x, n, "ring", 1, 1, scenario("bridge", 500*time.Millisecond))
	s.Must(err)
	seen := map[string]int{}
	for _, smp := range n.samples {
		if !smp.OK() {
			t.Errorf("%s: %v", smp.Scenario, smp.Failure)
			continue
		}
		assertFigures(t, smp)
		seen[smp.Scenario]++
	}
	if len(seen) != 3 {
		t.Errorf("the pairs %v have figures, want all 3 of the ring", seen)
	}
	if left := leftovers(t, runID()); len(left) != 3 {
		t.Errorf("during the run there are the namespaces %v, want one of each host", left)
	}
	s.Must(x.Close(context.Background()))
	for i := range s.spaces {
		if after := s.dataDevice(i); after != before[i] {
			t.Errorf("the data device of host %s was %q before the run, and is %q after it", s.hosts.Hosts[i].Name, before[i], after)
		}
	}
}

func TestTrialsOfDifferentHostsRunAtTheSameTime(t *testing.T) {
	must.Long(t)
	s := newSiteOf(t, []string{"a", "b", "c", "d"})
	x := s.connect()
	s.hold(x)
	n := &notebook{}
	r, err := runPairs(x, n, "a:b,b:a,c:d,d:c", 1, 2, scenario("raw", 500*time.Millisecond))
	s.Must(err)
	for _, f := range r.HostMatrices[0].Pairs {
		if f.Figure == nil {
			t.Errorf("%v has no figure: %s", f.HostPair(), f.Why)
		}
	}
	together := 0
	for i, one := range n.samples {
		_, hosts, _ := suite.SplitPairID(one.Scenario)
		for _, other := range n.samples[:i] {
			if one.Started.After(other.Started.Add(other.Took)) || other.Started.After(one.Started.Add(one.Took)) {
				continue
			}
			together++
			if _, others, _ := suite.SplitPairID(other.Scenario); others.Has(hosts.From) || others.Has(hosts.To) {
				t.Errorf("%s and %s ran at the same time, and have a host in common", one.Scenario, other.Scenario)
			}
		}
	}
	if together == 0 {
		t.Error("no two trials ran at the same time")
	}
}
