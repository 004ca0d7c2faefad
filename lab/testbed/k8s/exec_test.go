package k8s

import (
	"errors"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/testbed/remote"
)

func TestTheErrorOfAWriteToAnEndedProgramHasTheReason(t *testing.T) {
	p := must.Get(remote.Start("true"))(t)
	reason := errors.New("the pod was deleted")
	s := &session{Process: p, why: func(error) error { return reason }}
	<-p.Ended
	if _, err := s.Write([]byte("x")); !errors.Is(err, reason) {
		t.Errorf("the error is %v, want the reason", err)
	}
	must.Succeed(t, s.Close())
}
