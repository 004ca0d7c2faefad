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

// migrate changes the database to the newest version in one transaction. After an
// error or a kill the database is unchanged. The transaction reads the version again,
// because another process may have migrated meanwhile.
func (s *Store) migrate(ctx context.Context, conn *sql.Conn, steps []migration) error {
	version, err := s.dialect.check(ctx, conn, len(steps))
	if err != nil || version == len(steps) {
		return err
	}
	t, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return s.explain(err, "migrate store")
	}
	defer func() { _ = t.Rollback() }() // does nothing after Commit
	if version, err = s.dialect.beginMigration(ctx, t); err != nil {
		return err
	}
	for ; version < len(steps); version++ {
		step := steps[version]
		if _, err := t.ExecContext(ctx, s.dialect.schema(step.sql)); err != nil {
			return s.explain(err, fmt.Sprintf("migrate store to version %d (%s)", version+1, step.name))
		}
	}
	if err := s.dialect.endMigration(ctx, t, version); err != nil {
		return err
	}
	if err := t.Commit(); err != nil {
		return s.explain(err, "migrate store")
	}
	return nil
}
