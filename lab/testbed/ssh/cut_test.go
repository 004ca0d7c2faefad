package ssh

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/lab/host"
	"windtunnel/lab/space"
)

// cut takes the carrier from the link to a host.
func (s *site) cut(i int) {
	s.t.Helper()
	link, err := s.spaces[i].Link("mgmt")
	s.Must(err)
	s.Must(s.spaces[i].Links.LinkSetDown(link))
	s.t.Cleanup(func() { _ = s.spaces[i].Links.LinkSetUp(link) }) // so that sshd notices the end of its connections
}

// connectUntilCopying connects to the hosts and cuts the link to host b while the program
// is copied there.
func (s *site) connectUntilCopying(ctx context.Context) <-chan error {
	s.t.Helper()
	s.hosts.Hosts[1].Directory = s.Path("program-b")
	here, err := space.Open("")
	s.Must(err)
	defer here.Close()
	s.Limit(here, s.LinkTo("b"), 20e6)
	done := make(chan error, 1)
	go func() {
		x, err := Connect(ctx, s.hosts, nil)
		if err == nil {
			err = errors.Join(errors.New("the connection succeeded"), x.Close(context.Background()))
		}
		done <- err
	}()
	must.EventuallyTrue(s.t, "the copy to host b has begun", func() bool {
		unfinished, _ := filepath.Glob(s.Path("program-b/*.new.*"))
		return len(unfinished) > 0
	})
	s.cut(1)
	return done
}

// jump makes host b reachable only through host a.
func (s *site) jump() {
	b := &s.hosts.Hosts[1]
	b.Jump, b.Address = []string{"root@" + s.Hosts[0].Address}, s.Hosts[1].Data
}

// await returns the error of a call that must return in time.
func (s *site) await(done <-chan error, limit time.Duration) error {
	s.t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(limit):
		s.t.Fatalf("the call has not returned after %v", limit)
		return nil
	}
}

func TestAnInterruptEndsACopyToAHostThatIsCutOff(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	interrupted := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := s.connectUntilCopying(ctx)
	cancel(interrupted)
	if err := s.await(done, host.Silence); !errors.Is(err, interrupted) {
		t.Errorf("error: %v", err)
	}
}

func TestACopyToAHostThatIsCutOffEnds(t *testing.T) {
	must.Long(t)
	t.Parallel()
	s := newSite(t)
	done := s.connectUntilCopying(context.Background())
	must.Fail(t, s.await(done, host.Silence+15*time.Second), "host b: copy the windtunnel program")
}

func TestALoginEndsOnAHostThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]bool{"directly": false, "through a jump host": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if through {
				s.jump()
			}
			sshd := s.Processes(1)[0]
			s.Must(syscall.Kill(sshd, syscall.SIGSTOP)) // the kernel accepts the connection
			defer syscall.Kill(sshd, syscall.SIGCONT)
			interrupted := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			time.AfterFunc(time.Second, func() { cancel(interrupted) })
			done := make(chan error, 1)
			go func() {
				_, err := (&machine{Host: s.hosts.Hosts[1], folder: t.TempDir()}).dial(ctx)
				done <- err
			}()
			if err := s.await(done, 5*time.Second); !errors.Is(err, interrupted) || !strings.Contains(err.Error(), "log in to") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestAnAgentIsNotStartedOnAHostThatIsCutOff(t *testing.T) {
	must.Long(t)
	t.Parallel()
	for name, through := range map[string]bool{"directly": false, "through a jump host": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			cut := 1
			if through {
				cut = 0
				s.jump()
			}
			x := s.connect()
			s.cut(cut)
			began, done := time.Now(), make(chan error, 1)
			go func() {
				_, err := x.machines[1].startAgent(context.Background(), "node")
				done <- err
			}()
			must.Fail(t, s.await(done, startTime+5*time.Second), "start the agent")
			t.Logf("the call returned after %v", time.Since(began))
		})
	}
}
