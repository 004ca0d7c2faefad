package html

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"

	"windtunnel/lab/report/document"
)

// WriteDocument writes a comparison or a trend as a page.
func (s Site) WriteDocument(w io.Writer, d document.Document) error {
	var data struct {
		Ratios []ratios          `json:"ratios,omitempty"`
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
	p, err := newPage(d, nil, data, sheet)
	if err == nil {
		err = s.send(w, p)
	}
	if err != nil {
		return fmt.Errorf("write %q as HTML: %w", d.Title, err)
	}
	return nil
}

// linked escapes a text that begins with the ID of a run, and links the ID.
func (s Site) linked(text, run string) template.HTML {
	rest, ok := strings.CutPrefix(text, run)
	if run == "" || !ok || s.Run == nil {
		return prose(text)
	}
	return template.HTML(`<a href="`+template.HTMLEscapeString(s.Run(run))+`">`+template.HTMLEscapeString(run)+"</a>") + prose(rest)
}

// section is a section with the level of its heading (2 is the highest), and the data of its
// drawing.
type section struct {
	document.Section
	Level int
	Data  any
}

// pageSections returns the sections of a page. It leaves out drawings without data and content.
func pageSections(list []document.Section, drawings map[string]any) (sections []section, err error) {
	for _, s := range list {
		data := drawings[s.Drawing]
		if layout.Lookup(cmp.Or(s.Drawing, "section")+".html") == nil {
			return nil, fmt.Errorf("draw the section %q: there is no drawing %q", s.Title, s.Drawing)
		}
		if has, _ := template.IsTrue(data); has || !s.Empty() {
			sections = append(sections, section{s, 2, data})
		}
	}
	return sections, nil
}

// Subsections returns the next level of sections below this one.
func (s section) Subsections() (list []section) {
	for _, sub := range s.Sections {
		list = append(list, section{Section: sub, Level: s.Level + 1})
	}
	return list
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
