package html

import (
	"cmp"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"windtunnel/internal/lists"
	"windtunnel/lab/report/document"
)

// page is the data of page.html: a document, and what the template needs beside it.
type page struct {
	document.Document
	Sections []section
	Policy   string
	// The template does not escape values of these types. They are the page's own
	// style sheet and scripts, and data that needs no escaping.
	Data, Library, Script template.JS
	Style                 template.CSS
	Raw, Flames           template.HTML // base64
}

// newPage returns the page of a document.
func newPage(d document.Document) (*page, error) {
	code, data := sheet, sheetData(d)
	if d.Page != nil {
		code, data = script, d.Page.Charts
	}
	text, err := json.Marshal(data) // escapes <, > and &
	if err != nil {
		return nil, fmt.Errorf("encode the charts: %w", err)
	}
	p := &page{Document: d, Policy: policy(code), Data: template.JS(text), Library: template.JS(echarts), Script: template.JS(code), Style: template.CSS(style)}
	if d.Page != nil {
		p.Raw, p.Flames = template.HTML(d.Page.Raw), template.HTML(d.Page.Flames)
	}
	p.Sections, err = pageSections(d.Sections)
	return p, err
}

// sheetData returns the data of the script of comparisons and trends.
func sheetData(d document.Document) any {
	var data struct {
		Ratios []document.Ratios `json:"ratios,omitempty"`
		Trends []*document.Trend `json:"series,omitempty"`
	}
	for _, section := range d.Sections {
		if c := section.Chart; c != nil {
			data.Ratios = append(data.Ratios, c.Ratios...)
			if c.Trend != nil {
				data.Trends = append(data.Trends, c.Trend)
			}
		}
	}
	return data
}

// chip returns the class of the mark with a scenario's colour; "" for none.
func (p page) chip(scenario string) string {
	if p.Page != nil {
		if paint, ok := p.Page.Paints[scenario]; ok {
			return paint.Class()
		}
	}
	return ""
}

// section is a section with the level of its heading (2 is the highest).
type section struct {
	document.Section
	Level int
}

// pageSections returns the sections of a page. It leaves out drawings without data and content.
func pageSections(list []document.Section) (sections []section, err error) {
	for _, s := range list {
		if layout.Lookup(cmp.Or(s.Drawing, "section")+".html") == nil {
			return nil, fmt.Errorf("draw the section %q: there is no drawing %q", s.Title, s.Drawing)
		}
		if has, _ := template.IsTrue(s.Data); has || !s.Empty() {
			sections = append(sections, section{s, 2})
		}
	}
	return sections, nil
}

// Subsections returns the next level of sections below this one.
func (s section) Subsections() []section {
	return lists.Map(s.Sections, func(sub document.Section) section { return section{sub, s.Level + 1} })
}

// Anchor returns the ID of the section's heading.
func (s section) Anchor() string {
	words := strings.FieldsFunc(strings.ToLower(cmp.Or(s.Drawing, s.Title)), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return "h-" + strings.Join(words, "-")
}

var shades = regexp.MustCompile(`^(worse|better)\d$`)

// shaded reports whether figures of a table have a shade.
func shaded(t document.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r document.Row) bool {
		return slices.ContainsFunc(r.Cells, func(c document.Cell) bool {
			return shades.MatchString(c.Tone)
		})
	})
}

// wordy reports whether the texts of terms are explanations and not values.
func wordy(terms []document.Term) bool {
	n := 0
	for _, t := range terms {
		n += len(t.Text)
	}
	return n > 150*len(terms)
}
