package drawings

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/browsertest"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
)

// flamesOf unpacks the page's flame graphs.
func flamesOf(t *testing.T, page []byte) flames {
	t.Helper()
	packed := must.Get(base64.StdEncoding.DecodeString(block(t, page, "flames")))(t)
	z := must.Get(gzip.NewReader(bytes.NewReader(packed)))(t)
	var f flames
	must.Succeed(t, json.NewDecoder(z).Decode(&f))
	return f
}

func TestFlameGraphsHaveEveryFrameOfEverySide(t *testing.T) {
	f := flamesOf(t, written(t, rigorous(t)))
	if len(f.Sides) != 4 {
		t.Fatalf("%d sides, want 4", len(f.Sides))
	}
	s := f.Sides[0]
	if s.Scenario != "raw/stream" || s.Side != "sender" || s.Seconds != 3 {
		t.Errorf("the first is %s, %s over %v s", s.Scenario, s.Side, s.Seconds)
	}
	// The sample's stacks without idle time and wire take 660 thousandths of a core.
	if s.Depth[0] != 0 || s.Value[0] != 660_000 || f.Names[s.Name[0]] != "sender" {
		t.Errorf("the root is %q at depth %d with %d", f.Names[s.Name[0]], s.Depth[0], s.Value[0])
	}
	for _, name := range f.Names {
		if strings.HasPrefix(name, "veth_poll") || strings.HasPrefix(name, "do_idle") {
			t.Errorf("%s is no cost of the side and stands in the graph", name)
		}
	}
	added := make([]int, len(s.Depth)) // by node, what its children take
	var path []int
	for i, depth := range s.Depth {
		if depth > len(path) {
			t.Fatalf("frame %d skips a depth", i)
		}
		path = append(path[:depth], i)
		if depth > 0 {
			added[path[depth-1]] += s.Value[i]
		}
	}
	for i, sum := range added {
		if sum > s.Value[i]+2 {
			t.Errorf("what %s calls takes %d, it takes %d itself", f.Names[s.Name[i]], sum, s.Value[i])
		}
	}
}

func TestSmallFramesAreMergedWithTheSameTotal(t *testing.T) {
	p := &folded.Profile{Side: "sender", Seconds: 1, Rate: 1000}
	p.Stacks = append(p.Stacks, folded.Stack{Comm: "c", Category: "x", Frames: []string{"large"}, Count: 1, Nanos: 900_000_000})
	for i := range 100 {
		p.Stacks = append(p.Stacks, folded.Stack{Comm: "c", Category: "y", Frames: []string{fmt.Sprint("small", i)}, Count: 1, Nanos: 300_000})
	}
	g := flamePacker{names: map[string]int{}, categories: map[string]int{}}
	root := folded.Flame(p)
	g.side(&decoded{Profile: &model.Profile{}, profile: p, flame: root}, leastFrame)
	s := g.Sides[0]
	if len(s.Name) != 4 { // the side, c, large and the rest
		t.Fatalf("%d frames remain: %v of %v", len(s.Name), s.Name, g.Names)
	}
	if last := len(s.Name) - 1; g.Names[s.Name[last]] != rest || s.Value[last] != 30_000 || s.Samples[last] != 100 || g.Categories[s.Category[last]] != "y" {
		t.Errorf("the rest is %q: %d, %d samples, %s", g.Names[s.Name[last]], s.Value[last], s.Samples[last], g.Categories[s.Category[last]])
	}
}

func TestFlameGraphsThatAreTooLargeLoseTheirSmallestFrames(t *testing.T) {
	p := wide(1_500, "sender", 7)
	list := []decoded{{Profile: &model.Profile{Scenario: "s", Side: "sender"}, profile: p, flame: folded.Flame(p), categories: folded.Categories(p)}}
	whole, part, err := packFlames(list, mostFlames)
	if err != nil || part != leastFrame {
		t.Fatalf("a page with room puts frames below %v together (%v)", part, err)
	}
	most := len(whole) / 4
	packed, part, err := packFlames(list, most)
	if err != nil || len(packed) > most || part <= leastFrame {
		t.Errorf("%d bytes and frames below %v together (%v), want at most %d bytes", len(packed), part, err, most)
	}
}

func TestPageOfManyLargeProfilesStaysSmall(t *testing.T) {
	must.Long(t)
	r := reporttest.Quick()
	// Each stack is a little more than the least part of its side.
	for i := range r.Scenarios[:8] {
		for j, side := range []string{"sender", "receiver"} {
			r.Profiles = append(r.Profiles, packedProfile(t, r.Scenarios[i].ID, wide(1_500, side, uint64(2*i+j)), 0.7))
		}
	}
	page := written(t, r)
	t.Logf("8 scenarios × 2 sides of 1,500 stacks: %.1f MB, %.2f MB of them flame graphs", float64(len(page))/1e6, float64(len(block(t, page, "flames")))/1e6)
	if len(page) > 4_000_000 {
		t.Errorf("the page has %d bytes, more than 4 MB", len(page))
	}
	for _, s := range flamesOf(t, page).Sides {
		if len(s.Name) < 100 {
			t.Errorf("of %s, %s only %d frames are left", s.Scenario, s.Side, len(s.Name))
		}
	}
	contains(t, browsertest.Readable(page), "are merged into", "The download leaves out the stacks of the CPU profiles")
	var back model.Report
	if err := json.Unmarshal(unpacked(t, page), &back); err != nil || len(back.Profiles) != 16 || back.Profiles[0].Data != "" || r.Profiles[0].Data == "" {
		t.Errorf("the download has %d profiles (%v), want 16 without stacks, and the report its own as they were", len(back.Profiles), err)
	}
}

func TestTablesAddUpToTheMeterOrShowTheDifference(t *testing.T) {
	r := rigorous(t)
	b := &builder{r: r}
	r.Profiles = []model.Profile{profileOf(t, "raw/stream", "sender", 1, 0.67), profileOf(t, "raw/stream", "receiver", 1, 0.8), profileOf(t, "raw/stream", "receiver", 1, math.NaN())}
	p, _, err := b.profiles()
	must.Succeed(t, err)
	if v := p.Sides[0]; !v.Agrees || v.Sum.Cores != "0.660" || v.Metered != "0.670" || !strings.Contains(v.Agreement, "−1.5 %") {
		t.Errorf("0.66 of 0.67 cores: %+v", v)
	}
	if v := p.Sides[1]; v.Agrees || !strings.Contains(v.Agreement, "−17.5 %") || !strings.Contains(v.Agreement, "the shares are less reliable") {
		t.Errorf("0.66 of 0.8 cores: %q", v.Agreement)
	}
	if v := p.Sides[2]; v.Metered != "" || !strings.Contains(v.Agreement, "has no figure") {
		t.Errorf("a meter that read nothing: %q, %q", v.Metered, v.Agreement)
	}
	percent := 0.0
	for _, row := range p.Sides[0].Rows {
		var v float64
		if !row.Apart {
			fmt.Sscan(row.Percent, &v)
		}
		percent += v
	}
	if math.Abs(percent-100) > 0.3 {
		t.Errorf("the categories are %.1f %% of the side", percent)
	}
}

func TestADamagedProfileIsReportedAndTheOthersAreShown(t *testing.T) {
	r := rigorous(t)
	r.Profiles[1].Data = r.Profiles[1].Data[:40]
	page := written(t, r)
	must.Equal(t, 3, len(flamesOf(t, page).Sides))
	contains(t, browsertest.Readable(page), "This profile cannot be shown.", "raw/stream, receiver", "vxlan/stream, receiver")

	for i := range r.Profiles {
		r.Profiles[i].Data = "no profile"
	}
	page = written(t, r)
	if bytes.Contains(page, []byte(`id="flames"`)) || bytes.Contains(page, []byte(`id="flame"`)) {
		t.Error("there is a flame graph of nothing")
	}
	must.Equal(t, 4, strings.Count(string(page), "This profile cannot be shown."))
}

func TestProfileWithoutTimeHasNoFigures(t *testing.T) {
	r := rigorous(t)
	r.Profiles = []model.Profile{packedProfile(t, "raw/stream", &folded.Profile{Side: "sender", Clock: "cpu-clock"}, 0)}
	page := browsertest.Readable(written(t, r))
	for _, bad := range []string{"NaN", "Inf", "+0 %"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page of an empty profile says %s", bad)
		}
	}
}
