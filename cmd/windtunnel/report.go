package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"windtunnel/lab/report/export"
	"windtunnel/lab/report/html"
	"windtunnel/lab/report/markdown"
	"windtunnel/lab/report/model"
	"windtunnel/lab/report/text"
	"windtunnel/lab/results"
)

// format is one form of a report.
type format struct {
	name  string
	file  string // name of the file in a report's directory
	write func(w io.Writer, r *model.Report) error
}

var formats = []format{
	{"table", "report.txt", func(w io.Writer, r *model.Report) error { return text.Write(w, r, tableOptions(w)) }},
	{"html", "report.html", html.Write},
	{"markdown", "report.md", markdown.Write},
	{"json", "report.json", export.WriteJSON},
	{"csv", "samples.csv", export.WriteCSV},
	{"benchfmt", "bench.txt", export.WriteBenchfmt},
}

func formatNames() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

func findFormat(name string) (format, error) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, fmt.Errorf("--format %s: choose one of %s", name, strings.Join(formatNames(), ", "))
	}
	return formats[i], nil
}

func tableOptions(w io.Writer) text.Options {
	o := text.Options{Width: 100}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.Color = os.Getenv("NO_COLOR") == ""
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width = width
		}
	}
	return o
}

func reportCommand() *cobra.Command {
	var db, name, out string
	cmd := &cobra.Command{
		Use:   "report [RUN]",
		Short: "Print the report of a run, or write it to a file (default: the latest run)",
		Args:  takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := findFormat(name)
			if err != nil {
				return err
			}
			r, err := loadReport(db, strings.Join(args, ""))
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				return f.write(cmd.OutOrStdout(), r)
			}
			if info, err := os.Stat(out); err == nil && info.IsDir() {
				return fmt.Errorf("--output %s: it is a directory; name a file in it, such as %s", out, filepath.Join(out, f.file))
			}
			return writeFile(out, f, r)
		},
	}
	cmd.Flags().StringVar(&name, "format", "table", "Format of the report: "+strings.Join(formatNames(), ", "))
	cmd.Flags().StringVarP(&out, "output", "o", "", "File to write instead of standard output")
	dbFlag(cmd, &db)
	return cmd
}

func loadReport(db, run string) (*model.Report, error) {
	store, err := openStore(db, true)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	return buildReport(store, run)
}

func buildReport(store *results.Store, run string) (*model.Report, error) {
	data, err := store.Load(run)
	if err != nil {
		return nil, err
	}
	return model.Build(data.Run, data.Plan, data.Samples), nil
}

// systemError returns the system's error in err, or err. The text of a system's error
// does not have the name of a temporary file.
func systemError(err error) error {
	var cause syscall.Errno
	if errors.As(err, &cause) {
		return cause
	}
	return err
}

// writeFile writes a report. After an error there is no partial file.
func writeFile(path string, f format, r *model.Report) error {
	var b bytes.Buffer
	if err := f.write(&b, r); err != nil {
		return fmt.Errorf("make the %s report: %w", f.name, err)
	}
	if err := renameio.WriteFile(path, b.Bytes(), 0o644, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("write the report %s: %w", path, systemError(err))
	}
	return nil
}

// report prints the table of the run, and writes the report's files.
func (s *runner) report() error {
	r, err := buildReport(s.store, s.run.ID)
	if err != nil {
		return err
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

// reportDir returns the directory of the run's report: --out, or out/RUN.
func (s *runner) reportDir() string {
	return cmp.Or(s.options.out, filepath.Join("out", s.run.ID))
}

// makeReportDir makes the directory of a report, and checks that it is writable. It is
// called before the first trial.
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
