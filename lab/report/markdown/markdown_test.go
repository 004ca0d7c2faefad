package markdown

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
)

func written(t *testing.T, r *model.Report) string {
	t.Helper()
	var b bytes.Buffer
	must.Succeed(t, Write(&b, report.Document(r)))
	return b.String()
}

func TestWriteReportsAFailingWriter(t *testing.T) {
	read, write := io.Pipe()
	_ = read.Close()
	if err := Write(write, report.Document(reporttest.Quick())); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

func TestMarkdownTablesKeepTheirShapeWhateverTheNames(t *testing.T) {
	r := reporttest.Quick()
	evil := "a|b\n| --- |\n# h `c` <script> [x](y) $1$ *e* _f_ ~~g~~ \\| &amp;"
	r.Run.Title, r.Findings, r.Notes = evil, []string{evil}, []string{evil}
	r.Run.Environment.Tools = map[string]string{evil: evil}
	for i := range r.Scenarios {
		r.Scenarios[i].ID += evil
		r.Scenarios[i].Skipped = evil
	}
	for i := range r.Published {
		r.Published[i].Source, r.Published[i].Printed = evil, evil
	}
	text := written(t, r)
	pipes := regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\|`)
	columns, rows := 0, 0
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		rows++
		n := len(pipes.FindAllString(line, -1))
		if columns == 0 {
			columns = n
		}
		if n != columns {
			t.Errorf("a row has %d bars, but its table has %d: %s", n, columns, line)
		}
	}
	text, _, _ = strings.Cut(text, "## To repeat") // within the fence all is text
	if rows < 15 {
		t.Fatalf("only %d rows of tables", rows)
	}
	for _, raw := range []string{"<script>", " [x](y)", "\n# h", "`c`"} {
		if strings.Contains(text, raw) {
			t.Errorf("the document has %q unescaped", raw)
		}
	}
}

func TestMarkdownFenceIsLongerThanAnyWithin(t *testing.T) {
	r := reporttest.Quick()
	r.Scenarios[0].Samples[0].Commands[0].Argv = []string{"x", "````", "y"}
	text := written(t, r)
	if !strings.Contains(text, "\n`````sh\n") || strings.Count(text, "`````") != 4 {
		t.Errorf("the fence can be closed from within: %s", text[strings.Index(text, "To repeat"):])
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"plain", "a|b", "\\", "\\|", "<b>", "\n\n# x", "ü\u202e\x00", "[a](b) `c` $d$"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := escape(text)
		if strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Errorf("%q escapes to a control character: %q", text, got)
		}
		for i := 0; i < len(got); i++ {
			switch got[i] {
			case '\\':
				i++ // the next one is text
			case '|', '<', '>', '`', '[', ']', '*', '_', '$':
				t.Errorf("%q escapes to a live %q: %q", text, got[i], got)
			}
		}
	})
}
