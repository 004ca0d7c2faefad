package results

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Codes of errors, see the appendix "PostgreSQL Error Codes" of its documentation.
const (
	wrongPassword     = "28P01"
	notAuthorized     = "28000"
	noDatabase        = "3D000"
	noRight           = "42501"
	readOnlyServer    = "25006"
	serverDiskFull    = "53100"
	tooMany           = "53300"
	unknownOption     = "42704"
	lockTimeout       = "55P03"
	damagedData       = "XX001"
	damagedIndex      = "XX002"
	connectionClass   = "08"
	serializationFail = "40001"
	deadlock          = "40P01"
)

// shuttingDown are the codes of a server that stops, crashed or starts.
var shuttingDown = []string{"57P01", "57P02", "57P03", "57P05"}

// errHeldByUs is the error for a lock that a lost connection of this process still holds.
var errHeldByUs = errors.New("the server has not ended the lost connection yet")

// away reports whether a later attempt can succeed: the server did not answer, stops or
// starts, or other writers were in the way.
func (p *postgres) away(err error) bool {
	if err == nil {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return unreachable(pg.Code) || slices.Contains([]string{tooMany, lockTimeout, serializationFail, deadlock}, pg.Code)
	}
	var connect *pgconn.ConnectError
	var network net.Error
	if errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) {
		return true
	}
	for _, cause := range []error{
		driver.ErrBadConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, errHeldByUs,
		context.DeadlineExceeded, context.Canceled, sql.ErrTxDone, sql.ErrConnDone, // of a transaction that took too long
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

func unreachable(code string) bool {
	return strings.HasPrefix(code, connectionClass) || slices.Contains(shuttingDown, code)
}

func (p *postgres) explain(err error, what string) error {
	head := what + " " + p.place
	var pg *pgconn.PgError
	if errors.As(err, &pg) && !unreachable(pg.Code) {
		return p.explainAnswer(err, pg, what)
	}
	var known *causedError
	if errors.As(err, &known) || !p.away(err) {
		return fmt.Errorf("%s: %w", head, err)
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return withCause(err, "%s: the host %s is unknown; correct it in --db, or repair the name service: %s", head, dns.Name, dns)
	}
	remedy := "start the server or repair the network, then try again"
	if what == "open store" {
		remedy = "start the server, or correct the host, the port and the TLS options of --db"
	}
	return withCause(err, "%s: the server does not answer; %s: %s", head, remedy, oneLine(err))
}

// explainAnswer explains an error that the server returned.
func (p *postgres) explainAnswer(err error, pg *pgconn.PgError, what string) error {
	head := what + " " + p.place
	user, database := p.config.User, cmp.Or(p.config.Database, p.config.User)
	switch pg.Code {
	case wrongPassword:
		return withCause(err, "%s: the password of user %s is wrong or missing; keep it in ~/.pgpass or PGPASSWORD: %s", head, user, pg.Message)
	case notAuthorized:
		return withCause(err, "%s: the server does not accept user %s; correct --db, or ask for an entry in pg_hba.conf or a role: %s", head, user, pg.Message)
	case noDatabase:
		return withCause(err, "%s: there is no such database; make it with `createdb -T template0 -E UTF8 -O %s %s`, or name another with --db: %s", head, user, database, pg.Message)
	case noRight:
		return withCause(errors.Join(ErrReadOnly, err), "%s: user %s lacks a right; grant it (%s), or give another user with --db: %s", head, user, p.rights(what), pg.Message)
	case unknownOption:
		return withCause(err, "%s: the server does not know an option of --db; correct or omit it: %s", head, pg.Message)
	case readOnlyServer:
		return withCause(errors.Join(ErrReadOnly, err), "%s: the server accepts no writes, because it is a standby or is set to read-only; name the primary server with --db: %s", head, pg.Message)
	case serverDiskFull:
		return withCause(errors.Join(ErrDiskFull, err), "%s: no space is left on the server; free some space there and resume the run (the store keeps the finished trials): %s", head, pg.Message)
	case damagedData, damagedIndex:
		return withCause(errors.Join(ErrCorrupt, err), "%s: the server's data is damaged; restore a backup, or name another store with --db: %s", head, pg.Message)
	case lockTimeout:
		return withCause(err, "%s: another process has been writing to it for too long; wait for it or end it, then try again: %s", head, pg.Message)
	case tooMany:
		return withCause(err, "%s: the server has too many connections; end some, or raise max_connections: %s", head, pg.Message)
	}
	return withCause(err, "%s: %s", head, oneLine(pg))
}

// rights lists what a user needs for an operation.
func (p *postgres) rights(operation string) string {
	schema := fmt.Sprintf("USAGE on schema %q", p.schemaName)
	switch {
	case p.readOnly:
		return schema + ", and SELECT on its tables"
	case strings.HasPrefix(operation, "migrate store"):
		return fmt.Sprintf("USAGE and CREATE on schema %q to make the tables; only their owner can migrate them", p.schemaName)
	}
	return schema + ", and SELECT, INSERT, UPDATE and DELETE on its tables"
}

// noAnswer is the text of Go and pgx for a time limit.
var noAnswer = regexp.MustCompile(`([A-Za-z][A-Za-z ]*: )*context (deadline exceeded|canceled)`)

// oneLine returns the text of an error on one line. Attempts at several addresses, with and
// without TLS, have a line each, often with the same text.
func oneLine(err error) string {
	var connect *pgconn.ConnectError
	if errors.As(err, &connect) {
		if cause := connect.Unwrap(); cause != nil {
			err = cause // without the prefix
		}
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if _, dial, found := strings.Cut(line, "dial error: "); found { // the text of dial has the address too
			line = dial
		}
		line = noAnswer.ReplaceAllString(line, "no answer in time")
		line = strings.TrimSpace(line)
		known := slices.ContainsFunc(lines, func(earlier string) bool { return strings.HasSuffix(earlier, line) })
		if line != "" && !known {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
