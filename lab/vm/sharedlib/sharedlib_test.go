package sharedlib

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dynamicProgram is a program of this machine that needs libraries.
func dynamicProgram(t *testing.T) string {
	for _, name := range []string{"iperf3", "bash", "ls"} {
		if path, err := exec.LookPath(name); err == nil {
			if libs, err := System().Needed(path); err == nil && len(libs) > 1 {
				return path
			}
		}
	}
	t.Skip("no dynamically linked program is here")
	return ""
}

func TestALibraryIsFoundForEveryOneThatLddFinds(t *testing.T) {
	program := dynamicProgram(t)
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	libs, err := System().Needed(program)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, l := range libs {
		names[filepath.Base(l)] = true
	}
	found := 0
	for line := range strings.Lines(string(out)) {
		name := filepath.Base(strings.Fields(line)[0])
		if strings.HasPrefix(name, "linux-vdso") || strings.HasPrefix(name, "linux-gate") {
			continue // the kernel's own
		}
		found++
		if !names[name] {
			t.Errorf("%s needs %s by ldd; found were %v", program, name, libs)
		}
	}
	if found < 2 {
		t.Errorf("ldd names %d libraries of %s: the test compares nothing", found, program)
	}
}

func TestAProgramRunsInAPlaceThatHasNothingButWhatWasFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes the root folder")
	}
	program, err := exec.LookPath("ls")
	if err != nil {
		t.Skip("ls is not here")
	}
	libs, err := System().Needed(program)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, path := range append(libs, program) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		t.Skip("chroot is not here")
	}
	out, err := exec.Command(chroot, root, program, "/").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "usr") {
		t.Errorf("in a place of its own %s said %q: %v", program, out, err)
	}
}

func TestALibraryThatIsNowhereIsNamedWithWhoNeedsIt(t *testing.T) {
	program := dynamicProgram(t)
	empty := t.TempDir()
	_, err := (&Finder{Folders: []string{empty}}).Needed(program)
	if err == nil || !strings.Contains(err.Error(), program+" needs the library lib") || !strings.Contains(err.Error(), empty) {
		t.Errorf("without folders: %v", err)
	}
}

func TestAFileThatIsNoProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := System().Needed(path); err == nil || !strings.Contains(err.Error(), "no ELF program") {
		t.Errorf("a script: %v", err)
	}
}

func TestConfiguredFoldersFollowIncludes(t *testing.T) {
	dir := t.TempDir()
	more := filepath.Join(dir, "conf.d")
	if err := os.Mkdir(more, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ld.so.conf":       "# comment\ninclude " + more + "/*.conf\n/last\nrelative\n",
		"conf.d/a.conf":    "/first # why\n",
		"conf.d/b.conf":    "include " + dir + "/ld.so.conf\n", // round and round
		"conf.d/ignored.x": "/never\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := configured(filepath.Join(dir, "ld.so.conf"), 2)
	if want := []string{"/first", "/last"}; !slices.Equal(got, want) {
		t.Errorf("folders %v; want %v", got, want)
	}
}

func FuzzOpen(f *testing.F) {
	if program, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(program[:min(len(program), 8<<10)])
	}
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if o, err := open(path); err == nil && slices.ContainsFunc(o.folders, func(f string) bool { return !filepath.IsAbs(f) }) {
			t.Errorf("folders %v", o.folders)
		}
	})
}
