package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/probe"
)

// If the distance of the CPUs cannot be measured, a run uses the first CPUs, and says so.
func TestBusyCPUsAreTakenInTheirOrder(t *testing.T) {
	f := &probe.Facts{Allowed: []int{0, 1, 2, 3, 4, 5, 6, 7}}
	p, err := nearest(f, func(int, int) (float64, error) { return 0, errors.New("they never ran at the same time") })
	must.Succeed(t, err)
	if !slices.Equal(f.Allowed, []int{0, 1, 2, 3, 4, 5, 6, 7}) || !strings.Contains(p.choice, "they never ran at the same time") {
		t.Errorf("the CPUs are %v, chosen %q", f.Allowed, p.choice)
	}
}
