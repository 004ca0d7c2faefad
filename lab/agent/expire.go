package agent

import (
	"io"
	"time"
)

// Expire returns a reader of in that ends when no byte has arrived for the given time.
// A client sends at least one call in every second, so the network to the engine is cut,
// or the engine's machine is down.
func Expire(in io.Reader, after time.Duration) io.ReadCloser {
	r, w := io.Pipe()
	silent := time.AfterFunc(after, func() { w.CloseWithError(io.EOF) })
	go func() {
		_, err := io.Copy(w, resetting{in, silent, after})
		w.CloseWithError(err)
	}()
	return r
}

// resetting restarts a timer with every read.
type resetting struct {
	io.Reader
	timer *time.Timer
	after time.Duration
}

func (r resetting) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if n > 0 {
		r.timer.Reset(r.after)
	}
	return n, err
}
