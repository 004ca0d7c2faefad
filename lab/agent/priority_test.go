package agent

import (
	"slices"
	"testing"

	"windtunnel/lab/priority"
)

func TestAProgramDoesNotInheritTheAgentsRaisedPriority(t *testing.T) {
	usual, _ := followed(t, started(t, "nice")) // prints its nice value
	defer priority.Raise()()
	raised, _ := followed(t, started(t, "nice"))
	if len(raised) != 1 || !slices.Equal(raised, usual) {
		t.Errorf("nice of a program: %v after Raise, want %v as before", raised, usual)
	}
}
