// Package document has a report as its readers see it: a list of sections. The packages text,
// markdown and html write a document and know nothing of what is in it.
package document

import "strings"

// Document is what a command shows of runs: a report, a comparison or a trend.
type Document struct {
	Title    string
	Links    []Link
	Lead     string   // what was done; a terminal omits it
	Lines    []string // below the title: which run, when, where
	Sections []Section
	Page     *Page // nil for a comparison or a trend
}

// Page has what a page of a run shows in addition. Other writers omit it.
type Page struct {
	Charts  Charts
	Paints  map[string]Paint // colour of each scenario, by ID
	Version string           // of the program that measured
	Left    string           // sentence: what the page leaves out
	Lacks   string           // sentence: what the download leaves out
	File    string           // name of the download's file
	// Raw is the download and Flames the flame graphs: gzipped JSON in base64, "" for none.
	Raw, Flames string
}

// Link is a link to another page.
type Link struct{ Text, URL string }

// Section is a heading with its content, in the order of the fields. Empty fields are not
// written, and neither is an empty section.
type Section struct {
	Title     string
	Sketch    string // a chart in one line of text, beside the title, where no chart is drawn
	Lead      string // how to read the content; a terminal omits it
	Chart     *Chart
	Sentences []string // a list
	Brief     []string // the most important sentences, for the first screen of a page
	Terms     []Term
	Tables    []Table
	Code      []Code
	Notes     []string // remarks on the content
	Sections  []Section

	Style Style
	// Reference: the content explains or repeats the run. A terminal omits it.
	Reference bool
	// Drawing names the template with which a page draws the section. Other writers write the
	// content; see Undrawn.
	Drawing string
	Data    any    // for this template, which may need no data
	Short   string // title in a page's list of contents; a section without it is not in the list
}

// Style is the emphasis of a section's sentences.
type Style string

const (
	Faint Style = "faint"
	Alarm Style = "alarm"
)

// Term is a name with its value or explanation.
type Term struct {
	Name, Text string
	Run        string // ID of a run at the beginning of Text, which a web site links
}

// Code has lines for a shell. With a title the lines are folded away.
type Code struct {
	Title string
	Lines []string
}

// Add appends sections. It leaves out empty ones, also within sections.
func (d *Document) Add(sections ...Section) { d.Sections = append(d.Sections, kept(sections)...) }

func kept(sections []Section) (list []Section) {
	for _, s := range sections {
		if s.Sections = kept(s.Sections); s.Drawing != "" || !s.Empty() {
			list = append(list, s)
		}
	}
	return list
}

// Empty reports whether the section has no content besides a drawing.
func (s *Section) Empty() bool { return !s.written() && len(s.Sections)+len(s.Brief) == 0 }

// written reports whether the section has content besides other sections.
func (s *Section) written() bool {
	return len(s.Sentences)+len(s.Terms)+len(s.Tables)+len(s.Code) > 0 || s.Chart != nil
}

// Undrawn returns the sections for a writer that does not draw. A section that only draws is
// left out; the sections in it stand in its place.
func (d *Document) Undrawn() (list []Section) {
	for _, s := range d.Sections {
		if s.Drawing == "" || s.written() {
			list = append(list, s)
		} else {
			list = append(list, s.Sections...)
		}
	}
	return list
}

// Table is a table of figures and words. The first column names the rows.
type Table struct {
	Columns []Column
	Rows    []Row
	// Split: a terminal that is too narrow splits the columns into several tables. Otherwise
	// it omits ranges and wraps words.
	Split bool
}

// Column is a column of a table.
type Column struct {
	Name, Unit string
	Words      bool // the cells are words and not figures: aligned left
	Optional   bool // a terminal that is too narrow omits the column
	Plain      bool // a terminal omits the column's ranges
}

// Row has a cell for each column. A row of one cell is the heading of the rows below it.
type Row struct {
	Cells []Cell
	Notes []string // remarks on the row, below it
	Minor bool     // a terminal omits the row
	Alarm bool     // the row stands out
	// Scenario is the ID of the row's scenario, whose colour a page shows.
	Scenario string
}

// Cell is a figure with its interval and the sign of its verdict, or words.
type Cell struct {
	Text  string
	Range string // "[10.6, 11.0]"; also a detail that a narrow terminal omits
	Mark  string // "~", "?"
	Tone  string // class of style.css: the colour of the verdict, or the shade of a figure
	Run   string // as in Term
	Why   string // reason for the text, for a reader who points at it
	// Value is the figure as a number. A page sorts rows by it; nil: the cell has no figure.
	Value *float64
}

// String prints the cell on one line: "10.8 [10.6, 11.0] ~".
func (c Cell) String() string {
	return strings.Join(strings.Fields(c.Text+" "+c.Range+" "+c.Mark), " ")
}

// Words returns columns of words.
func Words(names ...string) (columns []Column) {
	for _, name := range names {
		columns = append(columns, Column{Name: name, Words: true})
	}
	return columns
}

// Figures returns columns of figures.
func Figures(names ...string) (columns []Column) {
	for _, name := range names {
		columns = append(columns, Column{Name: name})
	}
	return columns
}

// Add adds a row of texts.
func (t *Table) Add(texts ...string) *Row {
	row := Row{}
	for _, text := range texts {
		row.Cells = append(row.Cells, Cell{Text: text})
	}
	t.Rows = append(t.Rows, row)
	return &t.Rows[len(t.Rows)-1]
}

// List returns the table in a list; nil if it has no rows.
func (t Table) List() []Table {
	if len(t.Rows) == 0 {
		return nil
	}
	return []Table{t}
}
