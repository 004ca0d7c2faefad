package results

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// answerWithin is the longest time to wait for a server that accepts connections and does not
// answer: the time of one attempt at a write, and the time without a byte of a read. Tests
// shorten it.
var answerWithin = time.Minute

// deleteWithin is answerWithin for the deletion of a run. The server sends nothing before it
// has deleted all samples.
const deleteWithin = 30 * time.Minute

// heard is the time at which the server last sent something over any connection, in Unix
// nanoseconds.
type heard struct{ at atomic.Int64 }

// dial returns a DialFunc whose connections record when the server sends something.
func (h *heard) dial(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &heardConn{conn, h}, nil
	}
}

// limit returns a context that ends when the server has sent nothing for some time.
func (h *heard) limit(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	began := time.Now()
	go func() {
		for left := silence; left > 0; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(left):
			}
			left = silence - min(time.Since(began), time.Since(time.Unix(0, h.at.Load())))
		}
		cancel()
	}()
	return ctx, cancel
}

type heardConn struct {
	net.Conn
	heard *heard
}

func (c *heardConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.heard.at.Store(time.Now().UnixNano())
	}
	return n, err
}
