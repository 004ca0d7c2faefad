package compare

import (
	"fmt"
	"math"
	"strings"

	"windtunnel/lab/sample"
	"windtunnel/lab/stats"
)

// state is the state of the machine during a side's trials.
type state struct {
	distance float64 // distance of the CPUs, ns; 0 if it was not read
	copied   float64 // copy speed of memory, bits per second; 0 if it was not read
}

func (g group) state() (s state) {
	median := func(m sample.Metric) float64 {
		var values []float64
		for _, c := range g {
			for _, samples := range c.cells {
				for _, x := range samples {
					if v, ok := x.Metrics[m]; ok {
						values = append(values, v)
					}
				}
			}
		}
		v, _, _ := stats.Median(values)
		return v
	}
	return state{median(sample.CPUDistance), median(sample.MemoryCopy)}
}

// differing is the smallest ratio of distances, or of memory speeds, between
// two different states. Readings of one state spread by less.
const differing = 1.25

// otherLevel is the smallest ratio between the CPU distances of two levels.
const otherLevel = 1.6

// otherDistance reports whether the CPUs of the two sides were at different levels
// of distance. The cost of every system depends on the level.
func (p *pairing) otherDistance() bool {
	return beyond(p.a.state().distance, p.b.state().distance, otherLevel)
}

// beyond reports whether two known values differ by more than a ratio.
func beyond(x, y, ratio float64) bool {
	return x > 0 && y > 0 && math.Abs(math.Log(x/y)) > math.Log(ratio)
}

// stateNotes returns a note if the machine was in different states for the two sides. A
// tunnel's cost depends on the state.
func (p *pairing) stateNotes() []string {
	a, b := p.a.state(), p.b.state()
	var what []string
	if beyond(a.distance, b.distance, differing) {
		what = append(what, fmt.Sprintf("its CPUs were %.0f ns from each other for A and %.0f ns for B", a.distance, b.distance))
	}
	if beyond(a.copied, b.copied, differing) {
		what = append(what, fmt.Sprintf("it copied memory at %.1f GB/s for A and %.1f GB/s for B", a.copied/8e9, b.copied/8e9))
	}
	if len(what) == 0 {
		return nil
	}
	return []string{"The machine was in another state: " + strings.Join(what, ", and ") + ". A difference may be the machine's; repeat the runs in turns."}
}
