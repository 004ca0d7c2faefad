package agent

import (
	"slices"
	"testing"

	"windtunnel/lab/priority"
)

func TestAProgramHasNoneOfThePriorityOfTheAgent(t *testing.T) {
	usual, _ := followed(t, started(t, "nice")) // prints its nice value
	defer priority.Raise()()
	raised, _ := followed(t, started(t, "nice"))
	if len(raised) != 1 || !slices.Equal(raised, usual) {
		t.Errorf("a program of a raised agent has nice %v, else %v", raised, usual)
	}
}
