package suite

import (
	"errors"
	"fmt"
	"time"

	"windtunnel/lab/units"
)

// stopOf returns the number of trials and the rule for the end of a run of s.
func stopOf(s *spec, opts ExpandOptions) (trials int, stop Stop) {
	trials = s.trials.V
	if opts.Trials > 0 {
		trials = opts.Trials
	}
	if !opts.Short { // the short form has a fixed number of trials
		stop.Precision = s.precision.V
	}
	if opts.Precision > 0 {
		stop.Precision = opts.Precision
	}
	if stop.Precision == 0 {
		return trials, Stop{}
	}
	stop.MaxTrials = min(max(4*trials, defaultMaximum), mostTrials)
	if s.maxTrials.Set && !opts.Short {
		stop.MaxTrials = s.maxTrials.V
	}
	if opts.MaxTrials > 0 {
		stop.MaxTrials = opts.MaxTrials
	}
	stop.MaxTime = s.maxTime.V
	if opts.MaxTime > 0 {
		stop.MaxTime = opts.MaxTime
	}
	return trials, stop
}

// checkStop reports limits in the file that contradict each other or have no effect.
func checkStop(j *journal, s *spec) {
	if !s.precision.Set {
		const remedy = `add a line such as "precision: 2%", or remove this one: without precision each scenario runs as often as trials says`
		if s.maxTrials.Set {
			j.fail(s.maxTrials.Pos, "max_trials requires precision", remedy)
		}
		if s.maxTime.Set {
			j.fail(s.maxTime.Pos, "max_time requires precision", remedy)
		}
		return
	}
	// An unreadable value is 0 and already reported.
	if s.maxTrials.V > 0 && s.maxTrials.V < s.trials.V {
		j.fail(s.maxTrials.Pos, fmt.Sprintf("max_trials is %d, below the minimum of %d trials", s.maxTrials.V, s.trials.V),
			fmt.Sprintf("write %d or more, or lower trials", s.trials.V))
	}
}

// checkStop returns an error if an option of the precision is wrong, or contradicts
// another option or the file. The error names the flags of `windtunnel run`.
func (o ExpandOptions) checkStop(s *spec) error {
	switch {
	case o.Precision != 0 && !(o.Precision >= leastPrecision && o.Precision <= mostPrecision): // also true for NaN
		return fmt.Errorf("--precision %s is out of bounds: choose %s to %s", units.FormatPercent(o.Precision), units.FormatPercent(leastPrecision), units.FormatPercent(mostPrecision))
	case o.MaxTrials < 0 || o.MaxTrials > mostTrials:
		return fmt.Errorf("--max-trials %d is out of bounds: choose 1 to %d", o.MaxTrials, mostTrials)
	case o.MaxTime != 0 && (o.MaxTime < leastTime || o.MaxTime > mostTime):
		return fmt.Errorf("--max-time %v is out of bounds: choose %v to %v", o.MaxTime, time.Duration(leastTime), mostTime)
	}
	trials, stop := stopOf(s, o)
	if stop.Precision == 0 && (o.MaxTrials > 0 || o.MaxTime > 0) {
		return errors.New("--max-trials and --max-time require --precision: add it, such as --precision 2%, or give --trials alone")
	}
	if stop.Precision > 0 && stop.MaxTrials < trials {
		return fmt.Errorf("the maximum of %d trials is below the minimum of %d: set --max-trials to %d or more, or lower --trials", stop.MaxTrials, trials, trials)
	}
	return nil
}
