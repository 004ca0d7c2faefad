package meter

import (
	"testing"
	"time"

	"windtunnel/internal/must"
	"windtunnel/internal/testprogram"
)

func TestAStepOfTheWallClockIsItsDifferenceFromTheMonotonicClock(t *testing.T) {
	a := Reading{Mono: 1e9, Wall: 500e9}
	for _, c := range []struct {
		name string
		b    Reading
		want time.Duration
		ok   bool
	}{
		{"together", Reading{Mono: 3e9, Wall: 502e9}, 0, true},
		{"forward", Reading{Mono: 3e9, Wall: 502e9 + 7e6}, 7 * time.Millisecond, true},
		{"back", Reading{Mono: 3e9, Wall: 499e9}, -3 * time.Second, true},
		{"unknown", Reading{Mono: 3e9}, 0, false},
	} {
		if got, ok := WallStep(a, c.b); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestReadingsHaveTheWallClockBesideTheMonotonicOne(t *testing.T) {
	m := must.Get(New(Config{Node: "n", CPUs: testprogram.CPUs(t)[:1]}))(t)
	defer m.Close()
	before := time.Now()
	r := read(t, m)
	if wall := time.Unix(0, r.Wall); wall.Before(before) || wall.After(time.Now()) {
		t.Errorf("the wall clock of the reading is %v; it was taken after %v", wall, before)
	}
	if step, ok := WallStep(r, read(t, m)); !ok || step < -time.Second || step > time.Second {
		t.Errorf("the clocks part by %v (%v) between two readings", step, ok)
	}
}
