package sample

// Limit is what held a trial's traffic back.
type Limit string

const (
	SenderLimit   Limit = "sender CPU"     // a CPU of the sender's node was busy throughout
	ReceiverLimit Limit = "receiver CPU"   // likewise
	WireLimit     Limit = "wire"           // a CPU was busy throughout, mostly with the fabric's own work
	LinkLimit     Limit = "link rate"      // the fabric's rate was used up
	RateLimit     Limit = "requested rate" // the workload's rate was reached
	WindowLimit   Limit = "window"         // none of these: a TCP window bounds what is in flight
	TripLimit     Limit = "round trip"     // none of these: request/response waits for its answers
)
