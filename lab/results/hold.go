package results

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"windtunnel/internal/pause"
	"windtunnel/lab/sample"
)

// hold is the lock of a run that this process measures, on a connection that is used for
// nothing else. The server frees the lock when the connection ends, so on every machine the
// run of a killed engine counts as stopped.
type hold struct {
	run     string
	key     int64
	connect func(context.Context) (*pgx.Conn, error)
	cancel  context.CancelFunc
	done    chan struct{} // closed when keep returns

	mu   sync.Mutex
	lost error // why the lock is not held now; nil while it is held
}

// retryEvery is the time between two attempts to reach a server that does not answer.
const retryEvery = 500 * time.Millisecond

// closeWithin is the longest time for the end of a connection.
const closeWithin = 2 * time.Second

// start takes the lock. If another engine has it, the error wraps ErrRunning.
func (h *hold) start() error {
	ctx, cancel := context.WithCancel(context.Background())
	conn, err := h.acquire(ctx, 0)
	if err != nil {
		cancel()
		return err
	}
	h.cancel, h.done = cancel, make(chan struct{})
	go h.keep(ctx, conn)
	return nil
}

// stop frees the lock.
func (h *hold) stop() {
	h.cancel()
	<-h.done
}

func (h *hold) err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

func (h *hold) set(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = err
}

// keep waits until the connection ends, and then takes the lock again, until the context
// ends.
func (h *hold) keep(ctx context.Context, conn *pgx.Conn) {
	defer close(h.done)
	for {
		_, err := conn.WaitForNotification(ctx) // none comes: it returns an error when the connection ends
		if ctx.Err() != nil {
			h.free(conn)
			return
		}
		if err == nil {
			continue
		}
		h.set(err)
		pid := conn.PgConn().PID()
		closeConn(conn)
		if conn = h.acquireAgain(ctx, pid); conn == nil {
			return
		}
		h.set(nil)
	}
}

// acquireAgain tries to take the lock until it has it, another engine has it, or the context
// ends. In the last two cases it returns nil. pid is the server process of the lost
// connection.
func (h *hold) acquireAgain(ctx context.Context, pid uint32) *pgx.Conn {
	for {
		conn, err := h.acquire(ctx, pid)
		if err == nil {
			return conn
		}
		h.set(err)
		if errors.Is(err, ErrRunning) {
			return nil
		}
		if pause.For(ctx, retryEvery) != nil {
			return nil
		}
	}
}

// acquire connects and takes the lock.
func (h *hold) acquire(ctx context.Context, lostPID uint32) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	conn, err := h.connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.lock(ctx, conn, lostPID); err != nil {
		closeConn(conn)
		return nil, err
	}
	return conn, nil
}

// lock takes the lock on a connection. If the server has not noticed yet that an earlier
// connection of this process was lost, lock ends that connection's session.
func (h *hold) lock(ctx context.Context, conn *pgx.Conn, lostPID uint32) error {
	var locked bool
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", h.key).Scan(&locked); err != nil || locked {
		return err
	}
	var pid int32
	var name string
	err := conn.QueryRow(ctx, "SELECT l.pid, coalesce(a.application_name, '') FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE "+lockKey+" = $1 AND "+lockIsAdvisory, h.key).Scan(&pid, &name)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return errHeldByUs // freed meanwhile: the next attempt takes it
	case err != nil:
		return err
	case lostPID != 0 && uint32(pid) == lostPID:
		_, err := conn.Exec(ctx, "SELECT pg_terminate_backend($1)", pid)
		return errors.Join(errHeldByUs, err)
	}
	return withCause(ErrRunning, "run %s is being measured by another engine (%s); wait for its end, or interrupt it", h.run, name)
}

// free unlocks, so that the lock is free when free returns. The end of the connection alone
// frees it some time later.
func (h *hold) free(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_, _ = conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", h.key) // the end of the connection frees it too
	closeConn(conn)
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = conn.Close(ctx)
}

// holds are the locks of the runs that this process measures. A nil *holds has none, and
// takes none.
type holds struct {
	connect func(context.Context) (*pgx.Conn, error)
	key     func(run string) int64

	mu sync.Mutex
	of map[string]*hold // by run
}

// take takes the lock of a run unless this process has it. taken reports whether it took it.
func (h *holds) take(run string) (taken bool, err error) {
	if h == nil {
		return false, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[run] != nil {
		return false, nil
	}
	one := &hold{run: run, key: h.key(run), connect: h.connect}
	if err := one.start(); err != nil {
		return false, err
	}
	h.of[run] = one
	return true, nil
}

// check returns the reason why this process lost the lock of a run; nil if it has the lock,
// or has not taken it.
func (h *holds) check(run string) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	one := h.of[run]
	h.mu.Unlock()
	if one == nil {
		return nil
	}
	return one.err()
}

// release frees the lock of a run if this process has it.
func (h *holds) release(run string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if one := h.of[run]; one != nil {
		one.stop()
		delete(h.of, run)
	}
}

// close frees all locks.
func (h *holds) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for run, one := range h.of {
		one.stop()
		delete(h.of, run)
	}
}

// hold takes the lock of a run whose status is "running". release frees the lock if this
// call took it.
func (s *Store) hold(run sample.Run) (release func(), err error) {
	taken := false
	if run.Status == sample.Running {
		if taken, err = s.holds.take(run.ID); err != nil {
			return nil, err
		}
	}
	return func() {
		if taken {
			s.holds.release(run.ID)
		}
	}, nil
}
