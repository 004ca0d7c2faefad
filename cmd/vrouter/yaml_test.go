package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
	"windtunnel/vrouter/model/modeltest"
)

func TestTheEmptyStateIsAnEmptyDocument(t *testing.T) {
	text, err := stateYAML(model.State{})
	if err != nil || string(text) != "{}\n" {
		t.Errorf("the empty state is %q (%v), want {}", text, err)
	}
}

// `vrouter state | vrouter apply -f -` changes nothing, for any names.
func TestAStateIsReadAsItWasWritten(t *testing.T) {
	for _, name := range []string{"red", "true", "~", "0x1f", "1e3", "12", "a: b", "- a", "#x", "a #b", "网络", "\"", "'", "a\nb", "yes", "null", "192.0.2.1", "::1", "*a", "&a", "!x", "%", "@", "`"} {
		state := model.State{
			Networks: []model.Network{{Name: name, ID: 1, Policies: []string{name, name}}},
			Policies: []model.Policy{{Name: name, Rules: []model.Rule{{Direction: model.Ingress, Action: model.Deny, Ports: "80"}}}, {Name: "empty"}},
		}
		text := must.Get(stateYAML(state))(t)
		var back model.State
		if err := yaml.UnmarshalWithOptions(text, &back, yaml.Strict()); err != nil {
			t.Errorf("read the document of %q again: %v\n%s", name, err, text)
			continue
		}
		if got, want := asText(t, back), asText(t, state); got != want {
			t.Errorf("%q came back as %s, was %s; as YAML\n%s", name, got, want, text)
		}
	}
}

// `vrouter apply` reads what `vrouter state` prints: each field of each object.
func TestApplyReadsEveryStateThatIsPrinted(t *testing.T) {
	random := rand.New(rand.NewPCG(35, 7))
	states := []model.State{{}}
	fill(reflect.ValueOf(&states[0]).Elem(), 1)
	for size := range must.Rounds(60) {
		s := modeltest.Random(random, size)
		for i := range s.Ports {
			s.Ports[i].Origin = []model.Origin{model.Applied, model.Added, model.Docker, model.CNI}[random.IntN(4)]
			if s.Ports[i].Origin != model.Applied {
				s.Ports[i].Owner = fmt.Sprintf("net %d/%x/eth0", i, random.Uint32())
			}
		}
		for i := range s.Networks {
			s.Networks[i].Origin = []model.Origin{model.Applied, model.Docker}[random.IntN(2)]
		}
		states = append(states, s, s.WithDefaults())
	}
	states = append(states, model.State{Ports: []model.Port{}, Gateways: []model.Gateway{{}, {Networks: []model.GatewayNetwork{{}}}}})
	states = append(states, model.State{Ports: slices.Repeat(states[0].Ports, 20_000)})
	for _, s := range states {
		text := must.Get(stateYAML(s))(t)
		back, err := model.Parse("state", text)
		if err != nil {
			t.Fatalf("parse the document again: %v\n%s", err, text)
		}
		if got, want := asText(t, back), asText(t, s); got != want {
			t.Fatalf("the state came back as %s, was %s; as YAML\n%s", got, want, text)
		}
	}
}

// fill sets every field of a value. Lists get two items.
func fill(v reflect.Value, n int) {
	switch x := v.Addr().Interface().(type) {
	case *netip.Addr:
		*x = netip.MustParseAddr(fmt.Sprintf("fd00::%d", n))
		return
	case *netip.Prefix:
		*x = netip.MustParsePrefix(fmt.Sprintf("fd00:%d::/64", n))
		return
	case *netip.AddrPort:
		*x = netip.AddrPortFrom(netip.MustParseAddr("192.0.2.9"), uint16(n))
		return
	case *model.MAC:
		*x = model.MAC{2, 5: byte(n)}
		return
	case *model.RouteTarget:
		*x = model.RouteTarget{0, 2, 0xfc, 7: byte(n)}
		return
	case *model.RouteDistinguisher:
		*x = model.RouteDistinguisher{0, 2, 0, 1, 7: byte(n)}
		return
	case *model.Rate:
		*x = model.Rate(n * 1000)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n+i)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n+1)
	case reflect.String:
		v.SetString(fmt.Sprintf("%d: text", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(n) * int64(time.Second))
	default:
		v.SetUint(uint64(n))
	}
}

// asText returns a state as JSON. Nil and empty lists are equal.
func asText(t *testing.T, s model.State) string {
	t.Helper()
	text := must.Get(json.Marshal(s))(t)
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
		text := "a: " + scalar(reflect.ValueOf(s)) + "\nb: [" + scalar(reflect.ValueOf(s)) + ", x]\n"
		if err := yaml.Unmarshal([]byte(text), &back); err != nil {
			t.Fatalf("read %q again: %v", text, err)
		}
		if back["a"] != s || back["b"].([]any)[0] != s {
			t.Errorf("%q came back as %#v", s, back)
		}
	})
}
