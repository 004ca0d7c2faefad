package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/results"
	"windtunnel/lab/sample"
	"windtunnel/lab/suite"
)

func TestAReaderOfAnOlderStoreMigratesItAndThenOnlyReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	must.Succeed(t, os.WriteFile(path, nil, 0o644)) // a store before its first migration
	store := must.Get(openStore(path, true))(t)
	defer store.Close()
	if runs, err := store.Runs(); err != nil || len(runs) != 0 {
		t.Errorf("the migrated store has runs %v, %v, want none", runs, err)
	}
	if err := store.CreateRun(sample.Run{ID: "r"}, suite.Plan{}); !errors.Is(err, results.ErrReadOnly) {
		t.Errorf("write into the store: %v, want ErrReadOnly", err)
	}
}
