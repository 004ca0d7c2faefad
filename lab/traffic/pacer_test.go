package traffic

import (
	"testing"

	"windtunnel/internal/must"
)

// granted counts the calls that the pacer lets go without a sleep.
func granted(p *pacer) (n int) {
	for p.due <= float64(now()) {
		p.wait()
		n++
	}
	return n
}

func TestAPacerNeverRunsAheadOfItsRate(t *testing.T) {
	p := pacer{interval: 1e6}
	began := now()
	for calls := 0; calls < 20; {
		if p.wait() {
			calls++
		}
	}
	if took := float64(now() - began); took < 19*p.interval {
		t.Errorf("20 calls, 1 ms apart, took %.1f ms", took/1e6)
	}
}

func TestAPacerMakesUpForAStallWithinItsBacklog(t *testing.T) {
	const late = 1000
	p := pacer{interval: 1e6, backlog: 10 * late * 1e6}
	p.due = float64(now()) - late*p.interval
	if n := granted(&p); n < late {
		t.Errorf("%d calls go at once after a stall of %d intervals", n, late)
	}
}

func TestAPacerGivesUpWhatExceedsItsBacklog(t *testing.T) {
	p := pacer{interval: 60e9}
	p.due = float64(now()) - paceBacklog - 1e9
	must.Equal(t, 1, granted(&p))
}

func TestUnsentBytesOfACallAreDueAtOnce(t *testing.T) {
	p := pacer{interval: 1e9, due: 5e9}
	p.sent(300, 1000)
	must.Equal(t, 5e9-0.7e9, p.due)
	if p.sent(1000, 1000); p.due != 5e9-0.7e9 {
		t.Errorf("after a whole buffer the next call is due at %v", p.due)
	}
}
