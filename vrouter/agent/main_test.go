package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/agenttest"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/agent/netdev"
	"windtunnel/vrouter/api"
)

// asAgent is the environment variable that makes the test binary run an agent, for
// tests that kill the agent.
const asAgent = "VROUTER_TEST_AGENT_CONFIG"

func TestMain(m *testing.M) {
	if path := os.Getenv(asAgent); path != "" {
		c, err := config.Load(path)
		if err == nil {
			err = Run(context.Background(), c, Options{Version: "test", Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// running is an agent that runs in this process.
type running struct {
	config config.Config
	client *api.Client
	end    context.CancelFunc
	ended  chan error
}

// start runs an agent and removes its node at the end of the test.
func start(t *testing.T, c config.Config) *running {
	t.Helper()
	return startWith(t, c, Options{})
}

func startWith(t *testing.T, c config.Config, o Options) *running {
	t.Helper()
	o.Version, o.Logger = "test", slog.New(slog.NewTextHandler(testLog{t}, nil))
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{config: c, client: api.Dial(c.Socket), end: cancel, ended: make(chan error, 1)}
	go func() {
		r.ended <- Run(ctx, c, o)
	}()
	t.Cleanup(func() { r.stop(t) })
	t.Cleanup(func() { removed(t, c) })
	r.wait(t)
	return r
}

// removed removes the node of a test's agent.
func removed(t *testing.T, c config.Config) {
	t.Helper()
	if err := Remove(context.Background(), c, false, RemoveTimeout); err != nil {
		t.Errorf("remove node %s: %v", c.Node, err)
	}
}

// wait waits until the agent answers.
func (r *running) wait(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if _, err := r.client.Status(context.Background()); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("the agent does not answer: %v", err)
		}
		select {
		case err := <-r.ended:
			r.ended <- err
			t.Fatalf("the agent ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop stops the agent; packets keep flowing.
func (r *running) stop(t *testing.T) {
	t.Helper()
	r.end()
	select {
	case err := <-r.ended:
		r.ended <- nil
		if err != nil {
			t.Errorf("the agent of node %s ended with: %v", r.config.Node, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the agent does not end")
	}
}

// testLog writes an agent's log to the test's log.
type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	if l.t.Context().Err() == nil {
		l.t.Log(strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// exchange sends a line over TCP from one namespace to an address in another. The other side sends the
// line back. When exchange returns, both sides have closed the connection, so no more packets of it come.
func exchange(from, to *netdev.Space, address string) error {
	var l net.Listener
	err := to.Do(func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	if err != nil {
		return err
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		line, _ := io.ReadAll(c)
		c.Write(line)
	}()
	return from.Do(func() error { return ask(l.Addr().String()) })
}

func ask(address string) error {
	c, err := net.DialTimeout("tcp", address, 3*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err := c.Write([]byte("over the overlay")); err != nil {
		return err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	line, err := io.ReadAll(c)
	if err == nil && string(line) != "over the overlay" {
		err = fmt.Errorf("got %q back", line)
	}
	return err
}

// process starts an agent in another process.
func process(t *testing.T, config string) *exec.Cmd {
	t.Helper()
	return launched(t, config, exec.Command("/proc/self/exe"))
}

// launched starts a command that runs an agent. PR_SET_PDEATHSIG (prctl(2)) kills the
// agent when the thread that started it ends. That thread waits until the test ends.
func launched(t *testing.T, config string, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	cmd.Env = append(os.Environ(), asAgent+"="+config)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, over := make(chan error), make(chan struct{})
	go func() {
		agenttest.LockThread()
		started <- cmd.Start()
		<-over
	}()
	must.Succeed(t, <-started)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		close(over)
	})
	return cmd
}

// dialSocket connects to a unix socket and ignores the address.
func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
}
