package dhcp

import "fmt"

// Result is the result of a message: answered, or the reason why it gets no answer. A metric has results as labels.
type Result int

const (
	answered Result = iota
	malformed
	notARequest
	foreignMAC
	foreignAddress
	noAddress
	relayed
	otherServer
	declined
	results
)

var resultNames = [results]string{"answered", "malformed", "not_a_request", "foreign_mac", "foreign_address", "no_address", "relayed", "other_server", "declined"}

func (r Result) String() string { return resultNames[r] }

// refusal is the error of a message that gets no answer.
type refusal struct {
	result Result
	text   string
}

func (r *refusal) Error() string { return r.text }

func refused(result Result, format string, args ...any) error {
	return &refusal{result, fmt.Sprintf(format, args...)}
}
