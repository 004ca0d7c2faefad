package traffic

import "sync/atomic"

// stage has the current phase of a run, for all threads. It fills a whole cache line: every
// thread reads it after every call, and only the conductor writes it.
type stage struct {
	_     [64]byte
	phase atomic.Int32
	_     [60]byte
}

// The phases of a run, in order.
const (
	warming   int32 = iota // traffic that is not counted
	measuring              // the window
	cooling                // traffic continues, so that the peer's window ends under full load
	stopping               // senders end; receivers and responders continue until their peer has ended
	closing                // all end at once
)
