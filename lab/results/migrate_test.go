package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
)

func TestNewStoreHasTheNewestSchema(t *testing.T) {
	s := fresh(t)
	steps, err := readMigrations()
	if err != nil || len(steps) == 0 {
		t.Fatalf("%d migrations, %v", len(steps), err)
	}
	var version, id int
	must.Succeed(t, s.db.QueryRow("SELECT user_version, application_id FROM pragma_user_version, pragma_application_id").Scan(&version, &id))
	if version != len(steps) || id != applicationID {
		t.Errorf("version %d, application id %#x, want %d, %#x", version, id, len(steps), applicationID)
	}
}

func TestStoreFromANewerVersionIsRefusedUnchanged(t *testing.T) {
	s := fresh(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	must.Get(s.db.Exec("PRAGMA user_version = 99"))(t)
	must.Succeed(t, s.Close())
	before := must.Get(os.ReadFile(s.Path()))(t)
	for _, opts := range []Options{{}, {ReadOnly: true}} {
		_, err := Open(s.Path(), opts)
		if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 99") || !strings.Contains(err.Error(), "up to 6;") {
			t.Errorf("read only %v: error %v, want one that names both versions", opts.ReadOnly, err)
		}
	}
	if after, err := os.ReadFile(s.Path()); err != nil || string(after) != string(before) {
		t.Errorf("the refused store was changed, %v", err)
	}
}

func TestDatabaseOfAnotherProgramIsRefusedUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db := must.Get(sql.Open("sqlite", path))(t)
	must.Get(db.Exec("CREATE TABLE bookmarks (url TEXT)"))(t)
	must.Succeed(t, db.Close())
	before := must.Get(os.ReadFile(path))(t)
	if _, err := Open(path, Options{}); !errors.Is(err, ErrNotStore) || !strings.Contains(err.Error(), "another program") {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the other program's database was changed, %v", err)
	}
}

func TestOlderStoreIsMigratedAndKeepsItsRuns(t *testing.T) {
	s := fresh(t)
	run, plan, samples := reporttest.Sized(1)
	fill(t, s, run, plan, samples)
	steps := must.Get(readMigrations())(t)
	steps = append(steps,
		migration{"next", "ALTER TABLE run ADD COLUMN remark TEXT NOT NULL DEFAULT 'none'; CREATE INDEX run_by_remark ON run (remark);"},
		migration{"last", "UPDATE run SET remark = 'migrated';"})
	withConn(t, s, func(conn *sql.Conn) {
		must.Succeed(t, s.migrate(context.Background(), conn, steps))
	})
	var note string
	var version int
	if err := s.db.QueryRow("SELECT remark, user_version FROM run, pragma_user_version").Scan(&note, &version); err != nil || note != "migrated" || version != len(steps) {
		t.Errorf("note %q, version %d, %v, want migrated, %d", note, version, err, len(steps))
	}
	if data, err := s.Load(""); err != nil || len(data.Samples) != len(samples) {
		t.Errorf("after migration: %v, want %d samples", err, len(samples))
	}
}

func TestMigrationThatFailsLeavesTheStoreAsItWas(t *testing.T) {
	s := fresh(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, s.CreateRun(run, plan))
	steps := must.Get(readMigrations())(t)
	steps = append(steps, migration{"good", "CREATE TABLE extra (x);"}, migration{"0099_bad.sql", "DELETE FROM run; SELECT nonsense;"})
	withConn(t, s, func(conn *sql.Conn) {
		err := s.migrate(context.Background(), conn, steps)
		must.Fail(t, err, "0099_bad.sql", fmt.Sprintf("version %d", len(steps)))
	})
	var version, extra int
	must.Succeed(t, s.db.QueryRow("SELECT user_version, (SELECT count(*) FROM sqlite_schema WHERE name = 'extra') FROM pragma_user_version").Scan(&version, &extra))
	if version != len(steps)-2 || extra != 0 {
		t.Errorf("version %d, %d tables of the failed migration, want %d and 0", version, extra, len(steps)-2)
	}
	if runs, err := s.Runs(); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v", runs, err)
	}
}

func withConn(t *testing.T, s *Store, f func(*sql.Conn)) {
	t.Helper()
	conn := must.Get(s.db.Conn(context.Background()))(t)
	defer func() { _ = conn.Close() }()
	f(conn)
}

// Opening a store of the first version for reading returns ErrOlder, because a reader must
// not change the store. After it was opened for writing, it can be read.
func TestStoreOfTheFirstVersionIsMigratedByAWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), fileName)
	db := must.Get(sql.Open("sqlite", path))(t)
	steps := must.Get(readMigrations())(t)
	conn := must.Get(db.Conn(context.Background()))(t)
	must.Succeed(t, (&Store{dialect: sqliteFile(path)}).migrate(context.Background(), conn, steps[:1]))
	for _, statement := range []string{
		`INSERT INTO run VALUES ('r', 's', 't', '2026-01-01T00:00:00.000000000Z', NULL, '7', 'complete', '{}', '{}')`,
		`INSERT INTO sample (run_id, scenario, block, position, attempt, started, took_ns) VALUES ('r', 'a', 0, 0, 0, '2026-01-01T00:00:00.000000000Z', 1)`,
	} {
		must.Get(conn.ExecContext(context.Background(), statement))(t)
	}
	conn.Close()
	db.Close()
	if _, err := Open(path, Options{ReadOnly: true}); !errors.Is(err, ErrOlder) {
		t.Errorf("error %v, want ErrOlder", err)
	}
	s := open(t, path, Options{})
	data, err := s.Load("r")
	if err != nil || len(data.Samples) != 1 || !data.Samples[0].Counts() {
		t.Errorf("loaded %+v, %v", data, err)
	}
}
