package stats

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"windtunnel/internal/must"
)

// estimateCase is one comparison; Ratio and Effect are of pairs only.
type estimateCase struct {
	Subject, Baseline           []float64
	Ratio, Low, High, P, Effect float64
}

// reference is what testdata/reference.py computes with SciPy.
type reference struct {
	MadeBy     string         `json:"made_by"`
	SignedRank []estimateCase `json:"signed_rank"`
	Runs       []estimateCase `json:"runs"`
	Slope      []struct {
		X, Y  []float64
		Slope float64
	} `json:"slope"`
	Trend []struct {
		Y []float64
		P float64
	} `json:"trend"`
	Holm []struct {
		P, Adjusted []float64
	} `json:"holm"`
	Power []struct{ Freedom, Level, Shift, Power float64 } `json:"power"`
}

func referenceValues(t *testing.T) reference {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/reference.json"))(t)
	var r reference
	must.Succeed(t, json.Unmarshal(text, &r))
	t.Logf("reference values made by %s", r.MadeBy)
	return r
}

// SciPy finds the bounds by shifting the pairs until its exact test turns.
func TestRatioAgreesWithSciPy(t *testing.T) {
	cases := referenceValues(t).SignedRank
	for _, c := range cases {
		e, ok, err := Ratio(c.Subject, c.Baseline, 0.95)
		if err != nil || !ok || math.Abs(e.P-c.P) > 1e-9 || math.Abs(e.Effect-c.Effect) > 1e-9 || math.Abs(e.Median-c.Ratio) > 1e-9 {
			t.Errorf("%d pairs: %+v, %v, %v, want ratio %v, p %v, effect %v", len(c.Subject), e, ok, err, c.Ratio, c.P, c.Effect)
		}
		if math.Abs(e.Low-c.Low) > 1e-9 || math.Abs(e.High-c.High) > 1e-9 {
			t.Errorf("%d pairs: [%v, %v], SciPy has [%v, %v]", len(c.Subject), e.Low, e.High, c.Low, c.High)
		}
	}
	if len(cases) < 20 {
		t.Errorf("only %d cases", len(cases))
	}
}

func TestShiftOfRunsAgreesWithSciPy(t *testing.T) {
	cases := referenceValues(t).Runs
	for _, c := range cases {
		s, ok := PooledSpread(c.Subject, c.Baseline)
		e, _, err := Shift(c.Subject, c.Baseline, s, 0.95)
		if err != nil || !ok || math.Abs(e.P-c.P) > 1e-9 || math.Abs(e.Low-c.Low) > 1e-9 || math.Abs(e.High-c.High) > 1e-9 {
			t.Errorf("%d and %d runs: %+v, %v, %v, want [%v, %v], p %v", len(c.Subject), len(c.Baseline), e, ok, err, c.Low, c.High, c.P)
		}
	}
	if len(cases) < 5 {
		t.Errorf("only %d cases", len(cases))
	}
}

func TestSlopeAgreesWithSciPy(t *testing.T) {
	for _, c := range referenceValues(t).Slope {
		if got, ok, err := Slope(c.X, c.Y); err != nil || !ok || math.Abs(got-c.Slope) > 1e-9 {
			t.Errorf("%d points: %v, %v, %v, want %v", len(c.X), got, ok, err, c.Slope)
		}
	}
}

func TestMannKendallAgreesWithSciPy(t *testing.T) {
	for _, c := range referenceValues(t).Trend {
		if got := MannKendall(c.Y); math.Abs(got-c.P) > 1e-9 {
			t.Errorf("%d values: p %v, want %v", len(c.Y), got, c.P)
		}
	}
}

func TestHolmAgreesWithReference(t *testing.T) {
	for _, c := range referenceValues(t).Holm {
		got := Holm(c.P)
		if !slices.EqualFunc(got, c.Adjusted, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
			t.Errorf("Holm(%v) = %v, want %v", c.P, got, c.Adjusted)
		}
	}
}

func TestPowerOfStudentsTAgreesWithSciPy(t *testing.T) {
	for _, c := range referenceValues(t).Power {
		critical := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: c.Freedom}.Quantile(1 - c.Level/2)
		if got := noncentralT(c.Freedom)(critical, c.Shift); math.Abs(got-c.Power) > 1e-4 {
			t.Errorf("ν = %v, level %v, shift %v: %v, want %v", c.Freedom, c.Level, c.Shift, got, c.Power)
		}
		if c.Power > 2*c.Level && c.Power < 0.99 {
			if shift := detectableShift(c.Freedom, c.Level, c.Power); math.Abs(shift-c.Shift) > 1e-3 {
				t.Errorf("ν = %v, level %v: power %v needs a shift of %v, want %v", c.Freedom, c.Level, c.Power, shift, c.Shift)
			}
		}
	}
}
