package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/model"
)

// profiles is where the CPU time went, by scenario and side.
type profiles struct {
	Views []profileView
	// Small says what is put together in the flame graphs, for people.
	Small string
	// Twice: one side of two scenarios was profiled, so they can be compared.
	Twice bool
}

// profileView is one side of one scenario, as tables.
type profileView struct {
	Key            string // its place among flames.Sides; of one that cannot be shown, another word
	Scenario, Side string
	Paint          paint
	Trouble        string // why it cannot be shown; the rest is empty then
	PerByte        bool   // the rows have CPU time per byte
	Rows           []categoryRow
	Top            []topRow
	Sum            categoryRow
	Metered        string // cores
	Agreement      string // of sum and meter
	Agrees         bool
	Slowdown       string
	Sampled        string // how much was sampled, and how
	Warnings       []string
}

// categoryRow is what one category took.
type categoryRow struct {
	Name    string
	Colour  int // of the palette
	Cores   string
	Percent string
	PerByte string // ns
	Apart   bool   // idle time and the lab's wire, which are not in the sum
}

// colourCount is how many colours style.css has for categories.
const colourCount = 12

// Hue is the row's colour as a class of style.css.
func (r categoryRow) Hue() string {
	if r.Apart {
		return "apart"
	}
	return fmt.Sprintf("k%d", r.Colour%colourCount)
}

// topRow is a function by the time that it took itself.
type topRow struct {
	Name, Percent, Cores string
	Kernel               bool // a function of the kernel
}

const (
	// agreement is how far the samples' sum may lie from the meter's figure.
	agreement = 0.03
	// mostTop is how many functions the page lists for a side.
	mostTop = 10
)

// decoded is a profile of the report, read.
type decoded struct {
	*model.Profile
	profile    *folded.Profile
	flame      *folded.FlameNode
	categories []folded.CategoryRow
	rate       float64 // payload bytes a second beside the profiler; 0 unknown
}

// profiles reads the report's profiles and packs their flame graphs. One that
// cannot be read is said to be so, and the others stand.
func (b *builder) profiles() (profiles, string, error) {
	var out profiles
	var list []decoded
	var troubles []error // by profile; nil where it could be read
	sides := make(map[string]int)
	for i := range b.r.Profiles {
		p := &b.r.Profiles[i]
		f, err := folded.Decode(p.Data)
		troubles = append(troubles, err)
		if err != nil {
			continue
		}
		list = append(list, decoded{p, f, folded.Flame(own(f)), folded.Categories(f), p.Bytes})
		sides[p.Side]++
		out.Twice = out.Twice || sides[p.Side] > 1
	}
	colours := palette(list)
	next := 0
	for i, err := range troubles {
		p := &b.r.Profiles[i]
		v := profileView{Key: fmt.Sprintf("unreadable-%d", i), Scenario: p.Scenario, Side: p.Side, Paint: b.paints[p.Scenario]}
		if err != nil {
			v.Trouble = err.Error()
		} else {
			v.Key = strconv.Itoa(next)
			v.fill(&list[next], colours)
			next++
		}
		out.Views = append(out.Views, v)
	}
	if len(list) == 0 {
		return out, "", nil
	}
	packed, part, err := plant(list, mostFlames)
	out.Small = fmt.Sprintf("Functions below %s of a side are merged into “%s”.", model.Percentage(part), rest)
	return out, packed, err
}

// own returns the profile without the lab's wire. The wire is no cost of the side,
// and the meter's figure leaves it out.
func own(p *folded.Profile) *folded.Profile {
	without := *p
	without.Stacks = slices.DeleteFunc(slices.Clone(p.Stacks), func(s folded.Stack) bool { return s.Category == folded.Wire })
	return &without
}

// fill makes the tables of a profile.
func (v *profileView) fill(d *decoded, colours []string) {
	v.PerByte, v.Warnings = d.rate > 0, d.profile.Warnings
	v.rows(d, colours)
	v.Top = top(d.flame)
	if d.Slowdown != nil {
		text, bounds := model.Scale{Unit: "%", By: 0.01}.Figure(*d.Slowdown)
		v.Slowdown = fmt.Sprintf("With the profiler the rate was %s %% %s of the rate without it.", text, bounds)
	}
	v.Sampled = sampling(d.profile)
}

// rows divides the side's time by category, and compares the sum with the meter.
func (v *profileView) rows(d *decoded, colours []string) {
	row := func(name string, cores, percent float64) categoryRow {
		r := categoryRow{Name: name, Cores: figure(cores), Percent: fmt.Sprintf("%.1f", percent)}
		if d.rate > 0 {
			r.PerByte = figure(cores * 1e9 / d.rate)
		}
		return r
	}
	for _, c := range d.categories {
		r := row(c.Name, c.Cores, c.Percent)
		r.Colour = slices.Index(colours, c.Name)
		if r.Apart = c.Name == folded.Idle || c.Name == folded.Wire; r.Apart {
			r.Percent, r.PerByte = "", ""
		}
		v.Rows = append(v.Rows, r)
	}
	sum := folded.Sum(d.profile)
	v.Sum = row("sum", sum.Busy, 100)
	if sum.Busy <= 0 {
		v.Sum.Percent = ""
	}
	v.meter(d.Metered, sum.Busy)
}

// sampling says how much was sampled, and how.
func sampling(p *folded.Profile) string {
	text := fmt.Sprintf("%d samples over %s", p.Samples, model.Scale{Unit: "s", By: 1}.Print(p.Seconds))
	if p.Rate > 0 {
		text += fmt.Sprintf(", %.0f a second on each CPU (%s)", p.Rate, p.Clock)
	}
	if p.Lost > 0 {
		text += fmt.Sprintf("; %d did not fit into the buffer, and their time is added to the next samples", p.Lost)
	}
	return text + "."
}

// meter compares the sum of the samples with the CPU meter's figure, in cores.
func (v *profileView) meter(metered, sum float64) {
	if !(metered > 0) || math.IsInf(metered, 0) {
		v.Agreement = "The CPU meter has no figure for these windows, so the sum cannot be checked."
		return
	}
	off := sum/metered - 1
	v.Metered, v.Agrees = figure(metered), math.Abs(off) <= agreement
	v.Agreement = fmt.Sprintf("The sum differs from the CPU meter’s figure by %s %%, ", signed(100*off))
	if v.Agrees {
		v.Agreement += "which is within the limit of 3 %."
	} else {
		v.Agreement += "more than the limit of 3 %: the shares are less reliable."
	}
}

// top lists the functions with the most CPU time of their own, without the
// functions that they call.
func top(root *folded.FlameNode) []topRow {
	own := make(map[string]float64)
	var walk func(n *folded.FlameNode, depth int)
	walk = func(n *folded.FlameNode, depth int) {
		self := n.Value
		for _, c := range n.Children {
			self -= c.Value
			walk(c, depth+1)
		}
		if depth > 1 { // below are the side and its programs, which are no functions
			own[n.Name] += self
		}
	}
	walk(root, 0)
	type pair struct {
		name string
		self float64
	}
	var list []pair
	for name, self := range own {
		if self > root.Value*1e-6 {
			list = append(list, pair{name, self})
		}
	}
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(a.name, b.name))
	})
	var rows []topRow
	for _, p := range list[:min(len(list), mostTop)] {
		name, kernel := strings.CutSuffix(p.name, folded.KernelSuffix)
		rows = append(rows, topRow{name, fmt.Sprintf("%.1f", 100*p.self/root.Value), figure(p.self), kernel})
	}
	return rows
}

// figure prints with three significant digits.
func figure(v float64) string { return model.Scale{By: 1}.Print(v) }
