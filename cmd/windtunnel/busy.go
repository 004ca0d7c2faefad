package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"windtunnel/internal/pause"
	"windtunnel/lab/meter/foreign"
	"windtunnel/lab/validity"
)

// idleCheck is the duration of busy's measurement before a run.
const idleCheck = time.Second

// busy names the programs that use this machine's CPUs before a run. It returns
// "" if the CPUs are idle, or if the kernel does not report their use.
func busy(ctx context.Context, cpus []int) string {
	m, err := foreign.Open(cpus)
	if err != nil {
		return ""
	}
	defer m.Close()
	before, err := m.Read()
	if err != nil {
		return ""
	}
	begun := time.Now()
	if pause.For(ctx, idleCheck) != nil {
		return ""
	}
	after, err := m.Read()
	if err != nil {
		return ""
	}
	return busiest(before, after, cpus, time.Since(begun).Seconds())
}

// busiest describes the CPU that other programs used most. seconds is the time between
// the two readings. It returns "" if that use is too small to make a trial invalid.
func busiest(before, after map[int]foreign.Usage, cpus []int, seconds float64) string {
	percent := func(s float64) float64 { return 100 * s / seconds }
	var most foreign.Usage
	at := -1
	for _, c := range cpus {
		if u := foreign.Between(before, after, []int{c}); percent(u.Foreign) > max(validity.Default.Foreign, percent(most.Foreign)) {
			most, at = u, c
		}
	}
	if at < 0 {
		return ""
	}
	const named = 3
	var programs []string
	for _, p := range most.Programs() {
		if len(programs) < named && percent(p.Seconds) >= 1 {
			programs = append(programs, fmt.Sprintf("%s %.0f %%", p.Comm, percent(p.Seconds)))
		}
	}
	return fmt.Sprintf("this machine is busy: other programs use CPU %d for %.0f %% of the time (%s). They disturb the measurement.\n",
		at, percent(most.Foreign), strings.Join(programs, ", "))
}
