package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/vrouter/inspect"
)

// terminal opens a pseudo-terminal with a width in columns (pts(4)).
func terminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo-terminals here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("the pseudo-terminal cannot be opened: ", err)
	}
	t.Cleanup(func() { slave.Close() })
	return slave
}

func TestTablesFitATerminalAndAreWholeElsewhere(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	screen := terminal(t, 72)
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
	if !isTerminal(screen) || isTerminal(file) {
		t.Error("a terminal is not told from a file")
	}
}
