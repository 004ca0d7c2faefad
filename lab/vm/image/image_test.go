package image

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/u-root/u-root/pkg/cpio"

	"windtunnel/internal/must"
	"windtunnel/lab/vm/kernel"
)

func spec(t *testing.T) Spec {
	t.Helper()
	k, err := kernel.Find()
	if err != nil {
		t.Skip(err)
	}
	self := must.Get(os.Executable())(t)
	return Spec{Kernel: k, Init: self, Programs: []string{"ls", "wt-none"}}
}

// contents reads an image: path → content of the file.
func contents(t *testing.T, path string) map[string][]byte {
	t.Helper()
	f, err := os.Open(path)
	must.Succeed(t, err)
	defer f.Close()
	z := must.Get(gzip.NewReader(f))(t)
	archive := must.Get(io.ReadAll(z))(t)
	records := must.Get(cpio.ReadAllRecords(cpio.Newc.Reader(bytes.NewReader(archive))))(t)
	by := map[string][]byte{}
	for _, r := range records {
		if _, twice := by[r.Name]; twice {
			t.Errorf("%s is there twice", r.Name)
		}
		if above := filepath.Dir(r.Name); above != "." && by[above] == nil {
			t.Errorf("%s comes before its folder", r.Name)
		}
		if by[r.Name], err = io.ReadAll(io.NewSectionReader(r, 0, int64(r.FileSize))); err != nil {
			t.Fatal(err)
		}
	}
	return by
}

func TestAnImageHasInitModulesAndProgramsWithTheirLibraries(t *testing.T) {
	folder := t.TempDir()
	path := must.Get(Built(spec(t), folder))(t)
	has := contents(t, path)
	for _, want := range []string{"init", "usr/bin/ls", "proc", "dev", "etc/passwd", "lib64/ld-linux-x86-64.so.2", "modules/virtio_net.ko"} {
		if _, ok := has[want]; !ok {
			t.Errorf("%s is missing", want)
		}
	}
	if _, ok := has["usr/bin/wt-none"]; ok {
		t.Error("a program that is not installed is there")
	}
	for name := range strings.FieldsSeq(string(has["modules/order"])) {
		if len(has["modules/"+name]) == 0 {
			t.Errorf("module %s is to be loaded and missing", name)
		}
	}
}

func TestAnImageIsBuiltOnceForTheSameContents(t *testing.T) {
	folder := t.TempDir()
	s := spec(t)
	first := must.Get(Built(s, folder))(t)
	before := must.Get(os.Stat(first))(t)
	again := must.Get(Built(s, folder))(t)
	after, err := os.Stat(again)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("built anew: %s and %s (%v)", first, again, err)
	}
	s.Programs = nil
	if other, err := Built(s, folder); err != nil || other == first {
		t.Errorf("without its program it is the same image: %s, %v", other, err)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestOldImagesAreRemovedAndImagesInUseStay(t *testing.T) {
	folder := t.TempDir()
	for i := range kept + 3 {
		path := filepath.Join(folder, "image-"+string(rune('a'+i))+".cpio.gz")
		must.Succeed(t, os.WriteFile(path, nil, 0o600))
		used := time.Now().Add(-time.Duration(i) * time.Hour)
		must.Succeed(t, os.Chtimes(path, used, used))
	}
	oldest := filepath.Join(folder, "image-"+string(rune('a'+kept+2))+".cpio.gz")
	must.Succeed(t, prune(folder, oldest))
	left, err := filepath.Glob(filepath.Join(folder, "image-*"))
	if err != nil || len(left) != kept+1 {
		t.Errorf("%d images stay, want %d and the one in use: %v", len(left), kept, left)
	}
	if _, err := os.Stat(oldest); err != nil {
		t.Errorf("the one in use is gone: %v", err)
	}
}

func TestAProgramWithoutItsSectionsIsShorterAndRuns(t *testing.T) {
	path := must.Get(os.Executable())(t)
	whole := must.Get(os.ReadFile(path))(t)
	short := withoutSections(whole)
	if len(short) >= len(whole) {
		t.Skipf("this test's program has nothing to leave out (%d bytes)", len(whole))
	}
	to := filepath.Join(t.TempDir(), "short")
	must.Succeed(t, os.WriteFile(to, short, 0o755))
	out, err := exec.Command(to, "-test.list", "Shorter").CombinedOutput()
	if err != nil || !strings.Contains(string(out), t.Name()) {
		t.Errorf("%d of %d bytes do not run: %v: %s", len(short), len(whole), err, out)
	}
}

func TestAFileThatIsNotAProgramIsUnchanged(t *testing.T) {
	for _, text := range []string{"", "#!/bin/sh\n", "\x7fELF\x02\x01\x01"} {
		if got := withoutSections([]byte(text)); string(got) != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestAMissingInitIsNamed(t *testing.T) {
	s := spec(t)
	s.Init = filepath.Join(t.TempDir(), "none")
	if _, err := Built(s, t.TempDir()); err == nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), s.Init) {
		t.Errorf("no init: %v", err)
	}
}

func FuzzWithoutSections(f *testing.F) {
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := withoutSections(b); len(got) > len(b) {
			t.Errorf("%d bytes of %d", len(got), len(b))
		}
	})
}

func TestAProgramRunsInARootFolderWithOnlyItsLibraries(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: changes the root folder")
	}
	chroot, err := exec.LookPath("chroot")
	if err != nil {
		t.Skip("chroot is not installed")
	}
	program, err := exec.LookPath("ls")
	if err != nil {
		t.Skip("ls is not installed")
	}
	libs := must.Get(librariesOf(program))(t)
	if len(libs) < 2 {
		t.Skipf("%s needs no libraries", program)
	}
	root := t.TempDir()
	for _, path := range append(libs, program) {
		b := must.Get(os.ReadFile(path))(t)
		to := filepath.Join(root, path)
		must.Succeed(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must.Succeed(t, os.WriteFile(to, b, 0o755))
	}
	out, err := exec.Command(chroot, root, program, "/").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "usr") {
		t.Errorf("in a root folder with only its libraries, %s printed %q: %v", program, out, err)
	}
}

func TestAFileThatIsNotAnELFProgramIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	must.Succeed(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	_, err := librariesOf(path)
	must.Fail(t, err, "as an ELF program")
}
