package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"windtunnel/internal/cli"
	"windtunnel/internal/screen"
	"windtunnel/lab/report"
	"windtunnel/lab/report/drawings"
	"windtunnel/lab/report/export"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/published"
	"windtunnel/lab/report/sentences"
	"windtunnel/lab/report/text"
	"windtunnel/lab/results"
)

// format is one form of a report.
type format struct {
	name    string
	file    string // name of the file in a report's directory
	write   func(w io.Writer, reports ...*model.Report) error
	several bool // write takes the reports of several runs; otherwise of one
}

// formats are the forms of a run's report. `windtunnel run` writes all of them.
var formats = []format{
	{"table", "report.txt", ofOne(func(w io.Writer, r *model.Report) error { return text.Write(w, report.Document(r), tableOptions(w)) }), false},
	{"html", "report.html", ofOne(func(w io.Writer, r *model.Report) error {
		d, err := drawings.Page(r)
		if err != nil {
			return err
		}
		return html.Write(w, d)
	}), false},
	{"svg", "chart.svg", ofOne(func(w io.Writer, r *model.Report) error { return html.SVG(w, r.Run.Title, drawings.Panels(r)) }), false},
	{"svg-dark", "chart-dark.svg", ofOne(func(w io.Writer, r *model.Report) error { return html.DarkSVG(w, r.Run.Title, drawings.Panels(r)) }), false},
	{"markdown", "report.md", ofOne(func(w io.Writer, r *model.Report) error { return markdown.Write(w, report.Document(r)) }), false},
	{"json", "report.json", ofOne(export.WriteJSON), false},
	{"csv", "samples.csv", ofOne(export.WriteCSV), false},
	{"benchfmt", "bench.txt", ofOne(export.WriteBenchfmt), false},
}

// reportEndings choose a format without --format; the first match counts.
var reportEndings = []ending{
	{".html", "html"}, {".md", "markdown"}, {".json", "json"}, {".csv", "csv"}, {"bench.txt", "benchfmt"}, {".txt", "table"},
	{"dark.svg", "svg-dark"}, {".svg", "svg"},
}

var publishedFormat = format{"published", "published.md", func(w io.Writer, reports ...*model.Report) error {
	d, err := published.Document(reports...)
	if err != nil {
		return err
	}
	return markdown.Write(w, d)
}, true}

// ofOne makes the writer of a format out of a writer of one report.
func ofOne(write func(io.Writer, *model.Report) error) func(io.Writer, ...*model.Report) error {
	return func(w io.Writer, reports ...*model.Report) error { return write(w, reports[0]) }
}

func formatNames() []string {
	var names []string
	for _, f := range append(formats, publishedFormat) {
		names = append(names, f.name)
	}
	return names
}

// findFormat returns the format with a name of formatNames.
func findFormat(name string) format {
	all := append(formats, publishedFormat)
	return all[slices.IndexFunc(all, func(f format) bool { return f.name == name })]
}

func tableOptions(w io.Writer) text.Options {
	o := screen.Of(w)
	o.Width = cmp.Or(o.Width, 100)
	return o
}

func reportCommand() *cobra.Command {
	var db, name, out string
	cmd := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Print the report of a run, or write it to a file (default: the latest run)",
		Long: `Print the report of a run, or write it to a file (default: the latest run).

The format published takes several runs. It writes one page with the tables and
conclusions of the public documents that the runs' suites repeat. A suite's name
stands for its complete run with the most scenarios, the newest if there are
several. The default is every suite with tables of documents.

If --output is a directory, each suite has a separate page there:
published-SUITE.md. The default is then every suite with a complete run of full
length. The pages of the other suites stay as they are.`,
		Example: `  windtunnel report
  windtunnel report 20261121-093015 -o report.html
  windtunnel report --format published -o docs
  windtunnel report --format published opencontrail 20261121-093015`,
		Args: cli.Takes(0, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("format") {
				var err error
				if name, err = formatOf(out, name, reportEndings); err != nil {
					return err
				}
			}
			f := findFormat(name)
			info, err := os.Stat(out)
			toDir := err == nil && info.IsDir()
			if toDir && !f.several {
				return cli.Misuse(fmt.Errorf("--output %s: it is a directory; name a file in it, such as %s", out, filepath.Join(out, f.file)))
			}
			reports, err := selectReports(db, f, toDir, args)
			switch {
			case err != nil:
				return err
			case out == "" || out == "-":
				return f.write(cmd.OutOrStdout(), reports...)
			case toDir:
				return writePages(cmd.OutOrStdout(), out, reports)
			}
			return writeFile(out, f, reports...)
		},
	}
	formatFlag(cmd, &name, "the report (default: by the ending of --output, or table)", formatNames()...)
	cmd.Flags().StringVarP(&out, "output", "o", "", "File to write instead of standard output; for the format published also a directory")
	dbFlag(cmd, &db)
	return cmd
}

// selectReports returns the reports of the runs that a format shows: one, or for the format
// published several. toDir reports whether each has a separate page.
func selectReports(db string, f format, toDir bool, runs []string) ([]*model.Report, error) {
	if !f.several {
		if len(runs) > 1 {
			return nil, cli.Misuse(fmt.Errorf("--format %s shows one run, and %d are named; name one, or choose --format %s", f.name, len(runs), publishedFormat.name))
		}
		r, err := loadReport(db, strings.Join(runs, ""))
		return []*model.Report{r}, err
	}
	return readStore(db, func(s *results.Store) ([]*model.Report, error) {
		if toDir && len(runs) == 0 {
			return fullLengthReports(s)
		}
		return publishedReports(s, runs)
	})
}

func loadReport(db, run string) (*model.Report, error) {
	return readStore(db, func(s *results.Store) (*model.Report, error) { return buildReport(s, run) })
}

func buildReport(store *results.Store, run string) (*model.Report, error) {
	data, err := store.Load(run)
	if err != nil {
		return nil, err
	}
	return report.Build(data.Run, data.Plan, data.Samples), nil
}

// writeFile writes reports to one file.
func writeFile(path string, f format, reports ...*model.Report) error {
	return writeOutput(path, "the "+f.name+" report", func(w io.Writer) error { return f.write(w, reports...) })
}

// report prints the table of the run, and writes the report's files.
func (s *runner) report() error {
	r, err := buildReport(s.store, s.run.ID)
	if err != nil {
		return err
	}
	if brief := sentences.Brief(r); len(brief) > 0 {
		if err := s.store.SetHeadline(s.run.ID, brief[0]); err != nil {
			return err
		}
	}
	fmt.Fprintln(s.out)
	if err := formats[0].write(s.out, r); err != nil {
		return err
	}
	dir := s.reportDir()
	if err := s.writeFiles(r, dir); err != nil {
		return fmt.Errorf("%w; the figures are stored: `windtunnel report %s --format html -o FILE` writes a report again", err, s.run.ID)
	}
	_, err = fmt.Fprintf(s.out, "\nreport: %s\n", filepath.Join(dir, "report.html"))
	return err
}

// reportDir returns the directory of the run's report: --out, or out/RUN. Before the run has an ID,
// it returns out.
func (s *runner) reportDir() string {
	return cmp.Or(s.options.out, filepath.Join("out", s.run.ID))
}

// makeReportDir makes the directory of a report, and checks that it is writable. open and reopen
// call it before they store the run.
func makeReportDir(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = unix.Access(dir, unix.W_OK)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("make the report's directory %s: %w; choose another with --out", dir, systemError(err))
}

func (s *runner) writeFiles(r *model.Report, dir string) error {
	for _, f := range formats[1:] {
		if err := writeFile(filepath.Join(dir, f.file), f, r); err != nil {
			return err
		}
	}
	return s.writeProfiles(r, dir)
}
