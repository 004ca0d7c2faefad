package results

import (
	"path/filepath"
	"testing"

	"windtunnel/lab/results/postgrestest"
)

// backend is a kind of database that can hold a store.
type backend struct {
	name  string
	place func(t testing.TB) string // of a store that does not exist yet
}

var sqliteBackend = backend{"SQLite", func(t testing.TB) string {
	return filepath.Join(t.TempDir(), "deep", "er", fileName)
}}

var postgresBackend = backend{"PostgreSQL", func(t testing.TB) string {
	server := postgrestest.Shared(t)
	return server.URL("postgres", server.Database(t))
}}

// onEach runs a test with each kind of database.
func onEach(t *testing.T, test func(t *testing.T, b backend)) {
	t.Helper()
	for _, b := range []backend{sqliteBackend, postgresBackend} {
		t.Run(b.name, func(t *testing.T) { test(t, b) })
	}
}

// fresh returns a new store.
func (b backend) fresh(t testing.TB) *Store {
	t.Helper()
	return open(t, b.place(t), Options{})
}
