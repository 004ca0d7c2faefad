package main

import (
	"strings"
	"testing"

	"windtunnel/vrouter/model"
)

// An error of a state file is the model's error with the line and a caret below
// the column.
func TestErrorsOfAStateFileShowTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"networks:\n  - name: red\n    subnet: [10.0.0.0/24]\n": "    3 |     subnet: [10.0.0.0/24]\n      |     ^",
		"networks:\n  - {name: a, id: seven}\n":                 "    2 |   - {name: a, id: seven}\n      |                   ^",
		"nodes:\n\t- name: a\n":                                 "    2 |  - name: a\n      | ^",
		"hello\r\n":                                             "    1 | hello\n      | ^",
		"nodes:\n  - {name: a, underlay: [192.0.2.300]}\n":      "    2 |   - {name: a, underlay: [192.0.2.300]}\n      |                          ^",
	} {
		_, err := model.Parse("s.yaml", []byte(text))
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if got := withSourceLine("s.yaml", text, err).Error(); got != err.Error()+"\n"+want {
			t.Errorf("%q:\n%s\nwant\n%s\n%s", text, got, err, want)
		}
	}
}

// A quoted word that occurs several times in the file does not give the position.
// No position is better than a wrong one.
func TestAnErrorWithoutAPositionShowsNoLine(t *testing.T) {
	text := "nodes:\n  - {name: a, underlay: [192.0.2.300]}\n  - {name: b, underlay: [192.0.2.300]}\n"
	_, err := model.Parse("s.yaml", []byte(text))
	if err == nil {
		t.Fatal("the state is taken")
	}
	if got := withSourceLine("s.yaml", text, err).Error(); got != err.Error() || strings.Contains(got, "|") {
		t.Errorf("%q, want it as it is: %q", got, err)
	}
}

func FuzzWithSourceLine(f *testing.F) {
	for _, text := range []string{"a", "nodes: [", "networks:\n\t- x", "ports: {a: 1}", "\xff\xfe", "nodes:\n  - name: 网络\n    x: 1", "%", "a: &b c", "settings: {vxlan_port: 1e9}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := model.Parse("s.yaml", []byte(text))
		if err == nil {
			return
		}
		if got := withSourceLine("s.yaml", text, err).Error(); !strings.HasPrefix(got, "s.yaml:") {
			t.Errorf("%q: %q does not begin with the file's name", text, got)
		}
	})
}
