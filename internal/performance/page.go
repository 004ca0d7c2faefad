package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/rejected"
	"windtunnel/lab/sample"
)

// block is a table of the page, between two comments. The first comment has the name and the origin:
//
//	<!-- figures: overlay/vxlan {"revision":"e649e191",…} -->
//	| … |
//	<!-- end -->
type block struct {
	name   string // of the part; for a further table of the part, followed by / and the name of the table
	origin origin
	text   string
}

// origin says where and when figures were measured.
type origin struct {
	Machine  string    `json:"machine"`
	Revision string    `json:"revision"`
	From     time.Time `json:"from,omitzero"`
	To       time.Time `json:"to,omitzero"`
	Attempts int       `json:"attempts,omitempty"` // number of attempts at trials
	Valid    int       `json:"valid,omitempty"`    // number of attempts that count
	Remark   string    `json:"remark,omitempty"`   // what else affected the figures
}

// machine describes the machine on which a run was made.
func machine(e sample.Environment) string {
	return fmt.Sprintf("%s, %s, Linux %s", e.CPUModel, phrase.Count(e.CPUs, "CPU"), e.Kernel)
}

// originOf returns the origin of figures that come from one or several runs.
func originOf(runs ...*model.Report) origin {
	first := runs[0].Run
	o := origin{Machine: machine(first.Environment), Revision: first.Environment.Revision, From: first.Started}
	var all model.Validity
	adjusted := 0
	for _, r := range runs {
		o.Attempts, o.Valid, all.Failed = o.Attempts+r.Validity.Attempts, o.Valid+r.Validity.Valid, all.Failed+r.Validity.Failed
		for _, g := range r.Validity.Gates {
			if i := slices.IndexFunc(all.Gates, func(k model.GateCount) bool { return k.Name == g.Name }); i < 0 {
				all.Gates = append(all.Gates, g)
			} else if all.Gates[i].Trials += g.Trials; g.Worst.Value > all.Gates[i].Worst.Value {
				all.Gates[i].Worst = g.Worst
			}
		}
		if r.Conditions.Adjusted {
			adjusted++
		}
		if r.Run.Started.Before(o.From) {
			o.From = r.Run.Started
		}
		if r.Run.Finished != nil {
			o = o.until(*r.Run.Finished)
		}
	}
	var remarks phrase.Lines
	for _, g := range all.Gates {
		remarks.Say("%s", rejected.Text(g))
	}
	remarks.SayIf(all.Failed > 0, "%d failed", all.Failed)
	remarks.SayIf(adjusted > 0, "adjusted to one CPU distance and no steal")
	o.Remark = strings.Join(remarks, "; ")
	o.From, o.To = o.From.Truncate(time.Second), o.To.Truncate(time.Second)
	return o
}

// until returns the origin of a measurement that lasted at least until t.
func (o origin) until(t time.Time) origin {
	if t.After(o.To) {
		o.To = t
	}
	return o
}

// blocks renders the tables of some parts. It leaves out parts that the store lacks, and runs that are not complete.
func (b *session) blocks(chosen []part) (list []block, err error) {
	for _, p := range chosen {
		if p.suite == nil {
			m, err := b.load(p.name)
			if err != nil {
				return nil, err
			}
			if m != nil {
				list = append(list, block{p.name, m.Origin, tableText(m.table())})
			}
			continue
		}
		b.part = p.name
		r, err := newest(b.db(), p.name)
		if err != nil {
			return nil, err
		}
		if r == nil || r.Run.Status != sample.Complete {
			continue
		}
		list = append(list, p.tables(r)...)
	}
	if b.short {
		for i := range list {
			list[i].origin.Remark = shortRemark
		}
	}
	return list, nil
}

// tables renders the blocks of a part that has one run.
func (p part) tables(r *model.Report) (list []block) {
	o := originOf(r)
	for i := range p.grids {
		list = append(list, block{p.block(i), o, tableText(p.grids[i].table(r))})
	}
	return list
}

// shortRemark marks figures that -short measured.
const shortRemark = "short trials, which say nothing"

// block is the name of the i-th block of a part.
func (p part) block(i int) string {
	if p.grids == nil || p.grids[i].name == "" {
		return p.name
	}
	return p.name + "/" + p.grids[i].name
}

// blockNames lists the blocks that the page must have.
func blockNames() (list []string) {
	for _, p := range parts {
		for i := range max(1, len(p.grids)) {
			if !p.apart {
				list = append(list, p.block(i))
			}
		}
	}
	return list
}

// table lists the rows of a measurement.
func (m *measurement) table() document.Table {
	t := document.Table{Columns: document.Words("figure", "target", "measured", "verdict")}
	for _, f := range m.Rows {
		t.Add(f.Figure, f.Target, f.Measured, string(f.Verdict))
	}
	return t
}

// escaped matches characters that the Markdown library escapes without need. Text of users is not in these tables.
var escaped = regexp.MustCompile("\\\\([][{}<>_`])")

// tableText formats a table as Markdown.
func tableText(t document.Table) string {
	var out bytes.Buffer
	if err := markdown.Write(&out, document.Document{Sections: []document.Section{{Tables: []document.Table{t}}}}); err != nil {
		panic(err) // a write to a buffer does not fail
	}
	return escaped.ReplaceAllString(out.String(), "$1")
}

// write replaces blocks of a page, and its table of origins.
func write(page string, blocks []block) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fill(string(text), blocks)
	if err != nil {
		return fmt.Errorf("write the figures into %s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}

var blockPattern = regexp.MustCompile(`(?ms)^<!-- figures: (\S+)(?: (\{.*?\}))? -->\n(.*?)^<!-- end -->\n`)

// provenance is the name of the block with the table of origins.
const provenance = "provenance"

// read lists the blocks of a page.
func read(page string) (list []block, err error) {
	for _, m := range blockPattern.FindAllStringSubmatch(page, -1) {
		k := block{name: m[1], text: m[3]}
		if m[2] != "" {
			if err := json.Unmarshal([]byte(m[2]), &k.origin); err != nil {
				return nil, fmt.Errorf("the origin of block %s: %w", k.name, err)
			}
		}
		list = append(list, k)
	}
	return list, nil
}

// String is the block as the page has it.
func (k block) String() string {
	head := k.name
	if k.origin != (origin{}) {
		text, err := json.Marshal(k.origin)
		if err != nil {
			panic(err) // the encoding of texts, numbers and times does not fail
		}
		head += " " + string(text)
	}
	return fmt.Sprintf("<!-- figures: %s -->\n%s<!-- end -->\n", head, k.text)
}

// fill returns the page with some blocks replaced. All other blocks keep their figures and origins. The block
// with the table of origins is made anew from all blocks.
func fill(page string, blocks []block) (string, error) {
	kept, err := read(page)
	if err != nil {
		return "", err
	}
	for _, k := range blocks {
		i := slices.IndexFunc(kept, func(o block) bool { return o.name == k.name })
		if i < 0 {
			return "", fmt.Errorf("the page has no block %s", k.name)
		}
		kept[i] = k
	}
	for i := range kept {
		if kept[i].name == provenance {
			kept[i].text = origins(kept)
		}
	}
	i := -1
	return blockPattern.ReplaceAllStringFunc(page, func(string) string { i++; return kept[i].String() }), nil
}

// origins returns a table with a row for each pair of machine and revision. The first row has the most blocks. The
// text before the table names the parts of all other rows.
func origins(blocks []block) string {
	type group struct {
		origin
		parts, remarks []string
		blocks         int
	}
	var groups []group
	var missing []string
	for _, k := range blocks {
		if k.name == provenance {
			continue
		}
		if k.origin == (origin{}) {
			missing = append(missing, k.name)
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.Machine == k.origin.Machine && g.Revision == k.origin.Revision })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{origin: k.origin})
			groups[i].Attempts, groups[i].Valid = 0, 0
		}
		g := &groups[i]
		part, _, _ := strings.Cut(k.name, "/")
		if g.blocks++; slices.Contains(g.parts, part) {
			continue // another block of the same run has added its trials and remarks
		}
		g.parts, g.Attempts, g.Valid = append(g.parts, k.name), g.Attempts+k.origin.Attempts, g.Valid+k.origin.Valid
		if from := k.origin.From; g.From.IsZero() || !from.IsZero() && from.Before(g.From) {
			g.From = k.origin.From
		}
		if g.origin = g.until(k.origin.To); k.origin.Remark != "" {
			g.remarks = append(g.remarks, k.name+": "+k.origin.Remark+".")
		}
	}
	slices.SortStableFunc(groups, func(a, b group) int { return b.blocks - a.blocks })
	t := document.Table{Columns: document.Words("figures", "machine", "revision", "measured (UTC)", "trials that count", "remarks")}
	var others []string
	for i, g := range groups {
		trials := ""
		if g.Attempts > 0 {
			trials = fmt.Sprintf("%d of %d", g.Valid, g.Attempts)
		}
		t.Add(strings.Join(g.parts, ", "), g.Machine, g.Revision, interval(g.From, g.To), trials, strings.Join(g.remarks, " "))
		if i > 0 {
			others = append(others, g.parts...)
		}
	}
	text := tableText(t)
	if others != nil {
		text = fmt.Sprintf("The parts of the first row were measured on one machine at one revision. These were measured on another machine or at another revision: %s. Compare only figures of one row.\n\n", strings.Join(others, ", ")) + text
	}
	if missing != nil {
		text += fmt.Sprintf("\nNot measured yet: %s.\n", strings.Join(missing, ", "))
	}
	return text
}

// interval prints when a measurement began and ended. A time of 00:00 means that only the day is known.
func interval(from, to time.Time) string {
	const day, clock = "2 January 2006", "15:04"
	if from.IsZero() {
		return "not recorded"
	}
	from, to = from.UTC(), to.UTC()
	first, last := from.Format(day), to.Format(day)
	if from.Truncate(24*time.Hour).Equal(from) && to.Truncate(24*time.Hour).Equal(to) {
		return strings.TrimSuffix(strings.TrimSuffix(first+" to "+last, " to "+first), " to 1 January 0001")
	}
	if first == last {
		return first + ", " + from.Format(clock) + " to " + to.Format(clock)
	}
	return first + ", " + from.Format(clock) + ", to " + last + ", " + to.Format(clock)
}
