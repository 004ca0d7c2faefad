package traffic

import (
	"testing"

	"windtunnel/internal/must"
)

func TestTheLongestSilenceIsOfTheWindowOnly(t *testing.T) {
	w := worker{stage: &stage{}, seen: warming}
	w.heard()
	if w.silence != (silence{}) {
		t.Errorf("an arrival before the window counts: %+v", w.silence)
	}
	s := silence{last: 100}
	for _, at := range []int64{110, 150, 155} {
		s.ends(at)
	}
	must.Equal(t, 40, s.longest)
	w = worker{stage: &stage{}, seen: measuring, fd: -1, silence: silence{last: now() - 1e9}}
	w.leave()
	if w.silence.longest < 1e9 {
		t.Errorf("the silence until the window's end is left out: %+v", w.silence)
	}
}
