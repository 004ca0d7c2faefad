package foreign

import (
	"cmp"
	"slices"
)

// Usage is the foreign CPU time on one CPU, or on several.
type Usage struct {
	Foreign float64 // CPU seconds
	// Top are the processes that used it, largest first. Of more than 1,024 the
	// kernel remembers those that ran last.
	Top []Task
}

// Task is a foreign process and the CPU time of its threads.
type Task struct {
	Comm    string // the kernel's name of the process, at most 15 bytes
	TGID    int    // process id in the host's PID namespace
	Seconds float64
}

// Between returns the usage of the given CPUs between two readings.
func Between(before, after map[int]Usage, cpus []int) Usage {
	var sum Usage
	tasks := map[int]Task{}
	for _, c := range cpus {
		a, b := before[c], after[c]
		sum.Foreign += max(b.Foreign-a.Foreign, 0)
		had := make(map[int]float64, len(a.Top))
		for _, t := range a.Top {
			had[t.TGID] = t.Seconds
		}
		for _, t := range b.Top {
			s := t.Seconds - had[t.TGID]
			if s < 0 { // removed from the kernel's table and added again
				s = t.Seconds
			}
			if s > 0 {
				tasks[t.TGID] = Task{Comm: t.Comm, TGID: t.TGID, Seconds: tasks[t.TGID].Seconds + s}
			}
		}
	}
	for _, t := range tasks {
		sum.Top = append(sum.Top, t)
	}
	rank(sum.Top)
	return sum
}

// rank sorts tasks, largest first.
func rank(tasks []Task) {
	slices.SortFunc(tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.TGID, b.TGID))
	})
}

// Program is a program with the CPU time of all its processes: a compiler is
// one entry, not a hundred short runs.
type Program struct {
	Comm    string
	Seconds float64
}

// Programs lists the programs that used CPU time, largest first.
func (u Usage) Programs() []Program {
	sums := map[string]float64{}
	for _, t := range u.Top {
		sums[t.Comm] += t.Seconds
	}
	var list []Program
	for comm, seconds := range sums {
		list = append(list, Program{comm, seconds})
	}
	slices.SortFunc(list, func(a, b Program) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Comm, b.Comm))
	})
	return list
}

// commLength is the number of bytes of a program's name that the kernel keeps.
const commLength = 15

// Split separates the usage of some programs from that of the others.
func (u Usage) Split(programs []string) (of, others Usage) {
	others.Foreign = u.Foreign
	for _, t := range u.Top {
		if !slices.ContainsFunc(programs, func(p string) bool { return p[:min(len(p), commLength)] == t.Comm }) {
			others.Top = append(others.Top, t)
			continue
		}
		of.Top = append(of.Top, t)
		of.Foreign += t.Seconds
	}
	others.Foreign = max(0, others.Foreign-of.Foreign)
	return of, others
}

// Culprit returns the program that used most; the name is empty if there is
// none.
func (u Usage) Culprit() (comm string, seconds float64) {
	if all := u.Programs(); len(all) > 0 {
		return all[0].Comm, all[0].Seconds
	}
	return "", 0
}
