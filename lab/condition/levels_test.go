package condition

import (
	"math/rand/v2"
	"testing"

	"windtunnel/lab/sample"
)

// around makes n readings within 10 % of a distance.
func around(rng *rand.Rand, distance float64, n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = distance * (0.9 + 0.2*rng.Float64())
	}
	return list
}

func TestLevelsAreSeparatedAtGaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	cases := map[string]struct {
		readings [][]float64
		medians  []float64
	}{
		"no readings":               {nil, nil},
		"threads that did not run":  {[][]float64{{0, 0, 0}}, nil},
		"one level":                 {[][]float64{around(rng, 55, 200)}, []float64{55}},
		"near and far":              {[][]float64{around(rng, 55, 100), around(rng, 335, 100)}, []float64{55, 335}},
		"three caches":              {[][]float64{around(rng, 55, 50), around(rng, 140, 50), around(rng, 340, 50)}, []float64{55, 140, 340}},
		"a level seen now and then": {[][]float64{around(rng, 55, 190), around(rng, 335, 10)}, []float64{55, 335}},
		"single readings between":   {[][]float64{around(rng, 55, 100), {100, 150, 225}, around(rng, 335, 100)}, []float64{55, 335}},
		"a single late reading":     {[][]float64{around(rng, 335, 100), {1000}}, []float64{335}},
		"one reading":               {[][]float64{{52}}, []float64{52}},
	}
	for name, c := range cases {
		var all []float64
		for _, r := range c.readings {
			all = append(all, r...)
		}
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		levels := Levels(all)
		if len(levels) != len(c.medians) {
			t.Errorf("%s: %d levels, want %d: %+v", name, len(levels), len(c.medians), levels)
			continue
		}
		shares := 0.0
		for i, l := range levels {
			shares += l.Share
			if l.Median < 0.95*c.medians[i] || l.Median > 1.05*c.medians[i] {
				t.Errorf("%s: level %d has median %.0f, want about %.0f", name, i, l.Median, c.medians[i])
			}
			if Of(levels, l.Median) != i {
				t.Errorf("%s: the median of level %d belongs to level %d", name, i, Of(levels, l.Median))
			}
		}
		if len(levels) > 0 && (shares < 0.999 || shares > 1.001) {
			t.Errorf("%s: the shares sum to %v", name, shares)
		}
	}
}

func TestAReadingBetweenLevelsBelongsToNoLevel(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	levels := Levels(append(around(rng, 55, 100), around(rng, 335, 100)...))
	for _, r := range []float64{0, 20, 130, 1000} {
		if i := Of(levels, r); i != -1 {
			t.Errorf("%v ns belongs to level %d", r, i)
		}
	}
}

func TestTheNearestLevelWithAQuarterOfTheReadingsIsChosen(t *testing.T) {
	levels := func(shares ...float64) (ls []Level) {
		for _, s := range shares {
			ls = append(ls, Level{Share: s})
		}
		return ls
	}
	for _, c := range []struct {
		choice Choice
		levels []Level
		want   int
	}{
		{Auto, nil, -1},
		{Auto, levels(1), 0},
		{Auto, levels(0.25, 0.75), 0},
		{Auto, levels(0.2, 0.8), 1},
		{Auto, levels(0.1, 0.3, 0.6), 1},
		{Near, levels(0.1, 0.9), 0},
		{Far, levels(0.9, 0.1), 1},
		{Any, levels(0.5, 0.5), -1},
	} {
		if got := c.choice.Choose(c.levels); got != c.want {
			t.Errorf("%s of %v: level %d, want %d", c.choice, c.levels, got, c.want)
		}
	}
}

// The run's choice decides which level is shown, as long as a trial there counts.
func TestTheChosenLevelIsShown(t *testing.T) {
	at := func(d float64) sample.Sample {
		return sample.Sample{Metrics: sample.Metrics{sample.CPUDistance: d}, Series: []sample.Point{{CPUDistance: d}, {CPUDistance: d}}}
	}
	both, far := []sample.Sample{at(52), at(335), at(335)}, []sample.Sample{at(335), at(335)}
	far[0].Series = append(far[0].Series, at(52).Series...) // read there, but no trial ran there
	for _, c := range []struct {
		samples []sample.Sample
		choice  Choice
		want    float64
	}{{both, Near, 52}, {both, Far, 335}, {both, Auto, 335}, {both, Any, 335}, {both, "", 335}, {far, Near, 335}} {
		levels, parts, shown := Split(c.samples, c.choice)
		if got := levels[shown].Median; got != c.want {
			t.Errorf("choice %q of %d samples: %v ns is shown, want %v", c.choice, len(c.samples), got, c.want)
		}
		if n := len(parts[0]) + len(parts[1]); n != len(c.samples) {
			t.Errorf("choice %q: %d samples of %d are in a part", c.choice, n, len(c.samples))
		}
	}
}
