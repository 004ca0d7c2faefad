package k8s

import (
	"errors"
	"io"
	"sync/atomic"

	"windtunnel/lab/testbed/remote"
)

// session is a program that runs in a pod by kubectl exec, with a pipe to it.
type session struct {
	*remote.Process
	closing atomic.Bool       // Close was called
	why     func(error) error // explains the loss of the connection
}

// exec starts a program in a pod's container. why explains the loss of the connection.
func (c *cluster) exec(namespace, pod string, argv []string, why func(error) error) (*session, error) {
	command := append(c.kubectl, "exec", "-i", "-n", namespace, pod, "-c", containerName, "--")
	p, err := remote.Start(append(command, argv...)...)
	if err != nil {
		return nil, err
	}
	return &session{Process: p, why: why}, nil
}

// Read reads the agent's output. If the output ends before Close, the connection is lost: the error
// says why.
func (s *session) Read(b []byte) (int, error) {
	n, err := s.Process.Read(b)
	if errors.Is(err, io.EOF) && !s.closing.Load() {
		<-s.Ended
		err = s.why(s.Exit)
	}
	return n, err
}

// Write writes to the agent's input. If its end was found before Read finds that of the output, the error says why
// the connection is lost.
func (s *session) Write(b []byte) (int, error) {
	n, err := s.Process.Write(b)
	if err != nil && !s.closing.Load() {
		<-s.Ended
		err = s.why(s.Exit)
	}
	return n, err
}

// Close ends the program: it reads the end of its input.
func (s *session) Close() error {
	s.closing.Store(true)
	return s.Process.Close()
}
