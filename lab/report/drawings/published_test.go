package drawings

import (
	"strings"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/lab/report/reporttest"
)

func TestThePageHasPublishedFiguresAndHowToRepeatEveryScenario(t *testing.T) {
	r := reporttest.Quick()
	r.Run.Short = true
	text := string(written(t, r))
	must.Equal(t, 8, strings.Count(text, `<details class="byhand">`))
	for _, want := range []string{
		"windtunnel lab up quick --scenario raw/stream\n", "windtunnel lab exec quick b1 -- windtunnel ntttcp -r", "windtunnel lab down quick\n",
		`id="h-published-beside-measured"`, ", short form, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}
