package main

import (
	"strings"
	"testing"

	"windtunnel/vrouter/model"
)

// An error of a state file names the place, shows the line, and speaks of the
// file, not of Go.
func TestErrorsOfAStateFileShowTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"networks:\n  - name: red\n    subnet: [10.0.0.0/24]\n": "s.yaml:3:5: unknown field \"subnet\"\n    3 |     subnet: [10.0.0.0/24]\n      |     ^",
		"networks:\n  - {name: a, id: seven}\n":                 "s.yaml:2:19: a number belongs here, not \"seven\"\n    2 |   - {name: a, id: seven}\n      |                   ^",
		"settings: {any_source: maybe}":                         "s.yaml:1:24: true or false belongs here, not \"maybe\"\n    1 | settings: {any_source: maybe}\n      |                        ^",
		"settings: {vxlan_port: 99999}":                         "s.yaml:1:24: 99999 is too large a number here\n    1 | settings: {vxlan_port: 99999}\n      |                        ^",
		"nodes:\n  name: a\n":                                   "s.yaml:2:7: a list belongs here, such as [a, b]\n    2 |   name: a\n      |       ^",
		"hello\r\n":                                             "s.yaml:1:1: fields belong here, such as name: a\n    1 | hello\n      | ^",
		"nodes:\n  - {name: a, underlay: [192.0.2.300]}\n":      "s.yaml:2:26: \"192.0.2.300\" is no IP address: IPv4 field has value >255\n    2 |   - {name: a, underlay: [192.0.2.300]}\n      |                          ^",
	} {
		_, err := model.Parse("s.yaml", []byte(text))
		if err == nil {
			t.Errorf("%q is taken", text)
			continue
		}
		if got := shown("s.yaml", text, err).Error(); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", text, got, want)
		}
	}
}

// A quoted word that stands several times in the file says nothing about the
// place: none is better than a wrong one.
func TestAnErrorWithoutAPlaceNamesNone(t *testing.T) {
	text := "nodes:\n  - {name: a, underlay: [192.0.2.300]}\n  - {name: b, underlay: [192.0.2.300]}\n"
	_, err := model.Parse("s.yaml", []byte(text))
	if err == nil {
		t.Fatal("the state is taken")
	}
	if got, want := shown("s.yaml", text, err).Error(), "s.yaml: \"192.0.2.300\" is no IP address: IPv4 field has value >255"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzShown(f *testing.F) {
	for _, text := range []string{"a", "nodes: [", "networks:\n\t- x", "ports: {a: 1}", "\xff\xfe", "nodes:\n  - name: 网络\n    x: 1", "%", "a: &b c", "settings: {vxlan_port: 1e9}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := model.Parse("s.yaml", []byte(text))
		if err == nil {
			return
		}
		if got := shown("s.yaml", text, err).Error(); !strings.HasPrefix(got, "s.yaml:") {
			t.Errorf("%q: %q does not begin with the file's name", text, got)
		}
	})
}
