package html

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"windtunnel/lab/report/document"
)

// documentPage is the data of document.html.
type documentPage struct {
	document.Document
	Policy                string
	Data, Library, Script template.JS
	Style                 template.CSS
}

// WriteDocument writes a comparison or a trend as a page.
func (s Site) WriteDocument(w io.Writer, d document.Document) error {
	d.Links = append(s.Links[:len(s.Links):len(s.Links)], d.Links...)
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
	text, err := encode(data)
	if err == nil {
		err = s.send(w, "document.html", documentPage{Document: d, Policy: policy(sheet), Data: text, Library: template.JS(echarts), Script: template.JS(sheet), Style: template.CSS(style)})
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

// level is a section with the level of its heading: 2 is the highest.
type level struct {
	document.Section
	Level int
}

// sections returns sections with the level of their headings.
func sections(list []document.Section, above int) (levels []level) {
	for _, s := range list {
		levels = append(levels, level{s, above + 1})
	}
	return levels
}

// Anchor returns the ID of the section's heading.
func (l level) Anchor() string {
	words := strings.FieldsFunc(strings.ToLower(l.Title), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return "h-" + strings.Join(words, "-")
}

// shaded reports whether figures of a table have a shade.
func shaded(t document.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r document.Row) bool {
		return slices.ContainsFunc(r.Cells, func(c document.Cell) bool {
			return strings.HasPrefix(c.Tone, "worse") || strings.HasPrefix(c.Tone, "better")
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
