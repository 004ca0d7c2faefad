package ssh

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"

	"windtunnel/lab/agent"
)

// session is a program that runs on a host, with a pipe to it.
type session struct {
	agent.Pipe
	ssh    *ssh.Session
	errors *agent.Tail
	ended  chan struct{} // closed when the program has ended
	exit   error         // of the program, once it has ended
}

// shell is a command line that starts sh from any login shell, also from one that is not a
// POSIX shell, such as tcsh. sh reads one line, and runs the script in it; see oneLine. The
// script has the rest of the standard input: read takes no more than the line.
const shell = `exec sh -c 'IFS= read -r script; eval "$(printf %b "$script")"'`

// oneLine encodes a script as the line that shell reads.
func oneLine(script string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace("echo "+mark+"\n"+script) + "\n"
}

// start starts a program on a host, by a command line for sh. If ctx ends meanwhile, start
// closes the connection: a host that is cut off answers nothing.
func start(ctx context.Context, c *connection, command string) (_ *session, err error) {
	defer c.until(ctx, &err)()
	s, err := c.NewSession()
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
	run := &session{Pipe: agent.Pipe{ReadCloser: io.NopCloser(&marked{from: bufio.NewReader(out)}), Out: in}, ssh: s, errors: &agent.Tail{}, ended: make(chan struct{})}
	s.Stderr = run.errors
	if err := s.Start(shell); err != nil {
		s.Close()
		return nil, err
	}
	if _, err := io.WriteString(in, oneLine("exec "+command)); err != nil {
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

// run runs a shell script on a host, with stdin as its input, and returns its output. If
// ctx ends meanwhile, run closes the connection.
func run(ctx context.Context, c *connection, script string, stdin io.Reader) (_ string, err error) {
	defer c.until(ctx, &err)()
	s, err := c.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	var out bytes.Buffer
	said := &agent.Tail{}
	s.Stdin, s.Stdout, s.Stderr = io.MultiReader(strings.NewReader(oneLine(script)), stdin), &out, said
	if err := s.Run(shell); err != nil {
		return "", explainScript(out.String(), said.String(), err)
	}
	text, err := io.ReadAll(&marked{from: bufio.NewReader(&out)})
	return string(text), err
}

// explainScript returns the reason why a script failed. out and said are what it and the login
// shell wrote to the standard output and the standard error.
func explainScript(out, said string, err error) error {
	if !strings.Contains(out, mark) {
		return fmt.Errorf("the user's login shell did not start sh, and wrote %q (%w); set a login shell there, such as with `chsh -s /bin/sh`", strings.TrimSpace(out+said), err)
	}
	if said == "" {
		return fmt.Errorf("the script ended without a reason (%w)", err)
	}
	return fmt.Errorf("%s (%w)", said, err)
}

// mark is a line before the output of a program. A login shell can print before it, such as
// by an echo in ~/.bashrc.
const mark = "windtunnel-begins"

// marked reads the text after the mark.
type marked struct {
	from  *bufio.Reader
	begun bool
}

func (m *marked) Read(b []byte) (int, error) {
	for !m.begun {
		line, err := m.from.ReadString('\n')
		if err != nil {
			return 0, err
		}
		m.begun = strings.HasSuffix(strings.TrimSpace(line), mark)
	}
	return m.from.Read(b)
}
