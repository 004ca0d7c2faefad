package results

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// answerWithin limits the wait for a server that accepts connections and does not answer. A write
// may take this long. A read ends if the server sends nothing for this long. Tests shorten it.
var answerWithin = time.Minute

// deleteWithin takes the place of answerWithin when a run is deleted, because the server sends
// nothing until it has deleted all samples.
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
