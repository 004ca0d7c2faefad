package cpio

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func archive(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	err := errors.Join(
		w.File("/init", 0o755, []byte("#!program")),
		w.File("usr/lib/deep/lib.so.1", 0o644, []byte("12345")),
		w.Link("usr/lib/lib.so", "deep/lib.so.1"),
		w.Folder("/usr/lib"), // there already
		w.Folder("dev"),
		w.File("empty", 0o600, nil),
		w.Close(),
	)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var wanted = []Entry{
	{"init", 0o100755, []byte("#!program")},
	{"usr", 0o040755, []byte{}},
	{"usr/lib", 0o040755, []byte{}},
	{"usr/lib/deep", 0o040755, []byte{}},
	{"usr/lib/deep/lib.so.1", 0o100644, []byte("12345")},
	{"usr/lib/lib.so", 0o120777, []byte("deep/lib.so.1")},
	{"dev", 0o040755, []byte{}},
	{"empty", 0o100600, []byte{}},
}

func TestWhatIsWrittenReadsBackWithEveryFolderOnceBeforeItsFiles(t *testing.T) {
	got, err := Read(bytes.NewReader(archive(t)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wanted, got); d != "" {
		t.Error(d)
	}
}

func TestTheSameFilesMakeTheSameArchive(t *testing.T) {
	if !bytes.Equal(archive(t), archive(t)) {
		t.Error("two archives of the same files differ")
	}
}

func TestCpioItselfListsTheArchive(t *testing.T) {
	program, err := exec.LookPath("cpio")
	if err != nil {
		t.Skip("cpio is not installed; get it with: apt-get install cpio")
	}
	cmd := exec.Command(program, "--quiet", "-t")
	cmd.Stdin = bytes.NewReader(archive(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var names []string
	for _, e := range wanted {
		names = append(names, e.Path)
	}
	if got := strings.Fields(string(out)); !cmp.Equal(names, got) {
		t.Errorf("cpio lists %v; want %v", got, names)
	}
}

type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errors.New("no space left")
	}
	return len(b), nil
}

func TestAWriteThatFailsIsToldByEveryLaterCall(t *testing.T) {
	w := NewWriter(&full{room: 200})
	if err := w.File("a", 0o644, make([]byte, 500)); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a file that did not fit: %v", err)
	}
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("closing after it: %v", err)
	}
}

func TestArchivesThatAreNoneAreRefusedWithTheirPlace(t *testing.T) {
	good := archive(t)
	change := func(at int, to string) []byte {
		b := bytes.Clone(good)
		copy(b[at:], to)
		return b
	}
	for what, c := range map[string]struct {
		archive []byte
		most    int64
		want    string
	}{
		"empty":         {nil, 1 << 20, "at byte 0: unexpected EOF"},
		"another magic": {change(0, "070707"), 1 << 20, `begins with "070707"`},
		"no number":     {change(6+8*6, "zzzzzzzz"), 1 << 20, `field 6 of a header is "zzzzzzzz"`},
		"a huge name":   {change(6+8*11, "FFFFFFFF"), 1 << 20, "a name of 4294967295 bytes"},
		"cut":           {good[:len(good)-130], 1 << 20, "unexpected EOF"},
		"too large":     {good, 4, "larger than what was expected"},
	} {
		if _, err := Read(bytes.NewReader(c.archive), c.most); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", what, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(archive(f))
	f.Add([]byte("070701"))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := Read(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		for _, e := range entries {
			if e.Path == trailer || len(e.Path) >= mostName {
				t.Errorf("an entry %q", e.Path)
			}
		}
	})
}
