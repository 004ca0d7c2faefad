package experiment

import (
	"errors"
	"fmt"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/agent"
	"windtunnel/lab/sample"
)

func TestAFailureNamesItsKindOnce(t *testing.T) {
	hung := failed(sample.ToolHung, "the client did not end")
	for want, err := range map[string]error{
		"tool-hung: the client did not end":                   hung,
		"tool-hung: the client did not end\nit said: nothing": fmt.Errorf("%w\nit said: nothing", errors.Join(hung)),
		"no-result: no figures: the client did not end":       failed(sample.NoResult, "no figures: %w", hung),
		"setup-failed: no bridge":                             errors.New("no bridge"),
	} {
		must.Equal(t, want, failure(err).String())
	}
}

func TestTheFailureAfterALostAgentIsItsLoss(t *testing.T) {
	lost := &agent.Lost{}
	for _, err := range []error{lost, failed(sample.NoConnectivity, "pair 1: %w", lost), errors.Join(failed(sample.ToolHung, "no end"), lost)} {
		if f := failure(err); f.Kind != sample.AgentLost || !f.Retryable() {
			t.Errorf("the failure is %v, want a lost agent that is retried", f)
		}
	}
}
