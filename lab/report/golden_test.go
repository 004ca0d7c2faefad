// Package report_test compares complete reports with golden files.
package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/report/text"
)

var update = flag.Bool("update", false, "write the current reports to testdata/*.golden")

func table(o text.Options) func(io.Writer, *model.Report) error {
	return func(w io.Writer, r *model.Report) error { return text.Write(w, r, o) }
}

func explanation(w io.Writer, r *model.Report) error {
	for _, s := range r.Explain() {
		fmt.Fprintf(w, "%s\n", s.Title)
		for _, p := range s.Paragraphs {
			fmt.Fprintf(w, "  %s\n", p)
		}
	}
	return nil
}

func TestReportsAreTheGoldenOnes(t *testing.T) {
	quick := model.Build(reporttest.Sample())
	run, plan, samples := reporttest.Sized(2)
	plan.Comparisons, plan.Published = nil, nil
	for _, c := range []struct {
		name  string
		of    *model.Report
		write func(io.Writer, *model.Report) error
	}{
		{"table-140", quick, table(text.Options{Width: 140})},
		{"table-80", quick, table(text.Options{Width: 80})},
		{"table-colour", quick, table(text.Options{Width: 110, Color: true})},
		{"table-two-trials", model.Build(run, plan, samples), table(text.Options{Width: 100})},
		{"markdown", quick, markdown.Write},
		{"explain", model.Build(reporttest.Rigorous()), explanation},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := c.write(&got, c.of); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("the report differs from %s; if the change is right, update the file with go test -update:\n%s", file, diff)
			}
		})
	}
}
