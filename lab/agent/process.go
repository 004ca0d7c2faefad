package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"windtunnel/lab/child"
	"windtunnel/lab/priority"
	"windtunnel/lab/space"
)

// Self is the first word of a command line that runs the agent's program. Its path can
// differ between nodes.
const Self = "windtunnel"

// maxOutput is the maximum size of the stored output of a process, in bytes. Only a
// broken tool prints more.
const maxOutput = 8 << 20

// outputGrace is the maximum wait for the end of a program's output after the
// program has ended. A child of the program can keep the output open.
const outputGrace = 500 * time.Millisecond

// process is one program that the agent started, with its output.
type process struct {
	*child.Process

	mu        sync.Mutex
	news      chan struct{} // closed and replaced at each change
	lines     []Line
	out, err  strings.Builder
	truncated bool
	exited    bool
	exit      int
}

// start runs a program in a namespace.
func (s *Service) start(where *space.Space, argv, env []string) (*process, error) {
	p := &process{news: make(chan struct{})}
	stdout, stderr := &lines{process: p}, &lines{process: p, isErr: true}
	cmd := child.Command(context.Background(), argv, env...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, outputGrace
	var err error
	if p.Process, err = child.Start(cmd, func(cmd *exec.Cmd) error { return s.startIn(where, cmd) }); err != nil {
		return nil, err
	}
	go func() {
		<-p.Ended
		stdout.flush()
		stderr.flush()
		p.change(func() { p.exited, p.exit = true, p.State().ExitCode() })
	}()
	return p, nil
}

// startIn starts a command in a namespace. It ends with the agent.
func (s *Service) startIn(where *space.Space, cmd *exec.Cmd) error {
	return child.BoundBy(cmd, func() error {
		priority.Lower() // the program inherits the priority of this thread
		if err := where.Enter(); err != nil {
			return err
		}
		return errors.Join(cmd.Start(), s.node.Enter())
	})
}

// lines splits a stream into lines and adds them to the process.
type lines struct {
	process *process
	isErr   bool
	begun   []byte // a line whose end has not arrived yet
}

func (l *lines) Write(b []byte) (int, error) {
	l.begun = append(l.begun, b...)
	for {
		end := bytes.IndexByte(l.begun, '\n')
		if end < 0 {
			break
		}
		l.give(l.begun[:end+1])
		l.begun = l.begun[end+1:]
	}
	if len(l.begun) > maxOutput {
		l.flush()
	}
	return len(b), nil
}

func (l *lines) flush() {
	if len(l.begun) > 0 {
		l.give(l.begun)
		l.begun = nil
	}
}

func (l *lines) give(text []byte) {
	l.process.change(func() { l.process.keep(string(text), l.isErr) })
}

func (p *process) keep(text string, isErr bool) {
	if p.out.Len()+p.err.Len()+len(text) > maxOutput {
		p.truncated = true
		return
	}
	if isErr {
		p.err.WriteString(text)
	} else {
		p.out.WriteString(text)
	}
	p.lines = append(p.lines, Line{isErr, strings.TrimSuffix(text, "\n")})
}

func (p *process) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.news)
	p.news = make(chan struct{})
}

// follow waits for lines from index from on, or for the end of the process, at most
// the given time.
func (p *process) follow(from int, wait time.Duration) (Event, error) {
	deadline := time.After(wait)
	for {
		p.mu.Lock()
		e := Event{Next: len(p.lines), Exited: p.exited, Exit: p.exit}
		if from < len(p.lines) {
			e.Lines = append(e.Lines, p.lines[from:]...)
		}
		news := p.news
		p.mu.Unlock()
		if len(e.Lines) > 0 || e.Exited {
			return e, nil
		}
		select {
		case <-news:
		case <-deadline:
			return e, nil
		}
	}
}

// Start starts a program at an endpoint.
func (s *Service) Start(args StartArgs, reply *Started) error {
	if len(args.Argv) == 0 {
		return errors.New("start a program: the command line is empty")
	}
	where, err := s.locate(args.Endpoint)
	if err != nil {
		return err
	}
	p, err := s.startAt(where, args)
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist): // a program name without and with a path
		reply.Missing = err.Error()
		return nil
	case errors.As(err, new(*NotFoundError)): // from the agent of a VM
		reply.Missing = err.Error()
		return nil
	case err != nil:
		return fmt.Errorf("start %s: %w", args.Argv[0], err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
	reply.Process, reply.PID = len(s.processes)-1, p.PID()
	return nil
}

func (s *Service) startAt(where location, args StartArgs) (running, error) {
	if g := where.guest; g != nil {
		p, err := g.client.Start(context.Background(), StartArgs{Argv: inGuest(args.Argv), Env: args.Env})
		if err != nil {
			return nil, err
		}
		return remote{g, p.id}, nil
	}
	argv := slices.Clone(args.Argv)
	if argv[0] == Self {
		var err error
		if argv[0], err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return s.start(where.space, argv, args.Env)
}

func (s *Service) process(id int) (running, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id < 0 || id >= len(s.processes) {
		return nil, fmt.Errorf("this agent did not start process %d", id)
	}
	return s.processes[id], nil
}

// Follow waits for output or the end of a process.
func (s *Service) Follow(args FollowArgs, reply *Event) error {
	p, err := s.process(args.Process)
	if err != nil {
		return err
	}
	*reply, err = p.follow(args.From, args.Wait)
	return err
}

// Output returns the complete output of a process so far.
func (s *Service) Output(id int, reply *OutputReply) error {
	p, err := s.process(id)
	if err != nil {
		return err
	}
	*reply, err = p.output()
	return err
}

func (p *process) output() (OutputReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return OutputReply{p.out.String(), p.err.String(), p.truncated}, nil
}

// Signal sends a signal to a process and its children. It is no error if the process
// has ended.
func (s *Service) Signal(args SignalArgs, _ *struct{}) error {
	p, err := s.process(args.Process)
	if err != nil {
		return err
	}
	return p.Signal(syscall.Signal(args.Signal))
}

func (s *Service) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		p.Kill()
	}
}
