package testbed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"windtunnel/internal/must"
	"windtunnel/lab/probe"
)

func TestALayoutIsReadAsWritten(t *testing.T) {
	for text, want := range map[string]Layout{
		"a=0,b=1":                     {Nodes: [][]int{{0}, {1}}},
		"a=0,2,b=1,3":                 {Nodes: [][]int{{0, 2}, {1, 3}}},
		"wire=7,a=0-2,b=3-5,engine=6": {Nodes: [][]int{{0, 1, 2}, {3, 4, 5}}, Wire: []int{7}, Engine: []int{6}},
		"a=0,b=1,c=2":                 {Nodes: [][]int{{0}, {1}, {2}}},
	} {
		got, err := ParseLayout(text, count(8), probe.ParseCPUList)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the layout %s differs: %s", text, d)
		}
	}
}

func TestAnImpossibleLayoutIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		"":               "has no name",
		"0,1":            "has no name",
		"a=0":            "1 of 2 nodes",
		"a=0,b=0":        "CPU 0 belongs to a and b",
		"a=0,b=9":        "CPU 9 is not usable",
		"a=0,b=x":        `"x" is not a list`,
		"a=0,b=":         `"" is not a list`,
		"a=0,c=1":        `"c" is neither wire, engine nor the next node, b`,
		"a=0-1,b=2":      "2 and 1 CPUs",
		"a=0,b=1,wire=1": "CPU 1 belongs to b and wire",
	} {
		_, err := ParseLayout(text, count(8), probe.ParseCPUList)
		must.Fail(t, err, why)
	}
}
