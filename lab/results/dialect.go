package results

import (
	"context"
	"database/sql"
	"time"
)

// dialect has everything that differs between the databases that can hold a store: SQLite
// and PostgreSQL. Statements are written once, with "?" for each parameter.
type dialect interface {
	// bind writes the parameters of a statement in the form of the database.
	bind(statement string) string
	// argument converts a parameter to a value that the database accepts.
	argument(value any) any
	// schema converts the statements of a migration.
	schema(migration string) string
	// scenarios is the SQL expression for the number of scenarios in plan_json. It is 0 if
	// the plan is damaged.
	scenarios() string
	// hostname is the SQL expression for the host name in environment_json. It is "" if there
	// is none, or if the environment is damaged.
	hostname() string
	// lockRow is the end of a SELECT that keeps other writers from the row until the
	// transaction ends.
	lockRow() string
	// reading returns the options of a transaction that only reads. All its queries see the
	// same state of the store.
	reading() *sql.TxOptions

	// check returns the schema version of the database: 0 if it is empty. It returns an
	// error for a database of a newer windtunnel, or of another program. newest is the
	// newest version that this windtunnel knows. check only reads.
	check(ctx context.Context, conn *sql.Conn, newest int) (version int, err error)
	// prepare changes the settings of a database that check accepted.
	prepare(ctx context.Context, conn *sql.Conn) error
	// beginMigration waits until no other process migrates, and returns the version. The
	// other process may have migrated the database.
	beginMigration(ctx context.Context, t *sql.Tx) (version int, err error)
	// endMigration stores the version.
	endMigration(ctx context.Context, t *sql.Tx, version int) error

	// measuring returns a function that reports whether an engine measures a run now.
	measuring(t *tx) (measured, error)
	// away reports whether the database did not answer, or was being opened or closed by another
	// process, so that a later attempt can succeed.
	away(err error) bool
	// limit returns a context that ends when a server has sent nothing for some time.
	limit(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc)
	// state returns a text that changes when the store is written without isolation from readers.
	// If the text differs before and after a transaction that only reads, that transaction may
	// have read parts of two states of the store.
	state() string
	// explain adds the operation, the place of the store and the remedy to an error. what is
	// the operation, such as "open store".
	explain(err error, what string) error
}

// tx is a transaction of a store. Its statements have "?" for each parameter.
type tx struct {
	*sql.Tx
	ctx     context.Context
	dialect dialect
}

// Exec executes a statement that returns no rows.
func (t *tx) Exec(statement string, args ...any) (sql.Result, error) {
	return t.ExecContext(t.ctx, t.dialect.bind(statement), t.arguments(args)...)
}

// each executes a statement that returns rows, and calls read with each of them. read must not
// execute another statement.
func (t *tx) each(statement string, args []any, read func(*sql.Rows) error) error {
	rows, err := t.QueryContext(t.ctx, t.dialect.bind(statement), t.arguments(args)...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// QueryRow executes a statement that returns one row.
func (t *tx) QueryRow(statement string, args ...any) *sql.Row {
	return t.QueryRowContext(t.ctx, t.dialect.bind(statement), t.arguments(args)...)
}

func (t *tx) arguments(args []any) []any {
	converted := make([]any, len(args))
	for i, arg := range args {
		converted[i] = t.dialect.argument(arg)
	}
	return converted
}
