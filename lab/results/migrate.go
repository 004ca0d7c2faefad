package results

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema: the SQL statements that change a store of the
// previous version to this version. The first migration makes version 1.
type migration struct {
	name string
	sql  string
}

// applicationID marks a SQLite file as a store ("wtun"), see PRAGMA
// application_id.
const applicationID = 0x7774756e

// readMigrations lists the migrations in order of their file names.
func readMigrations() ([]migration, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the store's migrations: %w", err)
	}
	slices.Sort(names)
	var steps []migration
	for _, name := range names {
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the store's migration: %w", err)
		}
		steps = append(steps, migration{name: path.Base(name), sql: string(text)})
	}
	return steps, nil
}

// check returns the schema version of the database. It returns an error for a
// database of a newer windtunnel, or of another program. It only reads.
func check(ctx context.Context, conn *sql.Conn, steps []migration, path string) (version int, err error) {
	var id, tables int
	err = conn.QueryRowContext(ctx, `SELECT user_version, application_id,
		(SELECT count(*) FROM sqlite_schema) FROM pragma_user_version, pragma_application_id`).Scan(&version, &id, &tables)
	if err != nil {
		return 0, explain(err, "open store", path)
	}
	if id != applicationID && (tables > 0 || version > 0 || id != 0) {
		return 0, withCause(ErrNotStore, "open store %s: it is a SQLite database of another program (application id %#x, %d tables and indexes); it is unchanged; name another with --db", path, uint32(id), tables)
	}
	if version > len(steps) {
		return 0, withCause(ErrNewer, "open store %s: its schema is version %d, and this windtunnel knows versions up to %d; use the newer windtunnel that wrote it, or another store with --db", path, version, len(steps))
	}
	return version, nil
}

// migrate changes the database to the newest version in one transaction. After an
// error or a kill the database is unchanged. The transaction reads the version again,
// because another process may have migrated meanwhile.
func migrate(ctx context.Context, conn *sql.Conn, steps []migration, path string) error {
	version, err := check(ctx, conn, steps, path)
	if err != nil || version == len(steps) {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return explain(err, "migrate store", path)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return explain(err, "migrate store", path)
	}
	for ; version < len(steps); version++ {
		step := steps[version]
		if _, err := tx.ExecContext(ctx, step.sql); err != nil {
			return explain(err, fmt.Sprintf("migrate store to version %d (%s)", version+1, step.name), path)
		}
	}
	// PRAGMA takes no parameters.
	for _, set := range []string{fmt.Sprintf("PRAGMA user_version = %d", version), fmt.Sprintf("PRAGMA application_id = %d", applicationID)} {
		if _, err := tx.ExecContext(ctx, set); err != nil {
			return explain(err, "migrate store", path)
		}
	}
	if err := tx.Commit(); err != nil {
		return explain(err, "migrate store", path)
	}
	return nil
}
