package main

import (
	"strings"
	"testing"

	"windtunnel/lab/meter/foreign"
)

func TestABusyMachineIsNamedWithItsPrograms(t *testing.T) {
	task := func(comm string, pid int, seconds float64) foreign.Task {
		return foreign.Task{Comm: comm, TGID: pid, Seconds: seconds}
	}
	before := map[int]foreign.Usage{
		0: {Foreign: 5, Top: []foreign.Task{task("compile", 7, 5)}},
		1: {Foreign: 1},
	}
	after := map[int]foreign.Usage{
		0: {Foreign: 5.04, Top: []foreign.Task{task("compile", 7, 5.04)}},
		1: {Foreign: 1.92, Top: []foreign.Task{task("compile", 8, 0.5), task("compile", 9, 0.2), task("chrome", 5, 0.2), task("top", 2, 0.01)}},
	}
	const want = "this machine is busy: other programs use CPU 1 for 46 % of the time (compile 35 %, chrome 10 %)."
	if got := busiest(before, after, []int{0, 1}, 2); !strings.HasPrefix(got, want) {
		t.Errorf("got %q", got)
	}
	if got := busiest(before, after, []int{0}, 2); got != "" { // 2 % of a CPU
		t.Errorf("a machine at rest: %q", got)
	}
}
