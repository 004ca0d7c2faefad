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

	"windtunnel/internal/setup"
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
