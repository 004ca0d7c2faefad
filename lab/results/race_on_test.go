//go:build race

package results

// raceDetector slows SQLite, which is Go code here, about thirteenfold.
const raceDetector = true
