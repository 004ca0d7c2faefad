package child

import (
	"errors"
	"io"
	"os"
	"os/exec"
)

// Piped is a program whose standard input and output are a pipe to this program.
type Piped struct {
	*Process
	io.Reader // its standard output

	in, out *os.File
}

// StartPiped starts a command as Start does.
func StartPiped(cmd *exec.Cmd, by func(*exec.Cmd) error) (*Piped, error) {
	p := &Piped{}
	// Wait closes the pipe of StdoutPipe even if output is left in it.
	read, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	out, write, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	defer write.Close()
	p.Reader, p.in, p.out, cmd.Stdin, cmd.Stdout = out, in, out, read, write
	if p.Process, err = Start(cmd, by); err != nil {
		in.Close()
		out.Close()
		return nil, err
	}
	return p, nil
}

func (p *Piped) Write(b []byte) (int, error) { return p.in.Write(b) }

// Close closes the input of the program. A program of the lab then ends.
func (p *Piped) Close() error {
	if err := p.in.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// CloseOutput closes the output of the program, after its end.
func (p *Piped) CloseOutput() { p.out.Close() }
