package traffic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// message is one line of JSON on the control connection.
//
//	client → server   hello{spec, token}   what to run; the token marks data connections
//	server → client   ready{ports}         data sockets listen there
//	                  (data connections are made)
//	server → client   joined               every data connection is there, and the server's threads
//	client → server   start                the client's threads are there; both ends begin
//	either → other    stop                 end now and report what there is
//	server → client   counted              the server's window is over
//	client → server   done                 the client's threads have ended
//	server → client   result{end}          the server's figures
//	either → other    error{error}         why it cannot go on
type message struct {
	Type    string   `json:"type"`
	Version int      `json:"version,omitempty"`
	Token   uint64   `json:"token,omitempty"`
	Spec    *Spec    `json:"spec,omitempty"`
	Threads int      `json:"threads,omitempty"` // number of an NTttcp sender's threads (see ntttcp_sync.go)
	Ports   []uint16 `json:"ports,omitempty"`
	Error   string   `json:"error,omitempty"`
	End     *End     `json:"end,omitempty"`
}

// protocolVersion increases with each change that an end of an older version would not
// understand.
const protocolVersion = 5

// maxMessage limits the length of a line. It is many times the size of 4096 flows with a
// histogram.
const maxMessage = 16 << 20

const (
	typeHello   = "hello"
	typeReady   = "ready"
	typeJoined  = "joined"
	typeStart   = "start"
	typeStop    = "stop"
	typeCounted = "counted"
	typeDone    = "done"
	typeResult  = "result"
	typeError   = "error"
	typeNTttcp  = "ntttcp"
)

// decodeMessage decodes one line and checks that it has the fields of its type.
func decodeMessage(line []byte) (message, error) {
	var m message
	d := json.NewDecoder(bytes.NewReader(line))
	if err := d.Decode(&m); err != nil {
		return message{}, fmt.Errorf("read a control message: %w; is the other end a windtunnel?", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return message{}, fmt.Errorf("read a control message: more follows it on its line")
	}
	return m, m.check()
}

func (m message) check() error {
	switch m.Type {
	case typeHello, typeNTttcp:
		if m.Version != protocolVersion {
			return fmt.Errorf("the client speaks version %d of the control protocol and the server %d; use the same windtunnel on both ends", m.Version, protocolVersion)
		}
		if m.Type == typeNTttcp {
			return nil
		}
		if m.Spec == nil {
			return fmt.Errorf("the client's hello lacks the spec")
		}
		return m.Spec.Check()
	case typeReady:
		if len(m.Ports) == 0 || len(m.Ports) > 2*maxStreams {
			return fmt.Errorf("the server named %d data ports", len(m.Ports))
		}
		for _, p := range m.Ports {
			if p == 0 {
				return fmt.Errorf("the server named port 0 for data")
			}
		}
	case typeResult:
		if m.End == nil {
			return fmt.Errorf("the server's result lacks the figures")
		}
	case typeError:
		if m.Error == "" {
			return fmt.Errorf("the other end failed without saying why")
		}
	case typeJoined, typeStart, typeStop, typeCounted, typeDone:
	default:
		return fmt.Errorf("control message of unknown type %q; use the same windtunnel on both ends", m.Type)
	}
	return nil
}
