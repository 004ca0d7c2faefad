package ssh

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"windtunnel/lab/testbed/remote"
)

// shell is a command line that starts sh from any login shell, also from one that is not a
// POSIX shell, such as tcsh. sh reads one line, and runs the script in it; see oneLine. The
// script has the rest of the standard input: read takes no more than the line.
const shell = `exec sh -c 'IFS= read -r script; eval "$(printf %b "$script")"'`

// oneLine encodes a script as the line that shell reads.
func oneLine(script string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace("echo "+mark+"\n"+script) + "\n"
}

// start starts a program on a host, by a command line for sh.
func (c *connection) start(command string) (*remote.Process, error) {
	p, err := remote.Start(append(c.share, shell)...)
	if err != nil {
		return nil, err
	}
	p.Reader = &marked{from: bufio.NewReader(p.Reader)}
	_, err = io.WriteString(p, oneLine("exec "+command))
	return p, err
}

// run runs a shell script on a host, with stdin as its input, and returns its output.
func (c *connection) run(ctx context.Context, script string, stdin io.Reader) (string, error) {
	out, said, err := remote.Run(ctx, io.MultiReader(strings.NewReader(oneLine(script)), stdin), append(c.share, shell)...)
	if err != nil {
		return "", explainScript(out, said, err)
	}
	text, err := io.ReadAll(&marked{from: bufio.NewReader(strings.NewReader(out))})
	return string(text), err
}

// lostStatus is the exit status of ssh if it, and not the program on the host, has failed.
const lostStatus = 255

// explainScript returns the reason why a script failed. out and said are what it and the login
// shell wrote to the standard output and the standard error.
func explainScript(out, said string, err error) error {
	var exit *exec.ExitError
	switch ended := errors.As(err, &exit); {
	case !ended:
		return err
	case exit.ExitCode() != lostStatus && !strings.Contains(out, mark):
		return fmt.Errorf("the user's login shell did not start sh, and wrote %q (%w); set a login shell there, such as with `chsh -s /bin/sh`", strings.TrimSpace(out+said), err)
	case said == "":
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
