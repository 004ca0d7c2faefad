package stats_test

import (
	"fmt"

	"windtunnel/lab/stats"
)

// Six blocks measured a bridge and VXLAN one after the other, in Gbit/s. A slow block slows
// both, so the ratios agree although the figures do not.
func ExampleRatio() {
	bridge := []float64{18.1, 17.9, 15.2, 18.0, 18.3, 17.7}
	vxlan := []float64{14.5, 14.2, 12.0, 14.6, 14.5, 14.1}
	e, ok, err := stats.Ratio(vxlan, bridge, stats.Level)
	if err != nil || !ok {
		fmt.Println(ok, err)
		return
	}
	fmt.Printf("%.3f [%.3f, %.3f], p = %.3f\n", e.Median, e.Low, e.High, e.P)
	// Output: 0.797 [0.789, 0.811], p = 0.031
}

// Fewer than six trials cannot give a 95 % interval of a median.
func ExampleMedianInterval() {
	i, ok, err := stats.MedianInterval([]float64{9.31, 9.40, 9.28, 9.35, 9.37, 9.33}, stats.Level)
	fmt.Printf("%.2f [%.2f, %.2f] %t %v; trials for this level: %d\n", i.Median, i.Low, i.High, ok, err, stats.MinimumTrials(stats.Level))
	// Output: 9.34 [9.28, 9.40] true <nil>; trials for this level: 6
}
