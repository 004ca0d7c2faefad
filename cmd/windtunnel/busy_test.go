package main

import (
	"strings"
	"testing"

	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/report"
	"windtunnel/lab/sample"
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

func TestTheAdviceIsGivenOnceWithTheRemedy(t *testing.T) {
	v := report.Validity{Attempts: 30, Valid: 18, Gated: 12, Gates: []report.GateCount{
		{Name: sample.ForeignCPU, Trials: 12, Worst: sample.Gate{Message: "programs used 46 % of the CPUs: end them"}}}}
	got := advice(v)
	for _, want := range []string{"12 of 30 attempts were rejected", "12 × foreign-cpu, the worst: programs used 46 % of the CPUs: end them\n", "--gates warn"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in: %s", want, got)
		}
	}
	for _, v := range []report.Validity{{Attempts: 30, Valid: 30}, {Attempts: 30, Valid: 18, Warned: 18, Gated: 12}} {
		if got := advice(v); got != "" {
			t.Errorf("%+v: %q", v, got)
		}
	}
}
