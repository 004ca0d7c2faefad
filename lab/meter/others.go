package meter

import (
	"fmt"
	"os"
	"slices"
)

// NewOthers opens a meter over the online CPUs of this machine that are not in
// taken: those without a part in the experiment. It returns nil if there are
// none.
func NewOthers(taken []int) (*Meter, error) {
	text, err := os.ReadFile(statFile)
	if err != nil {
		return nil, fmt.Errorf("list this machine's CPUs: %w", err)
	}
	cpus, err := otherCPUs(text, taken)
	if err != nil {
		return nil, fmt.Errorf("list this machine's CPUs: %w", err)
	}
	if len(cpus) == 0 {
		return nil, nil
	}
	return New(Config{Node: "other CPUs", CPUs: cpus})
}

func otherCPUs(stat []byte, taken []int) ([]int, error) {
	var cpus []int
	err := eachCPU(stat, func(cpu int, _ CPUTimes) {
		if !slices.Contains(taken, cpu) {
			cpus = append(cpus, cpu)
		}
	})
	return cpus, err
}

// SoftirqShares returns the part of the window, 0..1, that each CPU spent in
// softirqs, ksoftirqd included.
func (d *Delta) SoftirqShares() map[int]float64 {
	shares := make(map[int]float64, len(d.CPUs))
	for cpu, u := range d.CPUs {
		shares[cpu] = u.Softirq / d.Seconds
	}
	return shares
}
