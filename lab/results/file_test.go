package results

import (
	"bytes"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
)

// mounted returns a directory with a tmpfs of size bytes on it, in place until
// the test ends.
func mounted(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func TestAFullDiskIsAClearErrorAndStoredSamplesStay(t *testing.T) {
	dir := mounted(t, "size=1m")
	path := filepath.Join(dir, fileName)
	s := open(t, path, Options{})
	run, plan, samples := reporttest.Sized(200)
	must.Succeed(t, s.CreateRun(run, plan))
	stored, err := 0, error(nil)
	for ; stored < len(samples); stored++ {
		if _, err = s.AppendSample(run.ID, samples[stored]); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrDiskFull) || !strings.Contains(err.Error(), "no space is left on "+dir) || !strings.Contains(err.Error(), "resume") {
		t.Fatalf("after %d samples: %v", stored, err)
	}
	if stored < 10 {
		t.Errorf("only %d samples fit into 1 MiB", stored)
	}
	data, err := s.Load("")
	if err != nil || len(data.Samples) != stored {
		t.Fatalf("the full store loads %v, want %d samples", err, stored)
	}
	expectSound(t, s.db)
	growTmpfs(t, dir)
	if _, err := s.AppendSample(run.ID, samples[stored]); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
	must.Succeed(t, s.Close())
	if data, err := open(t, path, Options{}).Load(""); err != nil || len(data.Samples) != stored+1 {
		t.Errorf("reopened: %v, want %d samples", err, stored+1)
	}
}

func growTmpfs(t *testing.T, dir string) {
	t.Helper()
	must.Succeed(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=8m"))
}

func expectSound(t *testing.T, db *sql.DB) {
	t.Helper()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("integrity_check: %q, %v", verdict, err)
	}
}

func TestFullDiskWithoutAStoreIsAClearError(t *testing.T) {
	dir := mounted(t, "size=16k")
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 16<<10), 0o600))
	if _, err := Open(filepath.Join(dir, fileName), Options{}); !errors.Is(err, ErrDiskFull) {
		t.Errorf("error %v", err)
	}
}

func TestReadOnlyMediumCanBeReadAndRefusesWriting(t *testing.T) {
	dir := mounted(t, "size=4m")
	path := filepath.Join(dir, fileName)
	s := open(t, path, Options{})
	run, plan, samples := reporttest.Sized(2)
	fill(t, s, run, plan, samples)
	must.Succeed(t, s.Close())
	must.Succeed(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	for _, p := range []string{path, filepath.Join(dir, "other.db"), filepath.Join(dir, "new", "other.db")} {
		_, err := Open(p, Options{})
		if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "--db") || !strings.Contains(err.Error(), dir) {
			t.Errorf("open %s for writing: %v", p, err)
		}
	}
	data, err := open(t, path, Options{ReadOnly: true}).Load("")
	if err != nil || len(data.Samples) != len(samples) {
		t.Errorf("read from the read-only medium: %v, want %d samples", err, len(samples))
	}
}

// A killed run left a log with samples that the store's file lacks. If the file system is
// now read-only, opening the store must be an error, so that these samples are not missed.
func TestReadOnlyMediumWithALeftLogIsRefused(t *testing.T) {
	dir := mounted(t, "size=4m")
	path := filepath.Join(dir, fileName)
	s := open(t, path, Options{})
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	copyOf := filepath.Join(t.TempDir(), fileName)
	for _, suffix := range []string{"", "-wal"} {
		b := must.Get(os.ReadFile(path + suffix))(t)
		must.Succeed(t, os.WriteFile(copyOf+suffix, b, 0o600))
	}
	must.Succeed(t, s.Close())
	for _, suffix := range []string{"", "-wal"} {
		b := must.Get(os.ReadFile(copyOf + suffix))(t)
		must.Succeed(t, os.WriteFile(path+suffix, b, 0o600))
	}
	must.Succeed(t, unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if _, err := Open(path, Options{ReadOnly: true}); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "-wal") {
		t.Errorf("error %v", err)
	}
	if data, err := open(t, copyOf, Options{ReadOnly: true}).Load(""); err != nil || data.Run.ID != run.ID {
		t.Errorf("the copy: %v", err)
	}
}

func TestInvalidPlacesOfTheStoreAreClearErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must.Succeed(t, os.WriteFile(file, []byte("text"), 0o600))
	pipe := filepath.Join(dir, "pipe")
	must.Succeed(t, unix.Mkfifo(pipe, 0o600))
	for name, c := range map[string]struct {
		path string
		opts Options
		is   error
		says string
	}{
		"a directory":           {dir, Options{}, nil, "is a directory; name a file in it"},
		"a pipe":                {pipe, Options{}, nil, "is not a regular file"},
		"below a file":          {filepath.Join(file, fileName), Options{}, nil, file},
		"absent, for reading":   {filepath.Join(dir, "none.db"), Options{ReadOnly: true}, fs.ErrNotExist, "the first run makes it"},
		"not SQLite":            {file, Options{}, ErrNotStore, "it is unchanged"},
		"not SQLite, to read":   {file, Options{ReadOnly: true}, ErrNotStore, "not a SQLite database"},
		"a path with a NUL":     {filepath.Join(dir, "a\x00b"), Options{}, nil, "invalid argument"},
		"absent directory read": {filepath.Join(dir, "x", "none.db"), Options{ReadOnly: true}, fs.ErrNotExist, "there is no such file"},
	} {
		_, err := Open(c.path, c.opts)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("opening for reading made a directory")
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "text" {
		t.Errorf("the file that is no store now holds %q, %v", b, err)
	}
}

func TestNamesWithSpecialCharactersOfURIsAreNotInterpreted(t *testing.T) {
	for _, name := range []string{"a?mode=memory.db", "b#c.db", "100%25.db", "with space & ü.db"} {
		path := filepath.Join(t.TempDir(), name)
		s := open(t, path, Options{})
		run, plan, _ := reporttest.Sample()
		must.Succeed(t, s.CreateRun(run, plan))
		must.Succeed(t, s.Close())
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestDamagedFileIsAClearErrorAndStaysAsItIs(t *testing.T) {
	s := fresh(t)
	run, plan, samples := reporttest.Sized(3)
	fill(t, s, run, plan, samples)
	must.Succeed(t, s.Close())
	raw := must.Get(os.ReadFile(s.Path()))(t)
	for i := 4096; i < len(raw); i++ { // all but the first page
		raw[i] ^= 0x5a
	}
	must.Succeed(t, os.WriteFile(s.Path(), raw, 0o600))
	again, err := Open(s.Path(), Options{ReadOnly: true})
	if err == nil {
		_, err = again.Load("")
		_ = again.Close()
	}
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), ".recover") {
		t.Errorf("error %v", err)
	}
	if now, err := os.ReadFile(s.Path()); err != nil || !bytes.Equal(now, raw) {
		t.Errorf("the damaged file was changed, %v", err)
	}
}
