package manual

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"windtunnel/internal/must"
)

func TestAPageHasTheSectionsAndNoZeroDefaults(t *testing.T) {
	t.Parallel()
	top := &cobra.Command{Use: "tool", Short: "Be a tool"}
	run := &cobra.Command{Use: "run", Short: "Run it", Run: func(*cobra.Command, []string) {}}
	f := run.Flags()
	f.Int("trials", 0, "Number of trials")
	f.Duration("duration", 0, "Time of a trial")
	f.StringSlice("scenario", nil, "Scenarios to run")
	f.StringP("output", "o", "", "`File` to write")
	f.TextVar(&net.IP{}, "to", net.IP{}, "`Address` to reach")
	f.Bool("short", false, "Run the short form")
	f.Int("rate", 99, "Samples per second")
	hidden := &cobra.Command{Use: "agent", Hidden: true, Run: func(*cobra.Command, []string) {}}
	top.AddCommand(run, hidden)
	var printed strings.Builder
	top.SetOut(&printed)
	folder := t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(folder, "other.1"), nil, 0o644))
	err := Write(run, "1.0", folder, Section{"EXIT STATUS", []Entry{{"0", "Success."}, {"3", `A \ and`}}}, Section{"FILES", []Entry{{".hidden", "A file."}}})
	if err != nil || printed.String() != "wrote 2 pages to "+folder+"\n" {
		t.Fatalf("%v, printed %q", err, printed.String())
	}
	page := must.Get(os.ReadFile(filepath.Join(folder, "tool-run.1")))(t)
	for _, want := range []string{
		`\fB--trials\fP=\fIint\fP` + "\n", `\fB--duration\fP=\fIduration\fP` + "\n", `\fB--scenario\fP=\fIstrings\fP` + "\n",
		`\fB-o\fP, \fB--output\fP=\fIFile\fP` + "\n", `\fB--short\fP` + "\n", `\fB--to\fP=\fIAddress\fP` + "\n", `\fB--rate\fP=99` + "\n",
		".SH EXIT STATUS\n.TP\n\\fB0\\fP\nSuccess.\n.TP\n\\fB3\\fP\nA \\e and\n", ".SH FILES\n.TP\n\\fB.hidden\\fP\nA file.\n\n.SH SEE ALSO\n",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
