package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"strings"
	"time"

	"windtunnel/lab/meter"
)

// Client calls an agent over a pipe. Every call has a deadline.
type Client struct {
	rpc      *rpc.Client
	who      string        // name of the node or the VM, for messages
	patience time.Duration // maximum wait for an answer, in addition to a wait that the arguments request

	open  context.Context // ends when Close is called
	close context.CancelFunc

	life context.Context // ends when the agent is lost, with a *Lost as the cause
	end  context.CancelCauseFunc
}

// NewClient wraps the pipe to an agent on the named node, and watches whether
// the agent answers until Close.
func NewClient(node string, conn io.ReadWriteCloser) *Client {
	l := &listener{ReadWriteCloser: conn, ended: make(chan error, 1)}
	c := newClient("node "+node, l, nodePatience)
	go c.watch(l)
	return c
}

func newClient(who string, conn io.ReadWriteCloser, patience time.Duration) *Client {
	c := &Client{rpc: rpc.NewClient(conn), who: who, patience: patience}
	c.open, c.close = context.WithCancel(context.Background())
	c.life, c.end = context.WithCancelCause(context.Background())
	return c
}

// Close closes the pipe. The agent then ends, with all programs that it started.
func (c *Client) Close() error {
	c.close()
	return c.rpc.Close()
}

func (c *Client) call(ctx context.Context, method string, args, reply any) error {
	return c.Call(ctx, ServiceName+"."+method, args, reply)
}

// Call calls a method of any service of the agent's process, such as "Host.Survey". It
// returns once the agent has answered, the method's deadline has passed,
// ctx has ended or the agent is lost. After an error net/rpc may still write to
// reply: the caller must not read it.
func (c *Client) Call(ctx context.Context, method string, args, reply any) error {
	_, name, _ := strings.Cut(method, ".")
	limit := c.deadline(name, args)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	call := c.rpc.Go(method, args, reply, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %s: %w", c.who, name, context.Cause(ctx))
	case <-call.Done:
	}
	if call.Error == nil {
		return nil
	}
	if !errors.As(call.Error, new(rpc.ServerError)) { // the pipe failed
		return c.lose(unexpected(call.Error))
	}
	return fmt.Errorf("%s: %w", c.who, call.Error)
}

// ask calls a method that has a reply.
func ask[R any](ctx context.Context, c *Client, method string, args any) (R, error) {
	reply := new(R)
	if err := c.call(ctx, method, args, reply); err != nil {
		return *new(R), err
	}
	return *reply, nil
}

// Hello asks the agent for its description. If the agent speaks another protocol
// version than this program, the error is a *ProtocolError.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	h, err := ask[Hello](ctx, c, "Hello", struct{}{})
	if err == nil && h.Protocol != Protocol {
		err = &ProtocolError{c.who, h}
	}
	return h, err
}

// Attach makes containers and attaches the system.
func (c *Client) Attach(ctx context.Context, args AttachArgs) (Attached, error) {
	return ask[Attached](ctx, c, "Attach", args)
}

// Detach removes the system and the containers.
func (c *Client) Detach(ctx context.Context) error {
	return c.call(ctx, "Detach", struct{}{}, &struct{}{})
}

// LastWords returns the last output of the system's programs on the node; "" if the
// system has none.
func (c *Client) LastWords(ctx context.Context) (string, error) {
	return ask[string](ctx, c, "LastWords", struct{}{})
}

// AnswerProof and Reach are the two sides of the proof of connectivity.
func (c *Client) AnswerProof(ctx context.Context, args ReachArgs) error {
	return c.call(ctx, "AnswerProof", args, &struct{}{})
}

// Reach proves that args.Address can be reached.
func (c *Client) Reach(ctx context.Context, args ReachArgs) error {
	return c.call(ctx, "Reach", args, &struct{}{})
}

// Listening waits until a port listens. It returns false on a timeout.
func (c *Client) Listening(ctx context.Context, args ListenArgs) (bool, error) {
	return ask[bool](ctx, c, "Listening", args)
}

// MeterStart opens the node's meter and begins its time series.
func (c *Client) MeterStart(ctx context.Context, args MeterArgs) error {
	return c.call(ctx, "MeterStart", args, &struct{}{})
}

// MeterTrack adds a process of a tool to the meter.
func (c *Client) MeterTrack(ctx context.Context, args TrackArgs) error {
	return c.call(ctx, "MeterTrack", args, &struct{}{})
}

// MeterRead reads all meters of the node. If the agent watches the machine, it reads
// the machine's meters too.
func (c *Client) MeterRead(ctx context.Context) (NodeReading, error) {
	return ask[NodeReading](ctx, c, "MeterRead", struct{}{})
}

// MeterGlance takes a light reading.
func (c *Client) MeterGlance(ctx context.Context) (meter.Light, error) {
	return ask[meter.Light](ctx, c, "MeterGlance", struct{}{})
}

// MeterStop ends the meter and returns its time series.
func (c *Client) MeterStop(ctx context.Context) ([]meter.Light, error) {
	return ask[[]meter.Light](ctx, c, "MeterStop", struct{}{})
}

// Process is a program that runs on the node.
type Process struct {
	client *Client
	id     int
	pid    int
	next   int
}

// Start starts a program. If the program is not installed on the node, the error is
// a *NotFoundError.
func (c *Client) Start(ctx context.Context, args StartArgs) (*Process, error) {
	s, err := ask[Started](ctx, c, "Start", args)
	if err == nil && s.Missing != "" {
		err = &NotFoundError{c.who, args.Argv[0], s.Missing}
	}
	return &Process{client: c, id: s.Process, pid: s.PID}, err
}

// Next waits for further lines of output or for the end of the process, at most the
// given time.
func (p *Process) Next(ctx context.Context, wait time.Duration) (Event, error) {
	e, err := ask[Event](ctx, p.client, "Follow", FollowArgs{p.id, p.next, wait})
	if err == nil {
		p.next = e.Next
	}
	return e, err
}

// ID returns the number that the agent gave the process. MeterTrack needs it.
func (p *Process) ID() int { return p.id }

// PID returns the PID in the agent's PID namespace; 0 for a program in a VM.
func (p *Process) PID() int { return p.pid }

// Output returns the complete output of the process.
func (p *Process) Output(ctx context.Context) (OutputReply, error) {
	return ask[OutputReply](ctx, p.client, "Output", p.id)
}

// Signal sends a signal to the process and its children.
func (p *Process) Signal(ctx context.Context, signal int) error {
	return p.client.call(ctx, "Signal", SignalArgs{p.id, signal}, &struct{}{})
}

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

const (
	// guestPatience is the maximum wait for an answer of a guest's agent. It is
	// long, because a busy emulated guest answers slowly.
	guestPatience = 10 * time.Second
	// nodePatience is the maximum wait for an answer of a node's agent. It is longer
	// than guestPatience, so that the node's agent can report a guest that does not
	// answer.
	nodePatience = 15 * time.Second
)

// slow has the maximum durations of methods that may take longer than the client's
// patience.
var slow = map[string]time.Duration{
	"Hello":          bootTime, // a guest answers after its boot
	"ConfigureGuest": bootTime,
	"Attach":         2 * time.Minute, // daemons start one after the other; VMs boot
	"ProfileStop":    time.Minute,     // symbols are resolved
	"Change":         time.Minute,     // containers start on a busy machine
	"Survey":         time.Minute,     // kernel features are tried, programs are asked for their versions
	"Prepare":        time.Minute,     // a NIC that changes its namespace negotiates its link again
}

// waiting is implemented by arguments that ask the agent to wait.
type waiting interface{ wait() time.Duration }

func (a FollowArgs) wait() time.Duration { return a.Wait }
func (a ListenArgs) wait() time.Duration { return a.Wait }
func (a ReachArgs) wait() time.Duration  { return a.Wait }

// deadline returns the maximum duration of a call.
func (c *Client) deadline(method string, args any) time.Duration {
	limit := max(c.patience, slow[method])
	if w, ok := args.(waiting); ok {
		limit += max(w.wait(), 0)
	}
	return limit
}
