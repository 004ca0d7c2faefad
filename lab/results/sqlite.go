package results

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
)

// sqliteFile is the dialect of a store in a SQLite file. Its value is the absolute path of
// the file.
type sqliteFile string

// applicationID marks a SQLite file as a store ("wtun"), see PRAGMA
// application_id.
const applicationID = 0x7774756e

// openSQLite makes missing directories and returns the store in the file at path. It does
// not read the file's schema.
func openSQLite(path string, opts Options) (*Store, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	if err := prepare(abs, opts.ReadOnly); err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{abs, opts})
	if opts.ReadOnly && !writableDir(filepath.Dir(abs)) {
		db.SetMaxIdleConns(-1) // each read opens the files that are there then
	}
	return &Store{db: db, dialect: sqliteFile(abs), place: abs, readOnly: opts.ReadOnly}, nil
}

// connector opens connections to the file at path.
type connector struct {
	path string
	opts Options
}

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	name, err := dsn(c.path, c.opts)
	if err != nil {
		return nil, err
	}
	return c.Driver().Open(name)
}

// Driver implements driver.Connector.
func (connector) Driver() driver.Driver { return &sqlite.Driver{} }

// dsn returns the data source name of the store, with its options. With synchronous=FULL
// SQLite syncs the log at each commit, so a power failure loses only the current trial.
// A run commits every few seconds, so the cost is small.
func dsn(path string, opts Options) (string, error) {
	q := url.Values{}
	q.Set("_busy_timeout", fmt.Sprint(opts.wait().Milliseconds()))
	q.Set("_foreign_keys", "1")
	q.Set("_synchronous", "FULL")
	q.Set("_txlock", "immediate")
	q.Set("_error_rc", "1")
	if opts.ReadOnly {
		q.Set("mode", "ro")
		alone, err := withoutLog(path)
		if err != nil {
			return "", err
		}
		if alone {
			q.Set("immutable", "1")
		}
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String(), nil
}

func (sqliteFile) bind(statement string) string   { return statement }
func (sqliteFile) argument(value any) any         { return value }
func (sqliteFile) schema(migration string) string { return migration }
func (sqliteFile) lockRow() string                { return "" } // a writer locks the file
func (sqliteFile) reading() *sql.TxOptions        { return &sql.TxOptions{ReadOnly: true} }
func (sqliteFile) away(err error) bool            { return unsettled(err) }
func (f sqliteFile) state() string                { return fileState(string(f)) }

// limit has no effect, because there is no server.
func (sqliteFile) limit(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}

func (sqliteFile) scenarios() string {
	return "CASE WHEN json_valid(plan_json) THEN coalesce(json_array_length(plan_json, '$.scenarios'), 0) ELSE 0 END"
}

func (sqliteFile) hostname() string {
	return "CASE WHEN json_valid(environment_json) THEN coalesce(json_extract(environment_json, '$.hostname'), '') ELSE '' END"
}

func (f sqliteFile) explain(err error, what string) error { return explain(err, what, string(f)) }

func (f sqliteFile) check(ctx context.Context, conn *sql.Conn, newest int) (version int, err error) {
	var id, tables int
	err = conn.QueryRowContext(ctx, `SELECT user_version, application_id,
		(SELECT count(*) FROM sqlite_schema) FROM pragma_user_version, pragma_application_id`).Scan(&version, &id, &tables)
	if err != nil {
		return 0, f.explain(err, "open store")
	}
	if id != applicationID && (tables > 0 || version > 0 || id != 0) {
		return 0, withCause(ErrNotStore, "open store %s: it is a SQLite database of another program (application id %#x, %d tables and indexes); it is unchanged; name another with --db", f, uint32(id), tables)
	}
	if version > newest {
		return 0, newer(string(f), version, newest)
	}
	return version, nil
}

// prepare selects WAL mode, which lets readers continue while a run writes. The mode is
// stored in the file, so set it only after the check that the file is a store.
func (f sqliteFile) prepare(ctx context.Context, conn *sql.Conn) error {
	var mode string
	if err := conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return f.explain(err, "open store")
	}
	return nil
}

// beginMigration need not wait: SQLite locked the file when the transaction began.
func (f sqliteFile) beginMigration(ctx context.Context, t *sql.Tx) (version int, err error) {
	if err := t.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return 0, f.explain(err, "migrate store")
	}
	return version, nil
}

func (f sqliteFile) endMigration(ctx context.Context, t *sql.Tx, version int) error {
	// PRAGMA takes no parameters.
	for _, set := range []string{fmt.Sprintf("PRAGMA user_version = %d", version), fmt.Sprintf("PRAGMA application_id = %d", applicationID)} {
		if _, err := t.ExecContext(ctx, set); err != nil {
			return f.explain(err, "migrate store")
		}
	}
	return nil
}

// measuring compares the process that the run has with the processes of this machine.
func (sqliteFile) measuring(*tx) (measured, error) {
	return func(_, by string) bool { return alive(by) }, nil
}
