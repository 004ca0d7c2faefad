package agent

import "fmt"

// ProtocolError is the error of Hello where the agent's program is of another
// version than this one.
type ProtocolError struct {
	who   string
	Agent Hello
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%s's agent (windtunnel %s) speaks protocol %d, and this program speaks %d: install this windtunnel on the node",
		e.who, e.Agent.Version, e.Agent.Protocol, Protocol)
}

// NotFoundError is the error of Start where the program is not installed.
type NotFoundError struct{ who, Program, why string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s: start %s: %s", e.who, e.Program, e.why)
}
