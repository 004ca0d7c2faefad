package meter

import "testing"

func TestMovedSumsTheDevicesOfAllNodes(t *testing.T) {
	at := func(mono int64, received ...uint64) Light {
		l := Light{Mono: mono, Idle: []int64{mono}}
		for _, n := range received {
			l.Traffic = append(l.Traffic, Traffic{RxBytes: n})
		}
		return l
	}
	before := []Light{at(1e9, 100, 50), at(1e9, 0)}
	after := []Light{at(15e8, 600, 50), at(2e9, 125)}
	if got, ok := Moved(before, after); !ok || got != 8*500/0.5+8*125 {
		t.Errorf("%v bit/s, %v", got, ok)
	}
	for name, after := range map[string][]Light{
		"a node less":         after[:1],
		"no time between":     {at(1e9, 600, 50), at(2e9, 125)},
		"a device less":       {at(15e8, 600), at(2e9, 125)},
		"a device made anew":  {at(15e8, 99, 50), at(2e9, 125)},
		"readings of no node": nil,
	} {
		b := before
		if after == nil {
			b = nil
		}
		if got, ok := Moved(b, after); ok {
			t.Errorf("%s: %v bit/s", name, got)
		}
	}
}
