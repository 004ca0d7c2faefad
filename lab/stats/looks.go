package stats

// looked is the share of the error probability that remains where a run looks
// at its intervals after every block and ends once they are narrow enough. An
// interval that is narrow by chance ends the run early: at a level of 0.95 such
// intervals hold the true value with 0.925 to 0.955 in simulations.
const looked = 0.9

// Looked returns the level at which an interval must be made so that it holds
// the true value with level although it decided when the run ended. The reports
// of a run with a precision make their intervals so, and the rule that ends the
// run looks at the same ones.
func Looked(level float64) float64 { return 1 - looked*(1-level) }

// AfterLooks corrects an estimate made at a level from Looked: Level and P
// become those that hold after the looks.
func (e Estimate) AfterLooks() Estimate {
	e.Level = max(0, 1-(1-e.Level)/looked)
	e.P, e.Floor = min(1, e.P/looked), min(1, e.Floor/looked)
	return e
}
