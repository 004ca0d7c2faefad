package main

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"windtunnel/vrouter/model"
)

func TestTheEmptyStateIsAnEmptyDocument(t *testing.T) {
	text, err := stateYAML(model.State{})
	if err != nil || string(text) != "{}\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// `vrouter state | vrouter apply -f -` changes nothing, for any names.
func TestAStateSurvivesItsYAML(t *testing.T) {
	for _, name := range []string{"red", "true", "~", "0x1f", "1e3", "12", "a: b", "- a", "#x", "a #b", "网络", "\"", "'", "a\nb", "yes", "null", "192.0.2.1", "::1", "*a", "&a", "!x", "%", "@", "`"} {
		state := model.State{
			Networks: []model.Network{{Name: name, ID: 1, Policies: []string{name, name}}},
			Policies: []model.Policy{{Name: name, Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny, Ports: "80"}}}, {Name: "empty"}},
		}
		text, err := stateYAML(state)
		if err != nil {
			t.Fatal(err)
		}
		var back model.State
		if err := yaml.UnmarshalWithOptions(text, &back, yaml.Strict()); err != nil {
			t.Errorf("%q:\n%s%v", name, text, err)
			continue
		}
		if got, want := asText(t, back), asText(t, state); got != want {
			t.Errorf("%q came back as %s, was %s; as YAML\n%s", name, got, want, text)
		}
	}
}

// asText returns a state as JSON. Nil and empty lists are equal.
func asText(t *testing.T, s model.State) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "null", "[]")
}

func FuzzScalar(f *testing.F) {
	for _, s := range []string{"a", "true", "1", "0o7", "1.5", ".inf", "2026-01-01", "a: b", "a,b", "[", "\t", " a", "a ", "=", "<<", "\u2028", "\x7f", "--- a"} {
		f.Add(s)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		f.Add(string([]rune{rune(random.IntN(128)), rune(random.IntN(128)), rune(random.IntN(128))}))
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) || s == "" { // JSON is UTF-8
			return
		}
		var back map[string]any
		text := "a: " + scalar(s) + "\nb: [" + scalar(s) + ", x]\n"
		if err := yaml.Unmarshal([]byte(text), &back); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if back["a"] != s || back["b"].([]any)[0] != s {
			t.Errorf("%q came back as %#v", s, back)
		}
	})
}
