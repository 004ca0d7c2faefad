package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Lost is the error of every call to an agent that has ended, or that no longer
// answers.
type Lost struct{ who, how string }

func (l *Lost) Error() string { return l.who + "'s agent " + l.how }

const (
	// beat is the interval at which the client checks whether the agent has sent data.
	beat = 500 * time.Millisecond
	// pingAfter is the number of beats without data after which the client sends a
	// ping. In a trial's window the client reads the meters more often, so no ping
	// disturbs the measurement.
	pingAfter = 2
	// lostAfter is the number of beats without data after which the agent counts as
	// lost. The client counts beats and not time, because a paused engine receives
	// no data either.
	lostAfter = 10
)

// listener records that the agent has sent data, and why the pipe ended.
type listener struct {
	io.ReadWriteCloser
	heard atomic.Bool
	once  sync.Once
	ended chan error // gets the first error of Read
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.ReadWriteCloser.Read(b)
	if n > 0 {
		l.heard.Store(true)
	}
	if err != nil {
		l.once.Do(func() { l.ended <- err })
	}
	return n, err
}

// watch ends every call with an error once the agent has been silent for too
// long. It returns when the pipe is closed.
func (c *Client) watch(l *listener) {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for silent := 0; silent < lostAfter; {
		select {
		case <-c.open.Done():
			return
		case err := <-l.ended:
			// A transport that knows why its connection ended returns its own error. The
			// end of a program's output is found by the next call.
			if c.open.Err() == nil && !errors.Is(err, io.EOF) {
				_ = c.lose(unexpected(err))
				return
			}
		case <-beats.C:
		}
		if l.heard.Swap(false) {
			silent = 0
			continue
		}
		if silent++; silent == pingAfter {
			// Do not wait for the ping: a full pipe would block the write.
			go c.rpc.Go(ServiceName+".Ping", struct{}{}, &struct{}{}, nil)
		}
	}
	_ = c.lose(fmt.Sprintf("has not answered for %v; it was stopped (SIGSTOP, a debugger), or it gets no CPU time", lostAfter*beat))
	_ = c.Close() // ends the waiting calls
}

// unexpected describes the end of the pipe with an error.
func unexpected(err error) string { return fmt.Sprintf("has ended unexpectedly (%v)", err) }

// lose records the reason why the agent is lost, and returns it as a *Lost. Only the
// first reason counts.
func (c *Client) lose(how string) error {
	c.end(&Lost{c.who, how})
	return c.Lost()
}

// Lost returns the reason why the agent is lost; nil while it answers.
func (c *Client) Lost() error { return context.Cause(c.life) }

// Gone is closed when the agent is lost.
func (c *Client) Gone() <-chan struct{} { return c.life.Done() }

// Ping answers at once, also during other calls.
func (s *Service) Ping(_ struct{}, _ *struct{}) error { return nil }
