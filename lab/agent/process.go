package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

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
	cmd *exec.Cmd

	mu        sync.Mutex
	news      chan struct{} // closed and replaced at each change
	lines     []Line
	out, err  strings.Builder
	truncated bool
	exited    bool
	exit      int
	left      bool // it ended, but children in its process group did not
}

func newProcess(argv, env []string) *process {
	p := &process{cmd: exec.Command(argv[0], argv[1:]...), news: make(chan struct{})}
	p.cmd.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	// The process gets a separate process group, so that its children can be ended
	// too. It must not outlive the agent, however the agent ends.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return p
}

// start runs the process in a namespace, from the spawner's thread.
func (p *process) start(sp *spawner, where *space.Space) error {
	stdout, stderr := &lines{process: p}, &lines{process: p, isErr: true}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = stdout, stderr, outputGrace
	if err := sp.start(p.cmd, where); err != nil {
		return err
	}
	go func() {
		p.cmd.Wait()
		stdout.flush()
		stderr.flush()
		p.change(func() {
			p.exited, p.exit = true, p.cmd.ProcessState.ExitCode()
			p.left = syscall.Kill(-p.pid(), 0) == nil
		})
	}()
	return nil
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

// spawner is one thread that starts every process. A process's parent-death
// signal follows the thread that started it, so the thread must live as long
// as the agent.
type spawner struct {
	jobs chan spawn
}

type spawn struct {
	cmd   *exec.Cmd
	where *space.Space
	done  chan error
}

func newSpawner(home *space.Space) *spawner {
	sp := &spawner{jobs: make(chan spawn)}
	go func() {
		runtime.LockOSThread()
		for j := range sp.jobs {
			priority.Lower() // the program inherits the priority of this thread
			err := j.where.Enter()
			if err == nil {
				err = errors.Join(j.cmd.Start(), home.Enter())
			}
			j.done <- err
		}
	}()
	return sp
}

func (sp *spawner) start(cmd *exec.Cmd, where *space.Space) error {
	j := spawn{cmd, where, make(chan error, 1)}
	sp.jobs <- j
	return <-j.done
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
	reply.Process, reply.PID = len(s.processes)-1, p.pid()
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
	p := newProcess(argv, args.Env)
	return p, p.start(s.spawner, where.space)
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
	return p.signal(args.Signal)
}

func (p *process) signal(number int) error {
	err := syscall.Kill(-p.pid(), syscall.Signal(number))
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %d to process %d: %w", number, p.pid(), err)
	}
	return nil
}

func (s *Service) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processes {
		p.end()
	}
}

func (p *process) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.exited || p.left {
		syscall.Kill(-p.pid(), syscall.SIGKILL)
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// Tail keeps the last part of what is written to it, such as the messages of a program that
// runs an agent elsewhere.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10 // bytes

// Write keeps b, and drops the oldest text above 4 KiB.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-tailSize):]
	return len(b), nil
}

// String returns the text on one line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.FieldsFunc(string(t.text), func(c rune) bool { return c == '\n' || c == '\r' }), " | ")
}
