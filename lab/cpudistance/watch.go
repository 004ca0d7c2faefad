package cpudistance

import (
	"fmt"
	"time"

	"windtunnel/internal/phrase"
	"windtunnel/lab/condition"
	"windtunnel/lab/stats"
)

// Watch reads the distance of two CPUs for a time of length, once in every
// interval.
func Watch(first, second int, length, every time.Duration) ([]Reading, error) {
	p, err := Open(first, second)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var list []Reading
	for end := time.Now().Add(length); ; time.Sleep(every) {
		r, err := p.Persist()
		if err != nil {
			return nil, err
		}
		if list = append(list, r); time.Now().After(end) {
			return list, nil
		}
	}
}

// Between returns the median round trip between two CPUs, in ns, over some 5
// ms.
func Between(first, second int) (float64, error) {
	list, err := Watch(first, second, 5*time.Millisecond, 200*time.Microsecond)
	if err != nil {
		return 0, err
	}
	trip, ok, err := stats.Median(RoundTrips(list))
	if err == nil && !ok {
		err = fmt.Errorf("measure the distance of CPUs %d and %d: they never ran at the same time", first, second)
	}
	return trip, err
}

// RoundTrips returns the round trips, in ns, of the readings that are not
// empty.
func RoundTrips(list []Reading) []float64 {
	var trips []float64
	for _, r := range list {
		if r.RoundTrip > 0 {
			trips = append(trips, r.RoundTrip)
		}
	}
	return trips
}

// Summary says in one line how far two CPUs were from each other, and whether
// the distance changed.
func Summary(first, second int, list []Reading) string {
	trips := RoundTrips(list)
	levels := condition.Levels(trips)
	seconds := 0.0
	if len(list) > 0 {
		seconds = float64(list[len(list)-1].Mono-list[0].Mono) / 1e9
	}
	who := fmt.Sprintf("CPU %d and %d: ", first, second)
	if len(levels) == 0 {
		return who + fmt.Sprintf("not known: the measuring threads never ran at the same time in %.0f s; end what keeps these CPUs busy", seconds)
	}
	text := who + condition.Describe(levels)
	if n := changes(levels, trips); n > 0 {
		return text + fmt.Sprintf("; changed %s in %.0f s: the host moves this machine's CPUs", phrase.Count(n, "time"), seconds)
	}
	return text + fmt.Sprintf(", the same for %.0f s", seconds)
}

// changes counts how often readings, in order of time, change to another level.
func changes(levels []condition.Level, trips []float64) (n int) {
	at := -1
	for _, r := range trips {
		l := condition.Of(levels, r)
		if l < 0 {
			continue
		}
		if at >= 0 && l != at {
			n++
		}
		at = l
	}
	return n
}

// CopySpeed returns the median speed at which the two CPUs copied memory, in
// bytes per second; 0 without readings.
func CopySpeed(list []Reading) float64 {
	var speeds []float64
	for _, r := range list {
		if r.Copy[0] > 0 {
			speeds = append(speeds, r.Copy[:]...)
		}
	}
	speed, _, _ := stats.Median(speeds)
	return speed
}
