package agent

import "fmt"

// ProtocolError is the error of Hello if the agent speaks another protocol version
// than this program.
type ProtocolError struct {
	who   string
	Agent Hello
}

func (e *ProtocolError) Error() string {
	return fmt.Sprintf("%s's agent (windtunnel %s) speaks protocol %d, and this program speaks protocol %d: install this version of windtunnel on the node",
		e.who, e.Agent.Version, e.Agent.Protocol, Protocol)
}

// NotFoundError is the error of Start if the program is not installed on the node.
type NotFoundError struct{ who, Program, why string }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s: start %s: %s", e.who, e.Program, e.why)
}
