package stats

import (
	"encoding/base64"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"windtunnel/internal/must"
)

func encoded(t testing.TB, lowest, highest int64, digits int, values ...int64) string {
	t.Helper()
	h := hdrhistogram.New(lowest, highest, digits)
	for _, v := range values {
		must.Succeed(t, h.RecordValue(v))
	}
	return string(must.Get(h.Encode(hdrhistogram.V2CompressedEncodingCookieBase))(t))
}

func TestMergedPercentilesAreThoseOfAllValuesTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var all []int64
	var parts []string
	for part := range 5 {
		values := make([]int64, 3000)
		for i := range values {
			values[i] = int64(20_000 * float64(part+1) * math.Exp(0.3*rng.NormFloat64()))
		}
		all = append(all, values...)
		parts = append(parts, encoded(t, 1, int64(time.Minute), 3, values...))
	}
	h, ok, err := MergeHistograms(parts)
	if err != nil || !ok || h.Count() != 15000 {
		t.Fatalf("count %d, ok %v, %v", h.Count(), ok, err)
	}
	slices.Sort(all)
	for _, p := range []float64{50, 90, 99, 99.9} {
		want := float64(all[int(math.Round(p/100*float64(len(all))))-1])
		got, ok := h.Percentile(p)
		if !ok || math.Abs(got-want) > want/1000 {
			t.Errorf("p%v = %v, of the values themselves %v: more than three digits apart", p, got, want)
		}
	}
	if top, _ := h.Percentile(100); math.Abs(top-float64(all[len(all)-1])) > top/1000 {
		t.Errorf("max %v, of the values themselves %v", top, all[len(all)-1])
	}
}

func TestHistogramsOfDifferentRangeOrPrecisionAreNotMerged(t *testing.T) {
	good := encoded(t, 1, int64(time.Minute), 3, 1500)
	for name, other := range map[string]string{
		"the lowest value": encoded(t, 1000, int64(time.Minute), 3, 1501), "the highest value": encoded(t, 1, int64(time.Hour), 3, 1501), "the number of digits": encoded(t, 1, int64(time.Minute), 2, 1501),
	} {
		if h, _, err := MergeHistograms([]string{good, other}); err == nil {
			t.Errorf("histograms that differ in %s were merged: %d values", name, h.Count())
		}
	}
}

func TestEmptyHistogramsHaveNoPercentiles(t *testing.T) {
	for name, parts := range map[string][]string{"none": nil, "one without values": {encoded(t, 1, 1000, 3)}} {
		h, ok, err := MergeHistograms(parts)
		if ok || err != nil {
			t.Errorf("%s: ok %v, %v", name, ok, err)
		}
		if _, ok := h.Percentile(50); ok {
			t.Errorf("%s: has a median", name)
		}
		if _, ok := h.Percentile(100); ok {
			t.Errorf("%s: has a maximum", name)
		}
	}
}

func TestPercentileOutOfRangeIsNotOK(t *testing.T) {
	h, _, err := MergeHistograms([]string{encoded(t, 1, 1000, 3, 5)})
	must.Succeed(t, err)
	for _, p := range []float64{-1, 101, math.NaN()} {
		if v, ok := h.Percentile(p); ok {
			t.Errorf("percentile %v = %v", p, v)
		}
	}
}

func TestDamagedHistogramIsAnErrorAndLeavesTheSumAsItWas(t *testing.T) {
	good := encoded(t, 1, 1_000_000, 3, 10, 20, 30)
	damaged := []byte(good)
	raw, _ := base64.StdEncoding.DecodeString(good)
	raw[len(raw)-1] ^= 0xff // the checksum
	for name, bad := range map[string]string{
		"not base64": "***", "empty": "", "too short": "HISTFAAA", "cut": string(damaged[:len(damaged)/2]),
		"checksum": base64.StdEncoding.EncodeToString(raw),
	} {
		var h Histogram
		must.Succeed(t, h.Add(good))
		if err := h.Add(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
		if h.Count() != 3 {
			t.Errorf("%s: count is %d after the error, want 3", name, h.Count())
		}
	}
}

func FuzzHistogramAdd(f *testing.F) {
	f.Add(encoded(f, 1, int64(time.Minute), 3, 100, 2000, 30000), encoded(f, 1, 1000, 2, 7))
	f.Add(encoded(f, 1<<40, math.MaxInt64, 1, 1<<50), encoded(f, 1, 2, 5, 1))
	f.Add("HISTFAAA", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		var h Histogram
		before := int64(0)
		for _, e := range []string{a, b} {
			if err := h.Add(e); err != nil && h.Count() != before {
				t.Errorf("an error changed the count from %d to %d", before, h.Count())
			}
			before = h.Count()
		}
		p50, ok := h.Percentile(50)
		top, _ := h.Percentile(100)
		if ok && (p50 < 0 || p50 > top) {
			t.Errorf("p50 %v above the maximum %v", p50, top)
		}
	})
}
