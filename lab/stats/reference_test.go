package stats

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

type rankCase struct {
	Name, Method      string
	Subject, Baseline []float64
	P, Effect         float64
}

// reference is what testdata/reference.py computes with SciPy.
type reference struct {
	MadeBy      string     `json:"made_by"`
	Wilcoxon    []rankCase `json:"wilcoxon"`
	MannWhitney []rankCase `json:"mann_whitney"`
	Bootstrap   []struct {
		Name              string
		Paired            bool
		Subject, Baseline []float64
		Ratio, Low, High  float64
	} `json:"bootstrap"`
	Resamples []struct {
		N      int
		Shares [][2]float64 // a middle of 1, 2, 4, …, and how many resamples have it
	} `json:"resamples"`
	Slope []struct {
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
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var r reference
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	t.Logf("reference values made by %s", r.MadeBy)
	return r
}

func TestWilcoxonAgreesWithSciPy(t *testing.T) {
	assertRankCases(t, referenceValues(t).Wilcoxon, WilcoxonSignedRank)
}

func TestMannWhitneyAgreesWithSciPy(t *testing.T) {
	assertRankCases(t, referenceValues(t).MannWhitney, MannWhitney)
}

func assertRankCases(t *testing.T, cases []rankCase, test func(subject, baseline []float64) (Test, bool, error)) {
	t.Helper()
	methods := make(map[string]int)
	for _, c := range cases {
		methods[c.Method]++
		got, ok, err := test(c.Subject, c.Baseline)
		if err != nil || !ok || math.Abs(got.P-c.P) > 1e-9 || math.Abs(got.Effect-c.Effect) > 1e-9 {
			t.Errorf("%s (%s): p %v, effect %v, %v, %v; want p %v, effect %v", c.Name, c.Method, got.P, got.Effect, ok, err, c.P, c.Effect)
		}
		if got.Floor > got.P+1e-12 && len(c.Subject) > 1 {
			t.Errorf("%s: p %v is below its floor %v", c.Name, got.P, got.Floor)
		}
	}
	if len(cases) < 30 || len(methods) < 3 {
		t.Errorf("only %d cases, by %v", len(cases), methods)
	}
}

// SciPy draws 400,000 resamples where all are counted here, and interpolates
// between medians: the bounds may differ by 3 % of the width.
func TestBootstrapIntervalAgreesWithSciPy(t *testing.T) {
	for _, c := range referenceValues(t).Bootstrap {
		interval := UnpairedRatio
		if c.Paired {
			interval = RatioOfMedians
		}
		got, ok, err := interval(c.Subject, c.Baseline, 0.95)
		if err != nil || !ok || math.Abs(got.Median-c.Ratio) > 1e-12 || got.Level != 0.95 {
			t.Errorf("%s: %+v, %v, %v, want a ratio of %v", c.Name, got, ok, err, c.Ratio)
		}
		width := c.High - c.Low
		if math.Abs(got.Low-c.Low) > 0.03*width || math.Abs(got.High-c.High) > 0.03*width {
			t.Errorf("%s: [%.5f, %.5f], SciPy has [%.5f, %.5f]", c.Name, got.Low, got.High, c.Low, c.High)
		}
	}
}

func TestMediansOfAllResamplesAreThoseCountedOut(t *testing.T) {
	for _, c := range referenceValues(t).Resamples {
		sorted := make([]float64, c.N)
		for i := range sorted {
			sorted[i] = math.Ldexp(1, i)
		}
		got := resampledMedians(sorted, arithmeticMiddle)
		if len(got) != len(c.Shares) {
			t.Fatalf("n = %d: %d medians, counted %d", c.N, len(got), len(c.Shares))
		}
		for i, want := range c.Shares {
			if got[i].value != want[0] || math.Abs(got[i].weight-want[1]) > 1e-12 {
				t.Errorf("n = %d: median %v with share %v, counted %v with %v", c.N, got[i].value, got[i].weight, want[0], want[1])
			}
		}
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
