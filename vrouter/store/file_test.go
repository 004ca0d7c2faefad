package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileIsOneProcesssAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "another process has it open") {
		t.Errorf("%v", err)
	}
}

func TestAFileThatIsNoStoreIsLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	text := bytes.Repeat([]byte("no store. "), 2000)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("%v", err)
	}
	if now, _ := os.ReadFile(path); !bytes.Equal(now, text) {
		t.Error("it was changed")
	}
}

// One who looks much later than what is remembered has to read anew.
func TestAWatchFromTooLongAgoSaysSo(t *testing.T) {
	s, err := OpenFile(filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.db.NoSync = true
	for range mostHistory + 10 {
		commit(t, s, Commit{Put: put("a", "b")})
	}
	if err := s.Watch(context.Background(), 1, func(Changes) {}, func() {}); !errors.Is(err, ErrCompacted) {
		t.Errorf("%v", err)
	}
}
