// Package remote runs programs on other machines by local commands that give a pipe to them,
// such as ssh and kubectl. The user's configuration of these commands is in effect.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"windtunnel/internal/setup"
	"windtunnel/lab/agent"
	"windtunnel/lab/program"
)

// Programs are the commands that testbeds on other machines need here.
var Programs = []program.Program{{Name: "ssh"}, {Name: "ssh-keygen"}, {Name: "kubectl"}}

// Process is a local command whose standard input and output are a pipe to a program on another
// machine.
type Process struct {
	io.Reader // its standard output
	In        io.WriteCloser
	Said      agent.Tail    // its standard error
	Ended     chan struct{} // closed when the command has ended
	Exit      error         // of the command, once it has ended

	cmd *exec.Cmd
	out *os.File
}

// Start starts a command.
func Start(argv ...string) (*Process, error) {
	p := &Process{cmd: command(argv), Ended: make(chan struct{})}
	// Wait closes the pipe of StdoutPipe even if output is left in it.
	out, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	p.Reader, p.out, p.cmd.Stdout, p.cmd.Stderr = out, out, write, &p.Said
	if p.In, err = p.cmd.StdinPipe(); err == nil {
		err = start(p.cmd)
	}
	if err != nil {
		out.Close()
		return nil, err
	}
	go func() {
		defer close(p.Ended)
		p.Exit = p.cmd.Wait()
	}()
	return p, nil
}

func (p *Process) Write(b []byte) (int, error) { return p.In.Write(b) }

// Close closes the input of the program on the other machine. A program of the lab then ends.
func (p *Process) Close() error {
	err := p.In.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// Kill ends the command and all of its children.
func (p *Process) Kill() {
	select {
	case <-p.Ended:
	default:
		kill(p.cmd)
	}
}

// End waits until the command has ended after Close. When ctx ends, it kills the command.
func (p *Process) End(ctx context.Context) error {
	defer p.out.Close()
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
	cmd := command(argv)
	var text bytes.Buffer
	var messages agent.Tail
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &text, &messages
	if err := start(cmd); err != nil {
		return "", "", err
	}
	stop := context.AfterFunc(ctx, func() { kill(cmd) })
	err = cmd.Wait()
	if !stop() {
		err = context.Cause(ctx)
	}
	return text.String(), messages.String(), err
}

// command returns a command with messages in English, in a separate process group: Ctrl-C must
// not end it before the lab has removed what it made.
func command(argv []string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // a child can keep the output open
	return cmd
}

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // fails only if all have ended

// starts has the commands to start. One thread starts all, and lives as long as the program: the
// kernel kills a command when the thread that started it ends.
var starts = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range jobs {
			f()
		}
	}()
	return jobs
})

func start(cmd *exec.Cmd) error {
	ended := make(chan error)
	starts() <- func() { ended <- cmd.Start() }
	err := <-ended
	if name := cmd.Args[0]; errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed; get it with: %s", name, setup.Command(name))
	}
	return err
}
