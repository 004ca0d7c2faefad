package meter

import (
	"fmt"
	"time"
)

// WindowError is a window of zero or negative length: the two readings were
// swapped or are the same.
type WindowError struct{ Length time.Duration }

func (e *WindowError) Error() string {
	return fmt.Sprintf("meter window of %v: the second reading must be taken after the first", e.Length)
}

// ClockError is a CPU that was idle for longer than the window. The machine's
// clock jumped, as after a suspend or a migration.
type ClockError struct {
	CPU    int
	Window time.Duration
	Idle   time.Duration // idle, iowait and steal together
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("CPU %d was idle for %v in a window of %v: the clock jumped (suspend, migration); the trial must be repeated", e.CPU, e.Idle, e.Window)
}

// OfflineError is a CPU of the node that is missing from a reading.
type OfflineError struct{ CPU int }

func (e *OfflineError) Error() string {
	return fmt.Sprintf("CPU %d of the node is offline or went offline during the window: keep it online (echo 1 > /sys/devices/system/cpu/cpu%d/online) or give the node other CPUs", e.CPU, e.CPU)
}

// CounterError is a counter that fell by more than a 32-bit wrap explains: the
// counted object was made anew during the window.
type CounterError struct {
	What          string
	Before, After uint64
}

func (e *CounterError) Error() string {
	return fmt.Sprintf("%s went back from %d to %d during the window: it was made anew or reset meanwhile; the trial must be repeated", e.What, e.Before, e.After)
}

// GoneError is a device or namespace that is missing in one of the two
// readings, or that was replaced by another one of the same name.
type GoneError struct{ What string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("%s was removed, added or replaced during the window; the trial must be repeated", e.What)
}

// ParseError is a text from the kernel in an unexpected form.
type ParseError struct {
	File string // such as /proc/stat
	Line string // the offending line, shortened
	Want string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("read %s: line %q: want %s", e.File, e.Line, e.Want)
}

func badLine(file string, line []byte, want string) error {
	const most = 120
	if len(line) > most {
		line = line[:most]
	}
	return &ParseError{File: file, Line: string(line), Want: want}
}

// since returns the growth of a counter between two readings. A counter of 32
// bits may have wrapped once. A fall that a wrap does not explain is an error.
func since(what string, before, after uint64) (uint64, error) {
	switch {
	case after >= before:
		return after - before, nil
	case before < 1<<32 && before-after > 1<<31:
		return 1<<32 - before + after, nil
	}
	return 0, &CounterError{What: what, Before: before, After: after}
}
