package traffic

import "sync/atomic"

// stage is how far a run has come, shared by all its threads. It has a cache
// line of its own: every thread reads it after every call, and only the
// conductor writes it.
type stage struct {
	_     [64]byte
	phase atomic.Int32
	_     [60]byte
}

// The phases of a run, in order.
const (
	warming   int32 = iota // traffic flows and does not count
	measuring              // the window
	cooling                // traffic flows on, so that the peer's window ends in full load
	stopping               // senders end; receivers and responders go on until their peer has ended
	closing                // all end at once
)
