package remote

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
)

// The shell starts a child, which holds a FIFO open until it ends.
func TestAnInterruptEndsACommandAndItsChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "alive")
	must.Succeed(t, syscall.Mkfifo(fifo, 0o600))
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, _, err := Run(ctx, nil, "sh", "-c", `(echo begun; exec sleep 60) >"$0"; true`, fifo)
		ended <- err
	}()
	f := must.Get(os.Open(fifo))(t)
	defer f.Close()
	must.Get(io.ReadFull(f, make([]byte, len("begun\n"))))(t)
	cancel(interrupted)
	if err := <-ended; !errors.Is(err, interrupted) {
		t.Errorf("error: %v", err)
	}
	if rest, err := io.ReadAll(f); err != nil || len(rest) > 0 {
		t.Errorf("the child wrote %q (%v)", rest, err)
	}
}

func TestOutputAfterTheEndOfACommandIsNotLost(t *testing.T) {
	p := must.Get(Start("sh", "-c", "read word; echo $word; echo said >&2; exit 3"))(t)
	must.Get(io.WriteString(p, "heard\n"))(t)
	<-p.Ended
	if line, err := bufio.NewReader(p).ReadString('\n'); line != "heard\n" {
		t.Errorf("the output is %q (%v)", line, err)
	}
	must.Succeed(t, p.Close())
	must.Fail(t, p.End(context.Background()), "exit status 3: said")
}

func TestACommandThatDoesNotEndIsKilled(t *testing.T) {
	p := must.Get(Start("sleep", "60"))(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	must.Fail(t, p.End(ctx), "did not end in time")
	<-p.Ended
}

func TestAMissingCommandHasItsRemedy(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, program := range Programs {
		_, err := Start(program.Name)
		must.Fail(t, err, program.Name+" is not installed; get it with: apt-get install ")
	}
}
