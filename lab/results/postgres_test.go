package results

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
	"windtunnel/lab/results/postgrestest"
	"windtunnel/lab/sample"
)

// column is a column of either database, with its type in SQLite's words.
type column struct {
	Table, Name, Type string
	NotNull           bool
	PrimaryKey        int // position in the primary key, from 1; 0 if it is not in it
}

const sqliteColumns = `SELECT m.name, c.name, c.type, c."notnull" OR c.pk > 0, c.pk
	FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' ORDER BY m.name, c.cid`

const postgresColumns = `SELECT c.relname, a.attname,
		CASE format_type(a.atttypid, a.atttypmod) WHEN 'bigint' THEN 'INTEGER' WHEN 'double precision' THEN 'REAL' WHEN 'bytea' THEN 'BLOB'
			WHEN 'text' THEN CASE WHEN a.attcollation = '"C"'::regcollation THEN 'TEXT' ELSE 'TEXT of another order' END
			ELSE format_type(a.atttypid, a.atttypmod) END,
		a.attnotnull, coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0)
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
	WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname <> 'windtunnel_schema' ORDER BY c.relname, a.attnum`

func columns(t *testing.T, db *sql.DB, query string) (list []column) {
	t.Helper()
	rows := must.Get(db.Query(query))(t)
	defer rows.Close()
	for rows.Next() {
		var c column
		must.Succeed(t, rows.Scan(&c.Table, &c.Name, &c.Type, &c.NotNull, &c.PrimaryKey))
		list = append(list, c)
	}
	return list
}

func names(t *testing.T, db *sql.DB, query string) (list []string) {
	t.Helper()
	rows := must.Get(db.Query(query))(t)
	defer rows.Close()
	for rows.Next() {
		var name string
		must.Succeed(t, rows.Scan(&name))
		list = append(list, name)
	}
	return list
}

func TestBothDatabasesHaveTheSameSchemaAfterEachMigration(t *testing.T) {
	steps := must.Get(readMigrations())(t)
	var stores []*Store
	for _, b := range []backend{sqliteBackend, postgresBackend} {
		s := must.Get(connect(b.place(t), Options{}))(t)
		t.Cleanup(func() { _ = s.Close() })
		stores = append(stores, s)
	}
	for version := 1; version <= len(steps); version++ {
		for _, s := range stores {
			withConn(t, s, func(conn *sql.Conn) {
				must.Succeed(t, s.migrate(context.Background(), conn, steps[:version]))
			})
		}
		want := columns(t, stores[0].db, sqliteColumns)
		if len(want) < 10 {
			t.Fatalf("SQLite has %d columns after migration %d", len(want), version)
		}
		if diff := cmp.Diff(want, columns(t, stores[1].db, postgresColumns)); diff != "" {
			t.Errorf("after migration %s the columns differ (−SQLite +PostgreSQL):\n%s", steps[version-1].name, diff)
		}
		indexes := names(t, stores[0].db, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
		if diff := cmp.Diff(indexes, names(t, stores[1].db, "SELECT indexname FROM pg_indexes WHERE schemaname = 'public' AND indexname NOT LIKE '%_pkey' ORDER BY indexname")); diff != "" {
			t.Errorf("after migration %s the indexes differ (−SQLite +PostgreSQL):\n%s", steps[version-1].name, diff)
		}
	}
}

// versionOf returns the schema version of a store in PostgreSQL.
func versionOf(t *testing.T, s *Store) (version int) {
	t.Helper()
	must.Succeed(t, s.db.QueryRow("SELECT version FROM windtunnel_schema").Scan(&version))
	return version
}

func TestAnOldStoreOfAServerIsMigratedOnceByManyAtOnce(t *testing.T) {
	steps := must.Get(readMigrations())(t)
	place := postgresBackend.place(t)
	old := must.Get(connect(place, Options{}))(t)
	withConn(t, old, func(conn *sql.Conn) {
		must.Succeed(t, old.migrate(context.Background(), conn, steps[:1]))
	})
	if _, err := old.db.Exec(`INSERT INTO run VALUES ('r', 's', 't', '2026-01-01T00:00:00.000000000Z', NULL, '7', 'complete', '{}', '{}')`); err != nil {
		t.Fatal(err)
	}
	_ = old.Close()
	if _, err := Open(place, Options{ReadOnly: true}); !errors.Is(err, ErrOlder) {
		t.Errorf("open the old store for reading: %v, want ErrOlder", err)
	}
	var openers sync.WaitGroup
	for range 4 {
		openers.Go(func() {
			s, err := Open(place, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	openers.Wait()
	s := open(t, place, Options{})
	must.Equal(t, len(steps), versionOf(t, s))
	if data, err := s.Load("r"); err != nil || data.Run.Seed != 7 {
		t.Errorf("the run of the old store: %+v, %v", data, err)
	}
}

func TestAMigrationOfAServerThatFailsChangesNothing(t *testing.T) {
	s := postgresBackend.fresh(t)
	steps := must.Get(readMigrations())(t)
	before := versionOf(t, s)
	steps = append(steps, migration{"good", "CREATE TABLE extra (x TEXT);"}, migration{"0099_bad.sql", "DELETE FROM run; SELECT nonsense;"})
	withConn(t, s, func(conn *sql.Conn) {
		err := s.migrate(context.Background(), conn, steps)
		must.Fail(t, err, "0099_bad.sql", s.Path())
	})
	must.Equal(t, before, versionOf(t, s))
	must.Equal(t, 0, len(names(t, s.db, "SELECT relname FROM pg_class WHERE relname = 'extra'")))
}

func TestAServersDatabaseThatIsNotAStoreIsRefusedUnchanged(t *testing.T) {
	server := postgrestest.Shared(t)
	tables := `SELECT nspname || '.' || relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname NOT LIKE 'pg\_%' AND nspname <> 'information_schema' ORDER BY 1`
	for name, c := range map[string]struct {
		prepare string
		opts    Options
		is      error
		says    string
	}{
		"another program's":              {"CREATE TABLE bookmarks (url TEXT)", Options{}, ErrNotStore, "another program; it is unchanged"},
		"another program's, to read":     {"CREATE VIEW v AS SELECT 1", Options{ReadOnly: true}, ErrNotStore, "another program"},
		"empty, to read":                 {"SELECT 1", Options{ReadOnly: true}, fs.ErrNotExist, "the first run makes it"},
		"of a newer windtunnel":          {"CREATE TABLE windtunnel_schema (version BIGINT); INSERT INTO windtunnel_schema VALUES (99)", Options{}, ErrNewer, "version 99"},
		"of a newer, to read":            {"CREATE TABLE windtunnel_schema (version BIGINT); INSERT INTO windtunnel_schema VALUES (99)", Options{ReadOnly: true}, ErrNewer, "version 99"},
		"with another table of the mark": {"CREATE TABLE windtunnel_schema (name TEXT)", Options{}, nil, "version"},
	} {
		database := server.Database(t)
		server.Exec(t, database, c.prepare)
		place := server.URL("postgres", database)
		db, err := connect(place, Options{})
		must.Succeed(t, err)
		t.Cleanup(func() { _ = db.Close() })
		before := names(t, db.db, tables)
		_, err = Open(place, c.opts)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), database) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
		}
		if diff := cmp.Diff(before, names(t, db.db, tables)); diff != "" {
			t.Errorf("%s: the tables changed:\n%s", name, diff)
		}
	}
	server.Exec(t, "postgres", "DROP DATABASE IF EXISTS latin")
	server.Exec(t, "postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
	if _, err := Open(server.URL("postgres", "latin"), Options{}); !errors.Is(err, ErrNotStore) || !strings.Contains(err.Error(), "-E UTF8") {
		t.Errorf("a database in LATIN1: %v", err)
	}
}

func TestASchemaBesideAnotherProgramIsAStoreOfItsOwn(t *testing.T) {
	server := postgrestest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, "CREATE TABLE bookmarks (url TEXT); CREATE SCHEMA one; CREATE SCHEMA two")
	run, plan, _ := reporttest.Sample()
	run.Status = sample.Running
	var stores []*Store
	for _, schema := range []string{"one", "two"} {
		s := open(t, server.URL("postgres", database)+"&search_path="+schema, Options{})
		must.Succeed(t, s.CreateRun(run, plan)) // the lock of this ID belongs to a schema
		stores = append(stores, s)
	}
	must.Succeed(t, stores[0].Close())
	again := open(t, stores[0].Path(), Options{ReadOnly: true})
	must.Equal(t, sample.Stopped, statuses(t, again)[run.ID])
	must.Equal(t, sample.Running, statuses(t, stores[1])[run.ID])
}

func TestWrongServersAreClearErrorsWithoutThePassword(t *testing.T) {
	server := postgrestest.Shared(t)
	database := server.Database(t)
	guarded := func(password string) string {
		return server.URL(url.UserPassword(postgrestest.Guarded, password).String(), database)
	}
	const secret = "t0psecret"
	for name, c := range map[string]struct{ place, says string }{
		"a wrong password":           {guarded(secret), "the password of user guarded is wrong or missing; keep it in ~/.pgpass or PGPASSWORD"},
		"no password":                {server.URL(postgrestest.Guarded, database), "the password of user guarded is wrong or missing"},
		"no rights":                  {guarded(postgrestest.Password), "user guarded lacks a right; grant it"},
		"an unknown database":        {server.URL("postgres:"+secret, "nosuch"), "make it with `createdb -T template0 -E UTF8 -O postgres nosuch`"},
		"an unknown user":            {server.URL("nosuch:"+secret, database), "the server does not accept user nosuch"},
		"an unknown host":            {"postgres://u:" + secret + "@nosuch.invalid/db", "postgres://u@nosuch.invalid:5432/db: the host nosuch.invalid is unknown"},
		"a port without a server":    {"postgres://u:" + secret + "@127.0.0.1:1/db", "the server does not answer; start the server, or correct the host, the port"},
		"a socket without a server":  {"postgres://u:" + secret + "@/db?host=" + t.TempDir(), "the server does not answer"},
		"no slashes":                 {"postgres:u:" + secret + "@h/db", "write postgres://USER@HOST/DATABASE"},
		"one slash":                  {"postgres:/u:" + secret + "@h/db", "write postgres://USER@HOST/DATABASE"},
		"a misspelt scheme":          {"postgress://u:" + secret + "@h/db", "write postgres://USER@HOST/DATABASE"},
		"a capital letter":           {"Postgres://u:" + secret + "@h/db", "write postgres://USER@HOST/DATABASE"},
		"another server":             {"mysql://u:" + secret + "@h/db", "write postgres://USER@HOST/DATABASE"},
		"a port that is no number":   {"postgres://u:" + secret + "@h:port/db", "encode special characters"},
		"a port, without password":   {"postgres://u@h:port/db", "invalid port"},
		"an option with a mistake":   {"postgres://u@h/db?sslmode=sometimes", "sslmode is invalid"},
		"an option of no server":     {server.URL("postgres", database) + "&keepalive=1", `correct or omit it: unrecognized configuration parameter "keepalive"`},
		"two hosts":                  {"postgres://u@127.0.0.1:1,127.0.0.1:2/db", "postgres://u@127.0.0.1:1,127.0.0.1:2/db: the server does not answer"},
		"a password in an option":    {"postgres://u@h:port/db?password=" + secret, "encode special characters"},
		"a percent sign":             {"postgres://u:%" + secret + "@h/db", "encode special characters"},
		"a slash in the password":    {"postgres://u:" + secret + "/" + secret + "@h/db", "open store postgres://u:****"},
		"an at sign in the password": {"postgres://u:" + secret + "@" + secret + "@h:x/db", "open store postgres://u:****"},
	} {
		_, err := Open(c.place, Options{Wait: 3 * time.Second})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.says)
			continue
		}
		for _, hidden := range []string{secret, postgrestest.Password} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("%s: the error has the password: %v", name, err)
			}
		}
	}
}

func TestAMissingRightIsNamed(t *testing.T) {
	server := postgrestest.Shared(t)
	database := server.Database(t)
	run, plan, _ := reporttest.Sample()
	must.Succeed(t, open(t, server.URL("postgres", database), Options{}).CreateRun(run, plan))
	guarded := server.URL(url.UserPassword(postgrestest.Guarded, postgrestest.Password).String(), database)
	expect := func(err error, rights string) {
		t.Helper()
		if !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "grant it ("+rights+")") {
			t.Errorf("error %v, want the rights %s", err, rights)
		}
	}
	server.Exec(t, database, "GRANT SELECT ON windtunnel_schema TO "+postgrestest.Guarded)
	_, err := open(t, guarded, Options{ReadOnly: true}).Runs()
	expect(err, `USAGE on schema "public", and SELECT on its tables`)
	server.Exec(t, database, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+postgrestest.Guarded)
	s := open(t, guarded, Options{})
	_, err = s.DeleteRun(run.ID)
	expect(err, `USAGE on schema "public", and SELECT, INSERT, UPDATE and DELETE on its tables`)
	server.Exec(t, database, "GRANT UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "+postgrestest.Guarded)
	if _, err = s.DeleteRun(run.ID); err != nil {
		t.Errorf("delete with the rights UPDATE and DELETE: %v", err)
	}
	_, err = Open(server.URL(url.UserPassword(postgrestest.Guarded, postgrestest.Password).String(), server.Database(t)), Options{})
	expect(err, `USAGE and CREATE on schema "public" to make the tables; only their owner can migrate them`)
}

// A host that accepts connections and is no server of PostgreSQL.
func TestTheErrorOfAHostThatSendsNothingIsClear(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer func() { _ = l.Close() }()
	at := l.Addr().String()
	_, err = Open("postgres://u@"+at+"/db", Options{Wait: time.Second})
	want := "open store postgres://u@" + at + "/db: the server does not answer; start the server, or correct the host, the port and the TLS options of --db: " + at + " (127.0.0.1): no answer in time"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestPasswordsOfTheEnvironmentAndOfAFileAreUsed(t *testing.T) {
	server := postgrestest.Shared(t)
	database := server.Database(t)
	server.Exec(t, database, "GRANT ALL ON SCHEMA public TO "+postgrestest.Guarded)
	place := server.URL(postgrestest.Guarded, database)
	t.Run("PGPASSWORD", func(t *testing.T) {
		t.Setenv("PGPASSWORD", postgrestest.Password)
		s := open(t, place+"&keepalives=1&application_name=team", Options{})
		if strings.Contains(s.Path(), postgrestest.Password) || strings.Contains(s.Path(), url.PathEscape(postgrestest.Password)) {
			t.Errorf("the place %s has the password", s.Path())
		}
	})
	t.Run("PGPASSFILE", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "pgpass")
		must.Succeed(t, os.WriteFile(file, []byte("*:*:"+database+":"+postgrestest.Guarded+":"+postgrestest.Password+"\n"), 0o600))
		t.Setenv("PGPASSFILE", file)
		open(t, place, Options{})
	})
	t.Run("URL", func(t *testing.T) {
		s := open(t, server.URL(url.UserPassword(postgrestest.Guarded, postgrestest.Password).String(), database), Options{})
		if strings.Contains(s.Path(), "s3cr3t") {
			t.Errorf("the place %s has the password", s.Path())
		}
	})
}

func TestTextThatAServerRefusesIsStoredWithReplacements(t *testing.T) {
	s := postgresBackend.fresh(t)
	run, plan, samples := reporttest.Sized(1)
	run.Skipped = map[string]string{"a": "why\x00"}
	must.Succeed(t, s.CreateRun(run, plan))
	smp := samples[0]
	smp.Failure = &sample.Failure{Kind: sample.SetupFailed, Message: "before\x00\xffafter"}
	smp.Warnings = []string{"a\x00b"}
	must.Get(s.AppendSample(run.ID, smp))(t)
	data := must.Get(s.Load(""))(t)
	must.Equal(t, "before\uFFFD\uFFFDafter", data.Samples[0].Failure.Message)
	must.Equal(t, "a\x00b", data.Samples[0].Warnings[0])
	must.Equal(t, "why\uFFFD", data.Run.Skipped["a"])
}

func TestRunsOfAServerAreOrderedByteByByte(t *testing.T) {
	s := postgresBackend.fresh(t)
	run, plan, _ := reporttest.Sample()
	for _, id := range []string{"a-b", "ab", "a_b", "B", "ä"} {
		run.ID = id
		must.Succeed(t, s.CreateRun(run, plan))
	}
	runs := must.Get(s.Runs())(t)
	var got []string
	for _, r := range runs {
		got = append(got, r.ID)
	}
	must.Equal(t, []string{"ä", "ab", "a_b", "a-b", "B"}, got)
}

func TestPasswordsOfURLsAreHidden(t *testing.T) {
	for text, want := range map[string]string{
		"/var/lib/windtunnel.db":                      "/var/lib/windtunnel.db",
		"a:b@c.db":                                    "a:b@c.db",
		"postgres://u@h:5432/db":                      "postgres://u@h:5432/db",
		"postgres://h:5432/db":                        "postgres://h:5432/db",
		"postgres://u:pw@h:5432/db":                   "postgres://u:**@h:5432/db",
		"--db=postgres://u:pw@h/db":                   "--db=postgres://u:**@h/db",
		"postgres://u:p@w/x?y@h/db":                   "postgres://u:" + strings.Repeat("*", len("p@w/x?y")) + "@h/db",
		"postgres://u:p/w@h/db":                       "postgres://u:***@h/db",
		"postgres://u:p?w@h/db":                       "postgres://u:***@h/db",
		"postgres://u:pw@h/db?application_name=a@b":   "postgres://u:" + strings.Repeat("*", len("pw@h/db?application_name=a")) + "@b",
		"postgres://u@h/db?password=pw&sslmode=allow": "postgres://u@h/db?password=**&sslmode=allow",
		"postgres://u@h/db?sslpassword=pw":            "postgres://u@h/db?sslpassword=**",
		"postgres://u@h/db?pass%77ord=pw":             "postgres://u@h/db?pass%77ord=**",
		"postgres:/u:pw@h/db":                         "postgres:/u:**@h/db",
		"postgresql://u:@h/db":                        "postgresql://u:@h/db",
		"postgres://":                                 "postgres://",
	} {
		if got := HidePassword(text); got != want {
			t.Errorf("HidePassword(%q) = %q, want %q", text, got, want)
		}
	}
}
