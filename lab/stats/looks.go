package stats

// looked is the share of the error probability that remains if a run checks its
// intervals after every block and ends once they are narrow enough. An interval
// that is narrow by chance ends the run early. In simulations such intervals at
// a level of 0.95 hold the true value with 0.925 to 0.955.
const looked = 0.9

// Looked returns the level for the intervals of a run that ends once they are
// narrow enough. Made at this level, they hold the true value with level. The
// rule that ends the run and the reports use the same intervals.
func Looked(level float64) float64 { return 1 - looked*(1-level) }

// AfterLooks corrects an estimate that was made at a level from Looked: Level
// and P become those that hold after the checks.
func (e Estimate) AfterLooks() Estimate {
	e.Level = max(0, 1-(1-e.Level)/looked)
	e.P, e.Floor = AfterLooks(e.P), AfterLooks(e.Floor)
	return e
}

// AfterLooks corrects a p-value for the checks of the precision during a run.
func AfterLooks(p float64) float64 { return min(1, p/looked) }
