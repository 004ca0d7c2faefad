package probe

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"windtunnel/lab/program"
)

// Program is a program of a tool, found or not.
type Program struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`    // empty where it is not installed
	Version string `json:"version,omitempty"` // first line of what it says of itself; empty where it says nothing
	Package string `json:"package,omitempty"` // where to get it
}

// Programs looks for programs and asks those that are there for their
// versions, all at once.
func (f *Facts) Programs(list []program.Program) []Program {
	found := make([]Program, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		found[i] = Program{Name: p.Name, Path: p.Path(), Package: p.Package}
		if found[i].Path == "" || len(p.Version) == 0 {
			continue
		}
		wg.Go(func() { found[i].Version = askVersion(p.VersionCommand()) })
	}
	wg.Wait()
	return found
}

// Lacks says why a program cannot be used here and how to get one that can;
// empty where it is there and new enough.
func (f *Facts) Lacks(p program.Program) string {
	if p.Path() == "" {
		return fmt.Sprintf("%s is not installed; get it with: %s", p.Name, p.Package)
	}
	if p.Least == "" || len(p.Version) == 0 {
		return ""
	}
	if said := askVersion(p.VersionCommand()); !p.Serves(said) {
		return fmt.Sprintf("%s says %q, and %s or newer is needed; get it with: %s", p.Name, said, p.Least, p.Package)
	}
	return ""
}

const (
	versionTimeout = 2 * time.Second
	versionOutput  = 64 << 10
)

// askVersion runs a program that prints its version and ends. Many print it to
// stderr or end with an error, so that only what they said counts. One that
// does not end is killed with all that it started.
func askVersion(argv []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 100 * time.Millisecond
	out, errs := &head{most: versionOutput}, &head{most: versionOutput}
	cmd.Stdout, cmd.Stderr = out, errs
	_ = cmd.Run()
	if v := firstLine(out.String()); v != "" {
		return v
	}
	return firstLine(errs.String())
}

// head keeps the start of what is written to it and drops the rest.
type head struct {
	bytes.Buffer
	most int
}

func (h *head) Write(p []byte) (int, error) {
	keep := min(len(p), h.most-h.Len())
	h.Buffer.Write(p[:keep])
	return len(p), nil
}
