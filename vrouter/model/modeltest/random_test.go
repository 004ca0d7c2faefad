package modeltest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"

	"windtunnel/internal/must"
	"windtunnel/vrouter/model"
)

func TestRandomStatesAreValidAndSoAreTheirMutations(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := Random(r, int(seed%40))
		if err := s.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range 30 {
			before := clone(s)
			next := Mutate(r, s)
			if !reflect.DeepEqual(before, s) {
				t.Fatalf("seed %d, mutation %d changed the state that it was given", seed, i)
			}
			if reflect.DeepEqual(next, s) {
				t.Fatalf("seed %d, mutation %d changed nothing", seed, i)
			}
			if err := next.Validate(); err != nil {
				t.Fatalf("seed %d, mutation %d: %v", seed, i, err)
			}
			s = next
		}
	}
}

func TestTheSameSeedMakesTheSameState(t *testing.T) {
	a, b := Random(rand.New(rand.NewPCG(7, 7)), 30), Random(rand.New(rand.NewPCG(7, 7)), 30)
	if !reflect.DeepEqual(a, b) {
		t.Error("two states of one seed differ")
	}
}

func TestRandomStatesHaveEveryKindOfObject(t *testing.T) {
	var routes, ecmp, discards, gateways, policies, ports int
	for seed := range uint64(100) {
		s := Random(rand.New(rand.NewPCG(seed, 2)), 30)
		ports += len(s.Ports)
		gateways += len(s.Gateways)
		policies += len(s.Policies)
		for _, r := range s.Routes {
			routes++
			if len(r.Via) > 1 {
				ecmp++
			}
			if r.Discard {
				discards++
			}
		}
	}
	if ports < 2000 || routes < 100 || ecmp < 30 || discards < 10 || gateways < 30 || policies < 50 {
		t.Errorf("in 100 states: %d ports, %d routes (%d ECMP, %d discard), %d gateways, %d policies; too few to prove anything", ports, routes, ecmp, discards, gateways, policies)
	}
}

func TestRandomStatesAreReadAsTheyWereWritten(t *testing.T) {
	for seed := range uint64(60) {
		s := Random(rand.New(rand.NewPCG(seed, 8)), 20)
		text := must.Get(json.Marshal(s))(t)
		var indented bytes.Buffer
		must.Succeed(t, json.Indent(&indented, text, "", " "))
		// JSON with a comment is YAML: the other reader.
		for kind, text := range map[string][]byte{"JSON": text, "YAML": append([]byte("# a fleet\n"), indented.Bytes()...)} {
			got, err := model.Parse(kind, text)
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			again := must.Get(json.Marshal(got))(t)
			want, _ := json.Marshal(s)
			if !bytes.Equal(empty(again), empty(want)) {
				t.Fatalf("seed %d: %s gives\n%s\nwant\n%s", seed, kind, again, want)
			}
		}
	}
}

// empty writes lists of nothing as none.
func empty(text []byte) []byte { return bytes.ReplaceAll(text, []byte("[]"), []byte("null")) }
