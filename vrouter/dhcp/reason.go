package dhcp

import "fmt"

// Reason is the result of a message. Reasons are labels of a metric.
type Reason int

const (
	answered Reason = iota
	malformed
	notARequest
	foreignMAC
	foreignAddress
	noAddress
	relayed
	otherServer
	declined
	reasons
)

var reasonNames = [reasons]string{"answered", "malformed", "not_a_request", "foreign_mac", "foreign_address", "no_address", "relayed", "other_server", "declined"}

func (r Reason) String() string { return reasonNames[r] }

// refusal is the reason why a message gets no answer.
type refusal struct {
	reason Reason
	text   string
}

func (r *refusal) Error() string { return r.text }

func refused(reason Reason, format string, args ...any) error {
	return &refusal{reason, fmt.Sprintf(format, args...)}
}
