package results

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

// postgres is the dialect of a store in a database of PostgreSQL. The tables are in the
// first schema of search_path.
type postgres struct {
	config     *pgx.ConnConfig
	place      string // the URL without password
	readOnly   bool
	schemaName string // name of the schema with the tables; set by check
	heard      heard
}

// openPostgres returns the store at a URL. It makes no connection.
func openPostgres(place, scheme string, opts Options) (*Store, error) {
	if err := checkScheme(place, scheme); err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(place)
	if err != nil || ambiguous(place) {
		return nil, parseError(place, err)
	}
	if config.ConnectTimeout == 0 || config.ConnectTimeout == pgxTimeout {
		config.ConnectTimeout = opts.wait()
	}
	for _, option := range keepAliveOptions {
		delete(config.RuntimeParams, option)
	}
	keepAlive := net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}
	p := &postgres{config: config, readOnly: opts.ReadOnly}
	config.DialFunc = p.heard.dial((&net.Dialer{Timeout: config.ConnectTimeout, KeepAliveConfig: keepAlive}).DialContext)
	config.AfterConnect = sessionSettings(opts)
	if config.RuntimeParams["application_name"] == "" {
		host, _ := os.Hostname()
		config.RuntimeParams["application_name"] = fmt.Sprintf("windtunnel on %s, process %d", host, os.Getpid())
	}
	p.place = publicURL(config)
	s := &Store{
		db: stdlib.OpenDB(*config), dialect: p, place: p.place, readOnly: opts.ReadOnly,
		outage: outage{limit: cmp.Or(opts.Outage, 5*time.Minute), stop: context.Background()},
	}
	if !opts.ReadOnly {
		s.holds = &holds{connect: p.dial, key: p.runKey, of: map[string]*hold{}}
	}
	return s, nil
}

// keepAliveOptions are options of libpq that pgx would send to the server, which does not
// know them.
var keepAliveOptions = []string{"keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"}

// pgxTimeout is the connect timeout that pgx sets without connect_timeout.
const pgxTimeout = 2 * time.Minute

// parseError is the error for a URL that pgx cannot parse. The reason is omitted if the URL
// has a password, because it can have parts of it.
func parseError(place string, err error) error {
	hidden := HidePassword(place)
	if hidden != place {
		return fmt.Errorf("open store %s: the URL or an option of it is not valid; encode special characters of the password by percent signs, or keep the password in ~/.pgpass or PGPASSWORD", hidden)
	}
	if err == nil {
		err = errors.New("it has more than one \"@\"")
	}
	reason := err.Error()
	if _, after, found := strings.Cut(reason, "`: "); found { // the part before repeats the URL
		reason = after
	}
	return fmt.Errorf("open store %s: the URL, or a PG… variable of the environment, is not valid: %s; write postgres://USER@HOST/DATABASE", hidden, reason)
}

// sessionSettings sets the time limits of a new connection. The keepalives end the session
// of a machine that vanished, and with it the session's locks, after a minute.
func sessionSettings(opts Options) pgconn.AfterConnectFunc {
	set := fmt.Sprintf("SET lock_timeout = %d; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3", opts.wait().Milliseconds())
	if opts.ReadOnly {
		set += "; SET default_transaction_read_only = on"
	}
	return func(ctx context.Context, conn *pgconn.PgConn) error { return conn.Exec(ctx, set).Close() }
}

// publicURL returns the URL of the database with user, hosts, ports and schema, without
// password and other options.
func publicURL(c *pgx.ConnConfig) string {
	u := url.URL{Scheme: "postgres", Path: "/" + c.Database}
	if c.User != "" {
		u.User = url.User(c.User)
	}
	var options []string
	if strings.HasPrefix(c.Host, "/") {
		options = append(options, "host="+c.Host, "port="+strconv.Itoa(int(c.Port)))
	} else {
		hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
		for _, other := range c.Fallbacks { // the same host without TLS, and other hosts
			if host := net.JoinHostPort(other.Host, strconv.Itoa(int(other.Port))); !slices.Contains(hosts, host) {
				hosts = append(hosts, host)
			}
		}
		u.Host = strings.Join(hosts, ",")
	}
	if path := c.RuntimeParams["search_path"]; path != "" {
		options = append(options, "search_path="+url.QueryEscape(path))
	}
	u.RawQuery = strings.Join(options, "&")
	return u.String()
}

// dial makes a connection outside the pool.
func (p *postgres) dial(ctx context.Context) (*pgx.Conn, error) {
	return pgx.ConnectConfig(ctx, p.config.Copy())
}

// runKey returns the key of the advisory lock of a run. Advisory locks belong to a
// database, which can have a store in each schema.
func (p *postgres) runKey(run string) int64 { return p.key("run", run) }

func (p *postgres) key(parts ...string) int64 {
	h := fnv.New64a()
	for _, part := range append([]string{"windtunnel", p.schemaName}, parts...) {
		_, _ = h.Write([]byte(part + "\x00"))
	}
	return int64(h.Sum64())
}

func (p *postgres) bind(statement string) string {
	var b strings.Builder
	n := 0
	for _, c := range []byte(statement) { // no statement has a "?" in quotation marks
		if c != '?' {
			b.WriteByte(c)
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// argument converts a bool to the integer that SQLite stores. In a text it replaces NUL and
// what is not UTF-8, because PostgreSQL refuses them.
func (p *postgres) argument(value any) any {
	switch v := value.(type) {
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case string:
		if strings.ContainsRune(v, 0) || !utf8.ValidString(v) {
			return strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", "\uFFFD"), "\uFFFD")
		}
	}
	return value
}

func (p *postgres) state() string { return "" } // the server isolates transactions
func (p *postgres) limit(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc) {
	return p.heard.limit(ctx, silence)
}

func (p *postgres) lockRow() string   { return " FOR NO KEY UPDATE" }
func (p *postgres) scenarios() string { return "windtunnel_scenarios(plan_json)" }
func (p *postgres) hostname() string  { return "windtunnel_hostname(environment_json)" }

func (p *postgres) reading() *sql.TxOptions {
	return &sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead}
}

// prepare has nothing to set.
func (p *postgres) prepare(context.Context, *sql.Conn) error { return nil }

// check also returns ErrOlder or an fs error if the store is opened for reading and has no
// schema of this version.
func (p *postgres) check(ctx context.Context, conn *sql.Conn, newest int) (version int, err error) {
	version, err = p.version(ctx, conn)
	switch {
	case err != nil:
		return 0, err
	case version > newest:
		return 0, newer(p.place, version, newest)
	case version == 0 && p.readOnly:
		return 0, withCause(fs.ErrNotExist, "open store %s: the database has no store in schema %q; the first run makes it, and --db names another", p.place, p.schemaName)
	case version < newest && p.readOnly:
		return 0, withCause(ErrOlder, "open store %s: it has schema %d and must be migrated to %d; open it once as the user who owns its tables", p.place, version, newest)
	}
	return version, nil
}

// measuring reads the locks of the database: an engine holds the lock of its run until its
// connection ends. It must be the first query of a transaction, so that a run that ends
// meanwhile is not taken for an interrupted run.
func (p *postgres) measuring(t *tx) (measured, error) {
	held := map[int64]bool{}
	err := t.each("SELECT "+lockKey+" FROM pg_locks WHERE "+lockIsAdvisory, nil, func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		held[key] = true
		return err
	})
	return func(run, _ string) bool { return held[p.runKey(run)] }, err
}

// The key of an advisory lock in the view pg_locks, and the condition for a lock of this
// database with a key of 64 bits.
const (
	lockKey        = "((classid::bigint << 32) | objid::bigint)"
	lockIsAdvisory = "locktype = 'advisory' AND objsubid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
