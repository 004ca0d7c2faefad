package sample

// Limit is the bottleneck of a trial's traffic.
type Limit string

const (
	SenderLimit   Limit = "sender CPU"     // a CPU of the sender's node was busy during the whole window
	ReceiverLimit Limit = "receiver CPU"   // a CPU of the receiver's node was busy during the whole window
	WireLimit     Limit = "wire"           // a CPU was busy during the whole window, mostly with work of the fabric
	LinkLimit     Limit = "link rate"      // the traffic reached the rate of the fabric's links
	RateLimit     Limit = "requested rate" // the traffic reached the rate that the workload requests
	WindowLimit   Limit = "window"         // no other limit was found, and a TCP window limits the data in flight
	TripLimit     Limit = "round trip"     // no other limit was found, and request/response waits for each answer
)
