//go:build race

package report

// raceDetector slows summaries more than tenfold.
const raceDetector = true
