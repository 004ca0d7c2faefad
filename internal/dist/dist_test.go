package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// built is the folder of a release that all tests share.
var built string

const maintainer = "A Maintainer <a@example.org>"

// The first build compiles everything for two architectures, which takes minutes. Later ones
// take it from Go's build cache.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "wt-dist-test-")
	if err == nil {
		built = filepath.Join(dir, "release")
		_, err = run(context.Background(), options{root: "../..", out: built, maintainer: maintainer, architectures: supported})
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "build the release to test:", err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// artifact returns the path of the release's file of a product that ends in suffix.
func artifact(t *testing.T, product, suffix string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(built, product+"_*_"+suffix))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s has %d files of %s with %s (%v), want one", built, len(paths), product, suffix, err)
	}
	return paths[0]
}

// need skips a test without a program.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("%s is not installed", p)
		}
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// output runs a program and returns what it printed.
func output(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

func digest(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := sha256.Sum256(content)
	return hex.EncodeToString(d[:])
}

func TestTheSumsAreThoseOfAllFiles(t *testing.T) {
	need(t, "sha256sum")
	cmd := exec.Command("sha256sum", "--check", "--strict", sums)
	cmd.Dir = built
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	entries, err := os.ReadDir(built)
	if want := len(products)*len(supported)*4 + 1; err != nil || len(entries) != want {
		t.Errorf("the release has %d files (%v), want %d: %v", len(entries), err, want, entries)
	}
	if got := strings.Count(string(out), ": OK\n"); got != len(entries)-1 {
		t.Errorf("%s names %d files, want %d", sums, got, len(entries)-1)
	}
}

func TestTheProgramsAreStaticAndOfTheirArchitecture(t *testing.T) {
	machines := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}
	for _, p := range products {
		for _, arch := range supported {
			path := artifact(t, p.name, "linux_"+arch)
			f, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if f.Machine != machines[arch] {
				t.Errorf("%s is for %v, want %v", path, f.Machine, machines[arch])
			}
			for _, part := range f.Progs {
				if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
					t.Errorf("%s has a part %v: it is not static", path, part.Type)
				}
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
				t.Errorf("%s: mode %v (%v), want 0755", path, info.Mode(), err)
			}
			f.Close()
		}
	}
}

// The programs of the other architecture run in an emulator of user programs.
func TestTheProgramsOfTheOtherArchitectureRun(t *testing.T) {
	arch, emulators := "arm64", []string{"qemu-aarch64-static", "qemu-aarch64"}
	if runtime.GOARCH == "arm64" {
		arch, emulators = "amd64", []string{"qemu-x86_64-static", "qemu-x86_64"}
	}
	for _, e := range emulators {
		if _, err := exec.LookPath(e); err != nil {
			continue
		}
		for _, p := range products {
			if out := output(t, e, artifact(t, p.name, "linux_"+arch), "version"); !strings.Contains(out, "0.") {
				t.Errorf("%s version in %s prints %q, want its version", p.name, e, out)
			}
		}
		return
	}
	t.Skipf("none of %v is installed: apt-get install qemu-user-static", emulators)
}

// A copy of the repository without git, in another folder and with another path length, gives
// the same bytes. Both builds share Go's build cache, which does not contain the path.
func TestAReleaseIsReproducible(t *testing.T) {
	need(t, "git")
	s, err := findSource(t.Context(), "../..", "", false)
	if err != nil {
		t.Skipf("the second build needs git for the list of the files: %v", err)
	}
	clone := filepath.Join(t.TempDir(), "a", "longer", "path")
	listed := output(t, "git", "-C", s.tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for name := range strings.SplitSeq(strings.Trim(listed, "\x00"), "\x00") {
		copyInto(t, clone, s.tree, name)
	}
	t.Setenv("SOURCE_DATE_EPOCH", fmt.Sprint(s.time.Unix()))
	t.Setenv("TZ", "Pacific/Chatham")
	out := filepath.Join(t.TempDir(), "out")
	names, err := run(t.Context(), options{root: clone, out: out, given: s.revision, maintainer: maintainer, architectures: supported})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if digest(t, filepath.Join(built, name)) != digest(t, filepath.Join(out, name)) {
			t.Errorf("%s differs between two builds of one commit", name)
		}
	}
}

func copyInto(t *testing.T, to, from, name string) {
	t.Helper()
	info, err := os.Lstat(filepath.Join(from, name))
	if err != nil || !info.Mode().IsRegular() {
		return // deleted, and not yet committed
	}
	content, err := os.ReadFile(filepath.Join(from, name))
	if err == nil {
		err = os.MkdirAll(filepath.Join(to, filepath.Dir(name)), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAFolderWithOtherFilesIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := emptyFolder(dir); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("%v, want a refusal that names the file", err)
	}
	for _, name := range []string{"../thesis.tex", "/etc/passwd", ""} {
		if err := os.WriteFile(filepath.Join(dir, sums), []byte("0  "+name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := emptyFolder(dir); err == nil {
			t.Errorf("%s that names %q is accepted", sums, name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, sums), []byte("0  thesis.tex\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := emptyFolder(dir); err != nil {
		t.Errorf("a former release is not replaced: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v (%v) are left of a former release", left, err)
	}
}

func TestTheVersionOfAPackage(t *testing.T) {
	s := source{time: time.Date(2026, 11, 24, 0, 18, 5, 0, time.UTC)}
	for _, c := range []struct{ revision, want string }{
		{"v0.1.0", "0.1.0"},
		{"v0.1.0-dirty", "0.1.0~20261124001805.v0.1.0.dirty"},
		{"8692bfc01234", "0.1.0~20261124001805.8692bfc01234"},
		{"v0.0.9-12-g8692bfc01234", "0.1.0~20261124001805.v0.0.9.12.g8692bfc01234"},
	} {
		s.revision = c.revision
		if got := s.packageVersion("0.1.0"); got != c.want {
			t.Errorf("the version of %s is %s, want %s", c.revision, got, c.want)
		}
	}
}

// tree lists a folder: each path with its mode and its content's sum or its link's target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what = "link to " + to
		case d.Type().IsRegular():
			what += " " + digest(t, path)
		}
		all[strings.TrimPrefix(path, dir)] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unzip returns a compressed file's content.
func unzip(t *testing.T, path string) string {
	t.Helper()
	need(t, "gzip")
	var out bytes.Buffer
	cmd := exec.Command("gzip", "-dc", path)
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out.String()
}
