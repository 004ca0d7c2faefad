package drawings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"windtunnel/lab/profile/folded"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/profiles"
	"windtunnel/lab/report/quantity"
)

// profileList has the CPU profiles of the report, for the page.
type profileList struct {
	Sides []profileSide
	// Small is a sentence for readers: which frames of the flame graphs are merged; "" if
	// there is no flame graph.
	Small string
	// Twice says that one side was profiled in several scenarios, which can be compared.
	Twice bool
}

// profileSide is one side of one scenario, as tables.
type profileSide struct {
	Key            string // index in flames.Sides; "unreadable-N" if the profile cannot be decoded
	Scenario, Side string
	Paint          document.Paint
	Trouble        string // the reason why the profile cannot be decoded; the fields below are then empty
	PerByte        bool   // the rows have CPU time per byte
	Rows           []categoryRow
	Top            []topRow
	Sum            categoryRow
	Metered        string // cores
	Agreement      string // sentence: difference between Sum and Metered
	Agrees         bool
	Sampled        string   // sentence: number, rate and clock of the samples
	Notes          []string // about the profiler
}

// categoryRow has the CPU time of one category.
type categoryRow struct {
	Name    string
	Colour  int // index in the palette
	Cores   string
	Percent string
	PerByte string // ns
	Apart   bool   // idle time or the lab's wire, which are not in the sum
}

// colourCount is the number of category colours in style.css. More categories have the
// same colours with a pattern.
const colourCount = 12

// Hue returns the row's colour and pattern as classes of style.css.
func (r categoryRow) Hue() string {
	if r.Apart {
		return "apart"
	}
	return fmt.Sprintf("k%d p%d", r.Colour%colourCount, r.Colour/colourCount)
}

// topRow has the CPU time of one function, without the functions that it calls.
type topRow struct {
	Name, Percent, Cores string
	Kernel               bool // a function of the kernel
}

const (
	// agreement is the largest difference between the sum of the samples and the CPU
	// meter's figure that the page accepts, as a share of that figure.
	agreement = 0.03
	// mostTop is the number of functions that the page lists for a side.
	mostTop = 10
)

// decoded is a profile of the report after decoding.
type decoded struct {
	*model.Profile
	profile    *folded.Profile
	flame      *folded.FlameNode
	categories []folded.CategoryRow
	rate       float64 // payload bytes per second with the profiler; 0 if unknown
}

// profiles decodes the report's profiles and packs their flame graphs. If a profile
// cannot be decoded, the page says so and shows the others.
func (b *builder) profiles() (*profileList, string, error) {
	if len(b.r.Profiles) == 0 {
		return nil, "", nil
	}
	out := &profileList{}
	var list []decoded
	var troubles []error // by profile; nil if it could be decoded
	sides := make(map[string]int)
	for i := range b.r.Profiles {
		p := &b.r.Profiles[i]
		f, err := folded.Decode(p.Data)
		troubles = append(troubles, err)
		if err != nil {
			continue
		}
		list = append(list, decoded{p, f, folded.Flame(withoutWire(f)), folded.Categories(f), p.Bytes})
		sides[p.Side]++
		out.Twice = out.Twice || sides[p.Side] > 1
	}
	colours := palette(list)
	next := 0
	for i, err := range troubles {
		p := &b.r.Profiles[i]
		v := profileSide{Key: fmt.Sprintf("unreadable-%d", i), Scenario: p.Scenario, Side: p.Side, Paint: b.paints[p.Scenario]}
		if err != nil {
			v.Trouble = err.Error()
		} else {
			v.Key = strconv.Itoa(next)
			v.fill(&list[next], colours)
			next++
		}
		out.Sides = append(out.Sides, v)
	}
	if len(list) == 0 {
		return out, "", nil
	}
	packed, part, err := packFlames(list, mostFlames)
	out.Small = fmt.Sprintf("Functions below %s of a side are merged into “%s”.", quantity.Percentage(part), rest)
	return out, packed, err
}

// withoutWire returns the profile without the samples of the lab's wire. The wire is not
// a cost of the side, and the CPU meter's figure does not contain it.
func withoutWire(p *folded.Profile) *folded.Profile {
	without := *p
	without.Stacks = slices.DeleteFunc(slices.Clone(p.Stacks), func(s folded.Stack) bool { return s.Category == folded.Wire })
	return &without
}

// fill makes the tables of a profile.
func (v *profileSide) fill(d *decoded, colours []string) {
	v.PerByte, v.Notes = d.rate > 0, append(profiles.Slowdown(d.Profile), d.profile.Warnings...)
	v.rows(d, colours)
	v.Top = top(d.flame)
	v.Sampled = sampling(d.profile)
}

// rows makes the rows of the categories and the sum, and compares the sum with the CPU
// meter's figure.
func (v *profileSide) rows(d *decoded, colours []string) {
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

// sampling describes number, rate and clock of the samples.
func sampling(p *folded.Profile) string {
	text := fmt.Sprintf("%d samples over %s", p.Samples, quantity.Scale{Unit: "s", By: 1}.Print(p.Seconds))
	if p.Rate > 0 {
		text += fmt.Sprintf(", %.0f a second on each CPU (%s)", p.Rate, p.Clock)
	}
	if p.Lost > 0 {
		text += fmt.Sprintf("; %d did not fit into the buffer, so their time is in the samples after them", p.Lost)
	}
	return text + "."
}

// meter compares the sum of the samples with the CPU meter's figure. Both are in cores.
func (v *profileSide) meter(metered, sum float64) {
	if !(metered > 0) || math.IsInf(metered, 0) {
		v.Agreement = "The CPU meter has no figure for these windows, so the sum cannot be checked."
		return
	}
	off := sum/metered - 1
	v.Metered, v.Agrees = figure(metered), math.Abs(off) <= agreement
	v.Agreement = fmt.Sprintf("The sum differs from the CPU meter’s figure by %s, ", change(sum/metered))
	if v.Agrees {
		v.Agreement += "which is within the limit of 3 %."
	} else {
		v.Agreement += "more than the limit of 3 %: the shares are less reliable."
	}
}

// top lists the functions with the most CPU time. The time of a function does not contain
// the time of the functions that it calls.
func top(root *folded.FlameNode) []topRow {
	own := make(map[string]float64)
	var walk func(n *folded.FlameNode, depth int)
	walk = func(n *folded.FlameNode, depth int) {
		self := n.Value
		for _, c := range n.Children {
			self -= c.Value
			walk(c, depth+1)
		}
		if depth > 1 { // depths 0 and 1 are the side and its programs
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
func figure(v float64) string { return quantity.Scale{By: 1}.Print(v) }
