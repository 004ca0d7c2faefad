package report_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/document"
	"windtunnel/lab/report/drawings"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/text"
)

// asMarkdown writes a report as Markdown.
func asMarkdown(w io.Writer, r *model.Report) error { return markdown.Write(w, report.Document(r)) }

// asPage writes a report as a page.
func asPage(w io.Writer, r *model.Report) error {
	d, err := drawings.Page(r)
	if err != nil {
		return err
	}
	return html.Write(w, d)
}

// rows returns the rows of a section's first table as texts.
func rows(s document.Section) (list []string) {
	for _, row := range s.Tables[0].Rows {
		var cells []string
		for _, c := range row.Cells {
			cells = append(cells, c.String())
		}
		list = append(list, strings.Join(cells, " | "))
	}
	return list
}

func written(t *testing.T, write func(io.Writer, *model.Report) error, r *model.Report) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, write(&b, r))
	return b.String()
}

func tabled(t *testing.T, r *model.Report, o text.Options) string {
	t.Helper()
	return written(t, table(o), r)
}
