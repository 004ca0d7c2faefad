package child

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func TestTheLastLinesOfAConsoleHaveThePanicAndNoControlSequences(t *testing.T) {
	path := filepath.Join(t.TempDir(), "console")
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "\x1b[2J\x1b[0mline %d\r\n", i)
		if i == 9 {
			fmt.Fprintln(&text, "Kernel panic - not syncing: why")
		}
	}
	must.Succeed(t, os.WriteFile(path, []byte(text.String()), 0o600))
	lines := strings.Split(LastLines(path), "\n")
	if len(lines) != lastLines+1 || !slices.Contains(lines, "line 39") || lines[0] != "Kernel panic - not syncing: why" || lines[1] != "line 28" {
		t.Errorf("the end of the console is %q, want the panic and the last lines", lines)
	}
}
