package phrase

import (
	"os/exec"
	"strings"
	"testing"

	"windtunnel/internal/must"
)

func TestCountsListsAndNames(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0, "trial"), "0 trials"}, {Count(1, "trial"), "1 trial"}, {Count(7, "trial"), "7 trials"}, {Count(2, "policy"), "2 policies"}, {Count(2, "gateway"), "2 gateways"},
		{And(nil), ""}, {And([]string{"a"}), "a"}, {And([]string{"a", "b"}), "a and b"}, {And([]string{"a", "b", "c"}), "a, b and c"},
		{Some([]string{"a", "b"}, 2), "a, b"}, {Some([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
		{Capital("the bridge"), "The bridge"}, {Capital("µs"), "Μs"}, {Capital(""), ""},
		{Clip(strings.Repeat("ö", 61)), strings.Repeat("ö", 60) + "…"}, {Clip("short"), "short"},
		{Printable("a\x1b[31m\n\u202eb – µ"), "a\uFFFD[31m \uFFFDb – µ"},
	} {
		must.Equal(t, c.want, c.got)
	}
}

func TestGroupsKeepTheOrderAndEachTextOnce(t *testing.T) {
	var g Groups
	for _, add := range [][2]string{{"b", "1"}, {"a", "2"}, {"b", "3"}, {"b", "1"}} {
		g.Add(add[0], add[1])
	}
	var got Lines
	for key, texts := range g.All() {
		got.Say("%s: %s", key, strings.Join(texts, " "))
	}
	got.SayIf(len(g.Of("c")) > 0, "c")
	must.Equal(t, (Lines{"b: 1 3", "a: 2"}), got)
}

func TestTheNearestNameIsSuggested(t *testing.T) {
	known := []string{"Blue", "green", "red", "reed"}
	for given, want := range map[string]string{
		"rde": "red", "RED": "red", "gren": "green", "bleu": "Blue", "rred": "red", "yellow": "", "": "", strings.Repeat("red", 40): "",
	} {
		if got := Nearest(given, known); got != want {
			t.Errorf("%.20q: %q, want %q", given, got, want)
		}
	}
}

func TestWithoutASimilarNameTenAreListed(t *testing.T) {
	for _, c := range []struct {
		known []string
		want  string
	}{
		{nil, "there are no networks"},
		{[]string{"red", "blue"}, "networks: red, blue"},
		{[]string{"red", "zeros"}, `did you mean "zeros"?`},
		{strings.Split("abcdefghijklm", ""), "networks: a, b, c, d, e, f, g, h, i, j and 3 more"},
	} {
		must.Equal(t, c.want, Meant("networks", "zero", c.known))
	}
}

func TestDistanceCountsEditsAndSwappedNeighbours(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "badc", 2}, {"flaw", "lawn", 2}, {"föö", "foo", 2}} {
		if got, back := Distance(c.a, c.b), Distance(c.b, c.a); got != c.want || back != c.want {
			t.Errorf("between %q and %q: %d and %d, want %d", c.a, c.b, got, back, c.want)
		}
	}
}

func TestShellSplitsTheLineIntoTheSameWords(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not installed")
	}
	argv := []string{"a b", "", "it's", `"$HOME"`, "-m", "1,0,10.0.0.2", "`id`", "*", "x;y", "\\", "#c", "~", "ü"}
	out := must.Get(exec.Command(sh, "-c", "printf '%s\\0' "+Shell(argv)).Output())(t)
	must.Equal(t, argv, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"))
	must.Equal(t, "windtunnel -m 1,0,10.0.0.2", Shell([]string{"windtunnel", "-m", "1,0,10.0.0.2"}))
}
