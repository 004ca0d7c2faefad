package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"windtunnel/internal/must"
)

// noisyRuns are runs of ten trials at the given levels. The unit is the
// standard deviation between runs; trials within a run have 0.3 of it.
func noisyRuns(rng *rand.Rand, levels ...float64) [][]float64 {
	groups := make([][]float64, len(levels))
	for i, level := range levels {
		run := 100 + level + rng.NormFloat64()
		for range 10 {
			groups[i] = append(groups[i], run+0.3*rng.NormFloat64())
		}
	}
	return groups
}

// steps repeats levels: each argument pair is a level and its number of runs.
func steps(pairs ...float64) []float64 {
	var levels []float64
	for ; len(pairs) > 0; pairs = pairs[2:] {
		levels = append(levels, slices.Repeat(pairs[:1], int(pairs[1]))...)
	}
	return levels
}

func TestStationaryRunsSeldomHaveAChangePoint(t *testing.T) {
	for name, disturb := range map[string]func(*rand.Rand, [][]float64){
		"normal": func(*rand.Rand, [][]float64) {},
		"with a tenth of outliers": func(rng *rand.Rand, groups [][]float64) {
			for _, g := range groups {
				if rng.Float64() < 0.1 {
					off := 5 * rng.NormFloat64()
					for i := range g {
						g[i] += off
					}
				}
			}
		},
	} {
		rng := rand.New(rand.NewPCG(22, 0))
		for _, n := range []int{6, 7, 9, 12, 15, 30} {
			const rounds = 300
			found := 0
			for range rounds {
				groups := noisyRuns(rng, make([]float64, n)...)
				disturb(rng, groups)
				if len(ChangePoints(groups, 0.05)) > 0 {
					found++
				}
			}
			got := float64(found) / rounds
			t.Logf("%d runs, %s: a change found in %.3f", n, name, got)
			if got < 0.01 || got > 0.09 {
				t.Errorf("%d stationary runs, %s: a change is found in %.3f, want 0.01 to 0.09", n, name, got)
			}
		}
	}
}

func TestAStepOfFiveSigmaIsAlwaysFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 0))
	for _, c := range [][2]float64{{3, 3}, {3, 4}, {4, 3}, {3, 5}, {3, 9}, {12, 3}, {3, 20}, {10, 10}} {
		near := 0
		const rounds = 60
		for range rounds {
			points := ChangePoints(noisyRuns(rng, steps(0, c[0], -5, c[1])...), 0.05)
			if len(points) == 0 {
				t.Errorf("%v runs: the step is not found", c)
				continue
			}
			if slices.ContainsFunc(points, func(p ChangePoint) bool { return p.Index == int(c[0]) && p.After < p.Before && p.P <= 0.05 }) {
				near++
			}
		}
		if near < rounds*9/10 {
			t.Errorf("%v runs: the step is found in its place in %d of %d", c, near, rounds)
		}
	}
}

func TestTwoStepsAreBothFound(t *testing.T) {
	for name, levels := range map[string][]float64{
		"down twice": steps(0, 8, -6, 8, -12, 8), "down and up again": steps(0, 10, -6, 10, 0, 10),
		"a short disturbance": steps(0, 12, -6, 3, 0, 9), "of few runs": steps(0, 3, -8, 3, 0, 3),
	} {
		rng := rand.New(rand.NewPCG(24, 0))
		places := 0
		const rounds = 40
		for range rounds {
			points := ChangePoints(noisyRuns(rng, levels...), 0.05)
			var at []int
			for _, p := range points {
				at = append(at, p.Index)
			}
			first := slices.IndexFunc(levels, func(l float64) bool { return l != 0 })
			second := first + slices.IndexFunc(levels[first:], func(l float64) bool { return l != levels[first] })
			if slices.Contains(at, first) && slices.Contains(at, second) {
				places++
			}
			if len(at) < 2 {
				t.Errorf("%s: only %+v", name, points)
			}
			if !slices.IsSorted(at) {
				t.Errorf("%s: change points %v do not ascend", name, at)
			}
		}
		if places < rounds*9/10 {
			t.Errorf("%s: both are found in their places in %d of %d", name, places, rounds)
		}
	}
}

func TestAChangePointHasTheLevelsAroundIt(t *testing.T) {
	groups := [][]float64{{100, 101, 99}, {102}, nil, {100}, {101}, {math.NaN(), 7}, {50, 50}, {51}, {50}, {49}}
	points := ChangePoints(groups, 0.05)
	if len(points) != 1 {
		t.Fatalf("%+v, want one change", points)
	}
	p := points[0]
	if p.Index != 6 || p.Before != 100.5 || p.After != 50 || p.Ratio != 50/100.5 || p.P > 0.05 || p.P <= 0 {
		t.Errorf("%+v, want run 6, from 100.5 to 50: runs without figures count but say nothing", p)
	}
	must.Equal(t, points, ChangePoints(groups, 0.05))
}

func TestChangePointsDoNotDependOnTheUnit(t *testing.T) {
	rng := rand.New(rand.NewPCG(25, 0))
	groups := noisyRuns(rng, steps(0, 6, 8, 6)...)
	want := ChangePoints(groups, 0.05)
	for _, factor := range []float64{math.Ldexp(1, -60), math.Ldexp(1, 60), math.Ldexp(1, 1000)} {
		scaled := make([][]float64, len(groups))
		for i, g := range groups {
			for _, x := range g {
				scaled[i] = append(scaled[i], x*factor)
			}
		}
		got := ChangePoints(scaled, 0.05)
		if len(got) != len(want) || len(got) == 0 || got[0].Index != want[0].Index || got[0].P != want[0].P || got[0].Ratio != want[0].Ratio {
			t.Errorf("times %v: %+v, want %+v", factor, got, want)
		}
	}
}

func TestFewOrEqualRunsHaveNoChangePoint(t *testing.T) {
	for name, groups := range map[string][][]float64{
		"none": nil, "five": {{1}, {1}, {1}, {9}, {9}}, "six without trials": make([][]float64, 6),
		"equal":          {{3}, {3}, {3}, {3}, {3}, {3}, {3}, {3}},
		"equal but zero": {{0}, {0}, {0}, {0}, {0}, {0}},
		"two of eight":   {{1}, {1}, {1}, {1}, {1}, {1}, {9}, {9}},
	} {
		if got := ChangePoints(groups, 0.05); name != "two of eight" && len(got) != 0 {
			t.Errorf("%s: the changes are %+v, want none", name, got)
		} else if slices.ContainsFunc(got, func(p ChangePoint) bool { return p.Index > 5 || p.Index < 3 }) {
			t.Errorf("%s: %+v has fewer than three runs a side", name, got)
		}
	}
	step := [][]float64{{1}, {1}, {1}, {9}, {9}, {9}}
	for _, alpha := range []float64{0, 1, -1, math.NaN()} {
		if got := ChangePoints(step, alpha); got != nil {
			t.Errorf("alpha %v: %+v", alpha, got)
		}
	}
}

func TestALevelOfZeroHasNoRatio(t *testing.T) {
	points := ChangePoints([][]float64{{0}, {0}, {0}, {5}, {5}, {5}}, 0.05)
	if len(points) != 1 || points[0].Ratio != 0 || points[0].After != 5 {
		t.Errorf("%+v, want one change from 0 to 5 without a ratio", points)
	}
}
