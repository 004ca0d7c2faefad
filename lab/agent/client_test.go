package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/meter"
)

// fake is an agent whose Follow takes as long as it is asked to wait, and whose
// Output never ends.
type fake struct{}

func (fake) Ping(struct{}, *struct{}) error { return nil }

func (fake) Follow(a FollowArgs, e *Event) error {
	time.Sleep(a.Wait)
	e.Next = 7
	return nil
}

func (fake) Output(_ int, o *OutputReply) error {
	time.Sleep(time.Hour)
	o.Stdout = "too late"
	return nil
}

// serve runs an agent at one end of a pipe and returns a client at the other.
func serve(t *testing.T, service any) *Client {
	t.Helper()
	near, far := net.Pipe()
	srv := rpc.NewServer()
	must.Succeed(t, srv.RegisterName(ServiceName, service))
	go srv.ServeConn(far)
	c := NewClient("b", near)
	t.Cleanup(func() { c.Close() })
	return c
}

// An agent that is stopped answers nothing.
func TestAnAgentThatDoesNotAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		go io.Copy(io.Discard, far)
		c := NewClient("b", near)
		defer c.Close()
		started := time.Now()
		_, err := (&Process{client: c}).Next(context.Background(), time.Hour)
		if !errors.As(err, new(*Lost)) || !strings.HasPrefix(err.Error(), "node b's agent has not answered for 5s") {
			t.Errorf("error: %v", err)
		}
		if _, err := c.Hello(context.Background()); !errors.As(err, new(*Lost)) || c.Lost() == nil {
			t.Errorf("the next call: %v", err)
		}
		if took := time.Since(started); took > 6*time.Second {
			t.Errorf("found out after %v", took)
		}
	})
}

// A pipe that is full blocks the write of the request. (In real time: synctest
// does not see that a goroutine that waits for net/rpc's mutex is blocked.)
func TestAFullPipeIsReportedAsALostAgent(t *testing.T) {
	t.Parallel()
	near, _ := net.Pipe()
	c := NewClient("b", near)
	defer c.Close()
	if _, err := c.Hello(context.Background()); !errors.As(err, new(*Lost)) {
		t.Errorf("error: %v", err)
	}
}

func TestAnAgentThatIsBusyIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, fake{})
		if e, err := (&Process{client: c}).Next(context.Background(), time.Hour); err != nil || e.Next != 7 {
			t.Errorf("a call that waits for an hour: %+v, %v", e, err)
		}
	})
}

func TestACallThatTakesTooLongEndsAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := serve(t, fake{})
		started := time.Now()
		o, err := (&Process{client: c}).Output(context.Background())
		if err == nil || !strings.Contains(err.Error(), "node b: Output: no answer within 15s") || o.Stdout != "" {
			t.Errorf("the output is %+v and the error %v, want no output, and no answer within 15 s", o, err)
		}
		if took := time.Since(started); took != nodePatience || c.Lost() != nil {
			t.Errorf("it took %v; lost: %v", took, c.Lost())
		}
		c.Close()
		time.Sleep(time.Hour) // the fake ends
	})
}

func TestAnAgentThatEndsIsLost(t *testing.T) {
	near, far := net.Pipe()
	c := NewClient("b", near)
	defer c.Close()
	go func() {
		far.Read(make([]byte, 1))
		far.Close()
	}()
	_, err := c.Hello(context.Background())
	if !errors.As(err, new(*Lost)) || !strings.Contains(err.Error(), "node b's agent has ended unexpectedly") {
		t.Errorf("error: %v", err)
	}
}

// The answer to a call that was given up arrives while the caller looks at what
// it got: the race detector sees it where both are the same memory.
func TestALateAnswerIsIgnored(t *testing.T) {
	c := serve(t, fake{})
	for range 50 {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel)
		e, err := (&Process{client: c}).Next(ctx, time.Millisecond)
		if err != nil && e.Next != 0 {
			t.Fatalf("%+v beside %v", e, err)
		}
	}
}

// otherVersion is an agent that speaks another protocol version. No program is
// installed on its node, and the node's clock is ahead by clockAhead.
type otherVersion struct{}

const (
	clockAhead = 3 * time.Hour
	clockDelay = 20 * time.Millisecond
)

func (otherVersion) Ping(struct{}, *struct{}) error { return nil }

func (otherVersion) Hello(_ struct{}, h *Hello) error {
	h.Protocol, h.Version = Protocol+1, "v9"
	return nil
}

func (otherVersion) Start(a StartArgs, r *Started) error {
	if a.Argv[0] == "broken" {
		return errors.New("no such endpoint")
	}
	r.Missing = "not in PATH"
	return nil
}

// Clock takes clockDelay each way, so that the round trip is not negligible.
func (otherVersion) Clock(_ struct{}, at *int64) (err error) {
	time.Sleep(clockDelay)
	*at, err = meter.Now()
	*at += int64(clockAhead)
	time.Sleep(clockDelay)
	return err
}

func TestAnAgentOfAnotherProtocolIsRefused(t *testing.T) {
	_, err := serve(t, otherVersion{}).Hello(context.Background())
	var p *ProtocolError
	if !errors.As(err, &p) || p.Agent.Protocol != Protocol+1 {
		t.Fatalf("Hello returned %v, want a *ProtocolError with protocol %d", err, Protocol+1)
	}
	want := fmt.Sprintf("node b's agent (windtunnel v9) speaks protocol %d, and this program speaks protocol %d: install this version of windtunnel on the node", Protocol+1, Protocol)
	if !strings.Contains(err.Error(), want) {
		t.Errorf("%q lacks %q", err, want)
	}
}

func TestAMissingProgramHasASeparateTypeOfError(t *testing.T) {
	c := serve(t, otherVersion{})
	_, err := c.Start(context.Background(), StartArgs{Argv: []string{"iperf3"}})
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.Program != "iperf3" || err.Error() != "node b: start iperf3: not in PATH" {
		t.Errorf("the start of a missing program returned %v, want a *NotFoundError", err)
	}
	if _, err := c.Start(context.Background(), StartArgs{Argv: []string{"broken"}}); err == nil || errors.As(err, &missing) {
		t.Errorf("the start of a broken program returned %v, want an error that is not a *NotFoundError", err)
	}
}

func TestTheOffsetOfANodesClockIsMeasured(t *testing.T) {
	offset, err := serve(t, otherVersion{}).ClockOffset(context.Background())
	if wrong := (offset - clockAhead).Abs(); err != nil || wrong > 10*time.Millisecond {
		t.Errorf("the offset is %v, want %v (error %v)", offset, clockAhead, err)
	}
}

// explained is a pipe whose end has a reason.
type explained struct {
	io.ReadWriteCloser
	reason chan error
}

func (e explained) Read([]byte) (int, error) { return 0, <-e.reason }

// The loss of an agent has the reason that the transport gives, without a call that waits.
func TestTheErrorOfALostAgentHasTheTransportsReason(t *testing.T) {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	e := explained{ours, make(chan error, 1)}
	c := NewClient("b", e)
	defer c.Close()
	e.reason <- errors.New("the pod was evicted")
	<-c.Gone()
	must.Fail(t, c.Lost(), "node b's agent has ended unexpectedly (the pod was evicted)")
}
