package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/ssh"

	"windtunnel/lab/agent"
	"windtunnel/lab/phrase"
)

// session is a program that runs on a host, with a pipe to it.
type session struct {
	agent.Pipe
	ssh    *ssh.Session
	errors *agent.Tail
	ended  chan struct{} // closed when the program has ended
	exit   error         // of the program, once it has ended
}

// start starts a program on a host, by a command line for the login shell.
func start(client *ssh.Client, command string) (*session, error) {
	s, err := client.NewSession()
	if err != nil {
		return nil, err
	}
	in, err := s.StdinPipe()
	if err != nil {
		s.Close()
		return nil, err
	}
	out, err := s.StdoutPipe()
	if err != nil {
		s.Close()
		return nil, err
	}
	run := &session{Pipe: agent.Pipe{ReadCloser: io.NopCloser(out), Out: in}, ssh: s, errors: &agent.Tail{}, ended: make(chan struct{})}
	s.Stderr = run.errors
	if err := s.Start(command); err != nil {
		s.Close()
		return nil, err
	}
	go func() {
		defer close(run.ended)
		run.exit = s.Wait()
	}()
	return run, nil
}

// end waits until the program has ended after its pipe was closed, or closes the
// session when ctx ends.
func (s *session) end(ctx context.Context) error {
	select {
	case <-s.ended:
	case <-ctx.Done():
		s.ssh.Close()
		return errors.New("the windtunnel program on the host did not end in time; it ends by itself soon")
	}
	if s.exit != nil {
		return fmt.Errorf("the windtunnel program on the host failed: %w: %s", s.exit, s.errors)
	}
	return nil
}

// hasEnded waits until the program has ended or ctx ends.
func (s *session) hasEnded(ctx context.Context) bool {
	select {
	case <-s.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// run runs a shell script on a host, with stdin as its input, and returns its output.
func run(ctx context.Context, client *ssh.Client, script string, stdin io.Reader) (string, error) {
	s, err := client.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { s.Close() })()
	var out bytes.Buffer
	said := &agent.Tail{}
	s.Stdin, s.Stdout, s.Stderr = stdin, &out, said
	if err := s.Run(phrase.Shell([]string{"sh", "-c", script})); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("%s (%w)", said, err)
	}
	return out.String(), nil
}
