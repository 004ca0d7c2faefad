package sample

// Limit is the bottleneck of a trial's traffic.
type Limit string

const (
	SenderLimit   Limit = "sender CPU"     // a CPU of the sender's node was busy during the whole window
	ReceiverLimit Limit = "receiver CPU"   // a CPU of the receiver's node was busy during the whole window
	WireLimit     Limit = "wire"           // a CPU was busy during the whole window, mostly with work of the fabric
	LinkLimit     Limit = "link rate"      // the fabric's rate was reached
	RateLimit     Limit = "requested rate" // the workload's rate was reached
	WindowLimit   Limit = "window"         // no other limit: a TCP window limits the data in flight
	TripLimit     Limit = "round trip"     // no other limit: request/response waits for its answers
)
