package traffic

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/suite"
)

func validSpec() Spec {
	return Spec{
		Workload: suite.Workload{Kind: suite.TCPStream, Direction: suite.Both, Streams: 2, Buffer: 1 << 17, IPVersion: 6},
		Timing:   suite.Timing{Warmup: time.Second, Duration: 3 * time.Second},
	}
}

func TestMessagesAreReadAsTheyWereSent(t *testing.T) {
	spec := validSpec()
	for _, m := range []message{
		{Type: typeHello, Version: protocolVersion, Token: 1<<63 + 1, Spec: &spec},
		{Type: typeReady, Ports: []uint16{5002, 5003}},
		{Type: typeJoined}, {Type: typeStart}, {Type: typeStop}, {Type: typeCounted}, {Type: typeDone},
		{Type: typeResult, End: &End{Role: "server", Seconds: 3, Flows: []Flow{{Bytes: 7, flow: flow{Index: 1, Role: roleSend}}}}},
		{Type: typeError, Error: "it burns"},
	} {
		line := must.Get(json.Marshal(m))(t)
		got, err := decodeMessage(line)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("sent %+v, read %+v, %v", m, got, err)
		}
	}
}

func TestInvalidMessagesAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"GET / HTTP/1.1":                         "is the other end a windtunnel?",
		`{"type":"hello"}`:                       "version 0",
		`{"type":"hello","version":5}`:           "lacks the spec",
		`{"type":"hello","version":5,"spec":{}}`: "-duration",
		`{"type":"ready"}`:                       "0 data ports",
		`{"type":"ready","ports":[0]}`:           "port 0",
		`{"type":"result"}`:                      "lacks the figures",
		`{"type":"error"}`:                       "without saying why",
		`{"type":"dance"}`:                       `"dance"`,
		`{"type":"stop"} {"type":"stop"}`:        "more follows",
	} {
		_, err := decodeMessage([]byte(line))
		must.Fail(t, err, want)
	}
}

func TestALineLongerThanTheLimitIsRefused(t *testing.T) {
	c := &control{incoming: make(chan message, 8), lost: make(chan struct{}), peer: "peer"}
	endless := io.LimitReader(zeros{}, maxMessage+10)
	c.conn = readOnly{endless}
	c.read()
	if err := c.gone(); !strings.Contains(err.Error(), "longer than") {
		t.Errorf("%v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("x"), len(p))), nil }

// readOnly is a connection of which only reading works.
type readOnly struct{ io.Reader }

func (readOnly) Write([]byte) (int, error)        { return 0, io.ErrClosedPipe }
func (readOnly) Close() error                     { return nil }
func (readOnly) LocalAddr() net.Addr              { return nil }
func (readOnly) RemoteAddr() net.Addr             { return nil }
func (readOnly) SetDeadline(time.Time) error      { return nil }
func (readOnly) SetReadDeadline(time.Time) error  { return nil }
func (readOnly) SetWriteDeadline(time.Time) error { return nil }

func TestGreetingsOfOtherProgramsAreRefused(t *testing.T) {
	p := greeting{token: 9, index: 3}.encode()
	if g, err := decodeGreeting(p[:]); err != nil || g != (greeting{9, 3}) {
		t.Errorf("the greeting is %+v (%v), want the encoded one", g, err)
	}
	for _, bad := range [][]byte{nil, p[:greetingSize-1], bytes.Repeat([]byte{'A'}, greetingSize)} {
		if _, err := decodeGreeting(bad); err == nil {
			t.Errorf("%x is taken for a greeting", bad)
		}
	}
}

func FuzzDecodeMessage(f *testing.F) {
	spec := validSpec()
	hello := must.Get(json.Marshal(message{Type: typeHello, Version: protocolVersion, Spec: &spec}))(f)
	for _, s := range []string{string(hello), `{"type":"ready","ports":[1]}`, `{"type":"result","end":{"flows":[{}]}}`, `{"type":"stop"}`, "{", "null", ""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := decodeMessage(line)
		if err != nil {
			return
		}
		if m.Type == typeHello {
			if err := m.Spec.Check(); err != nil {
				t.Errorf("an unchecked spec came through: %v", err)
			}
			if n := len(m.Spec.flows()); n < 1 || n > 2*maxStreams {
				t.Errorf("%d flows", n)
			}
		}
		again := must.Get(json.Marshal(m))(t)
		if second, err := decodeMessage(again); err != nil || second.Type != m.Type {
			t.Errorf("%s does not read back: %v", again, err)
		}
	})
}

func FuzzParseClient(f *testing.F) {
	for _, s := range []string{
		"-connect 10.0.0.2:5001 -kind udp_stream -buffer 1400 -rate 1Gbit", "-connect [::1]:1 -kind tcp_rr -request 1 -response 128k",
		"-connect 1.2.3.4:5 -sendfile -streams 9 -warmup 1s -duration 2s -cooldown 3s", "-connect :1", "-rate -1", "--",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		to, spec, err := parseClient(strings.Fields(line), io.Discard)
		if err != nil {
			return
		}
		if err := spec.Check(); err != nil || !to.IsValid() || to.Port() == 0 {
			t.Errorf("%q was accepted as %v %+v: %v", line, to, spec, err)
		}
	})
}
