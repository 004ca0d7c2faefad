// Package remote runs programs on other machines by local commands that give a pipe to them,
// such as ssh and kubectl. The user's configuration of these commands is in effect.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"windtunnel/internal/setup"
	"windtunnel/lab/agent"
	"windtunnel/lab/child"
	"windtunnel/lab/program"
)

// Programs are the commands that testbeds on other machines need here.
var Programs = []program.Program{{Name: "ssh"}, {Name: "ssh-keygen"}, {Name: "kubectl"}}

// Process is a local command whose standard input and output are a pipe to a program on another
// machine.
type Process struct {
	*child.Piped
	Said child.Tail // its standard error
}

// Start starts a command.
func Start(argv ...string) (*Process, error) {
	p, cmd := &Process{}, child.Command(context.Background(), argv)
	cmd.Stderr = &p.Said
	var err error
	p.Piped, err = child.StartPiped(cmd, bound)
	return p, err
}

// End waits until the command has ended after Close. When ctx ends, it kills the command.
func (p *Process) End(ctx context.Context) error {
	defer p.CloseOutput()
	select {
	case <-p.Ended:
	case <-ctx.Done():
		p.Kill()
		return errors.New("the windtunnel program there did not end in time; it ends by itself soon")
	}
	if p.Exit != nil {
		return fmt.Errorf("the windtunnel program there failed: %w: %s", p.Exit, &p.Said)
	}
	return nil
}

// Agent is a program of the lab on another machine, with a client for its calls.
type Agent struct {
	*agent.Client
	Hello   agent.Hello
	process *Process
}

// Agent returns the agent to which p gives a pipe. node is the name of its node, for messages; pipe
// is p or reads and writes it; limit is the maximum time until the agent answers. After an error p
// has ended, and said is what the agent wrote to the standard error.
func (p *Process) Agent(ctx context.Context, node string, pipe io.ReadWriteCloser, limit time.Duration) (a *Agent, said string, err error) {
	a = &Agent{Client: agent.NewClient(node, pipe), process: p}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
	defer cancel()
	if a.Hello, err = a.Client.Hello(ctx); err == nil {
		return a, "", nil
	}
	a.Close()
	if _ = p.End(ctx); ctx.Err() == nil {
		said = p.Said.String()
	}
	return nil, said, err
}

// End ends the agent. The loss of an agent is no error here, because its calls have failed.
func (a *Agent) End(ctx context.Context) (lost bool, err error) {
	if a.Lost() != nil {
		_ = a.Close()
		a.process.Kill()
		return true, nil
	}
	return false, errors.Join(a.Close(), a.process.End(ctx))
}

// Run runs a command with stdin as its input, and returns its output and its messages. When ctx
// ends, Run kills the command and returns the cause.
func Run(ctx context.Context, stdin io.Reader, argv ...string) (out, said string, err error) {
	cmd := child.Command(ctx, argv)
	var text bytes.Buffer
	var messages child.Tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &text, &messages
	if err = bound(cmd); err == nil {
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return text.String(), messages.String(), err
}

// bound is child.Bound; the error for a missing program has its remedy.
func bound(cmd *exec.Cmd) error {
	err := child.Bound(cmd)
	if name := cmd.Args[0]; errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed; get it with: %s", name, setup.Command(name))
	}
	return err
}
