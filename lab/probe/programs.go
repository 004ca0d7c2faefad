package probe

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"windtunnel/lab/child"
	"windtunnel/lab/program"
)

// Program is a program of a tool, found or not.
type Program struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"`    // empty where it is not installed
	Version string `json:"version,omitempty"` // first line that it prints about its version; empty: it prints none
	Package string `json:"package,omitempty"` // where to get it
}

// elsewhere has the findings about programs on another machine.
type elsewhere struct {
	name     string
	programs []Program
	lacks    map[string]string // by program
}

// Elsewhere returns facts of another machine, with the findings about programs there.
// name is the machine's name in reasons.
func (f Facts) Elsewhere(name string, programs []Program, lacks map[string]string) *Facts {
	f.elsewhere = &elsewhere{name, programs, lacks}
	return &f
}

// Where returns the start of reasons that concern the machine: its name and a colon if
// it is another one.
func (f *Facts) Where() string {
	if f.elsewhere == nil {
		return ""
	}
	return f.elsewhere.name + ": "
}

// Programs finds programs and their versions. It asks the installed programs in parallel.
// For another machine it returns all programs that were found there.
func (f *Facts) Programs(list []program.Program) []Program {
	if f.elsewhere != nil {
		return f.elsewhere.programs
	}
	found := make([]Program, len(list))
	var wg sync.WaitGroup
	for i, p := range list {
		found[i] = Program{Name: p.Name, Path: p.Path(), Package: p.Remedy()}
		if found[i].Path == "" || len(p.Version) == 0 {
			continue
		}
		wg.Go(func() { found[i].Version = askVersion(p.VersionCommand()) })
	}
	wg.Wait()
	return found
}

// Lacks returns the reason why a program cannot be used here, and how to get it; empty: the
// program is installed and new enough.
func (f *Facts) Lacks(p program.Program) string {
	if f.elsewhere != nil {
		return f.elsewhere.lacks[p.Name]
	}
	if p.Path() == "" {
		return fmt.Sprintf("%s is not installed; get it with: %s", p.Name, p.Remedy())
	}
	if p.Least == "" || len(p.Version) == 0 {
		return ""
	}
	if said := askVersion(p.VersionCommand()); !p.Serves(said) {
		return fmt.Sprintf("%s says %q, and %s or newer is needed; get it with: %s", p.Name, said, p.Least, p.Remedy())
	}
	return ""
}

const (
	versionTimeout = 2 * time.Second
	versionOutput  = 64 << 10
)

// versions has the answers of askVersion. A diagnosis asks for the same programs in each of
// some hundred scenarios, and dockerd takes 0.1 s to answer.
var versions sync.Map // of versionKey → func() string

// versionKey identifies a command line and the state of its program.
type versionKey struct {
	command  string
	modified time.Time
	size     int64
}

// askVersion returns the version that a program prints. It runs the program once, and again if
// its file has changed.
func askVersion(argv []string) string {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	key := versionKey{strings.Join(append([]string{path}, argv[1:]...), " "), info.ModTime(), info.Size()}
	ask := sync.OnceValue(func() string { return runForVersion(argv) })
	once, _ := versions.LoadOrStore(key, ask)
	return once.(func() string)()
}

// runForVersion runs a program with the option that prints its version. Many programs print it
// to stderr or end with an error, so only the output counts. A program that does not end is
// killed with its children.
func runForVersion(argv []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), versionTimeout)
	defer cancel()
	cmd := child.Command(ctx, argv)
	cmd.WaitDelay = 100 * time.Millisecond
	out, errs := &head{most: versionOutput}, &head{most: versionOutput}
	cmd.Stdout, cmd.Stderr = out, errs
	_ = cmd.Run()
	if v := firstLine(out.String()); v != "" {
		return v
	}
	return firstLine(errs.String())
}

// head keeps the first bytes that are written to it, and drops all later bytes.
type head struct {
	bytes.Buffer
	most int
}

func (h *head) Write(p []byte) (int, error) {
	keep := min(len(p), h.most-h.Len())
	h.Buffer.Write(p[:keep])
	return len(p), nil
}
