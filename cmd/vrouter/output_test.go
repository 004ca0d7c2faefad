package main

import (
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/ptytest"
	"windtunnel/vrouter/inspect"
)

func TestTablesFitATerminalAndAreWholeElsewhere(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	_, screen := ptytest.Open(t, 72)
	for _, c := range []struct {
		to            *os.File
		noColor, term string
		want          inspect.Options
	}{
		{screen, "", "xterm", inspect.Options{Width: 72, Colour: true}},
		{screen, "1", "xterm", inspect.Options{Width: 72}},
		{screen, "", "dumb", inspect.Options{Width: 72}},
		{file, "", "xterm", inspect.Options{}},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := optionsFor(c.to); got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q: %+v, want %+v", c.noColor, c.term, got, c.want)
		}
	}
}
