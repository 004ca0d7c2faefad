package fib

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"windtunnel/internal/must"
)

func mustGet(t *testing.T, ids *IDs, name string, want uint32) {
	t.Helper()
	if id, ok := ids.get("nexthop", name, 0); !ok || id != want {
		t.Errorf("%q has number %d (%v), want %d", name, id, ok, want)
	}
}

func TestNumbersStayAndTheSmallestFreeOneIsAllocated(t *testing.T) {
	ids := &IDs{}
	mustGet(t, ids, "a", 1)
	mustGet(t, ids, "b", 2)
	mustGet(t, ids, "c", 3)
	mustGet(t, ids, "b", 2)
	if id, _ := ids.get("vif", "z", 0); id != 1 {
		t.Errorf("the first of another kind has number %d", id)
	}
	ids.Prune()
	mustGet(t, ids, "c", 3)
	mustGet(t, ids, "d", 4) // table entries may still refer to a and b
	ids.Prune()
	mustGet(t, ids, "e", 1)
	mustGet(t, ids, "c", 3)
	mustGet(t, ids, "f", 2)
	mustGet(t, ids, "g", 5)
}

func TestNumbersEndAtTheLimit(t *testing.T) {
	ids := &IDs{}
	for _, name := range []string{"a", "b", "c"} {
		if _, ok := ids.get("vif", name, 3); !ok {
			t.Fatalf("there is no number for %q", name)
		}
	}
	if id, ok := ids.get("vif", "d", 3); ok || id != 0 {
		t.Errorf("a fourth of three has number %d", id)
	}
	if id, ok := ids.get("vif", "b", 3); !ok || id != 2 {
		t.Errorf("one that has a number gets %d, %v", id, ok)
	}
	if id, ok := ids.get("vif", "c", 2); ok {
		t.Errorf("after the limit was lowered, number %d is given of none free", id)
	}
	if id, ok := ids.get("vif", "e", 3); !ok || id != 3 {
		t.Errorf("the number that was given back is not given again: %d, %v", id, ok)
	}
}

func TestAChangeOfACloneDoesNotChangeTheOriginal(t *testing.T) {
	ids := &IDs{}
	mustGet(t, ids, "a", 1)
	clone := ids.Clone()
	mustGet(t, clone, "a", 1)
	mustGet(t, clone, "b", 2)
	clone.Prune()
	mustGet(t, ids, "c", 2)
	mustGet(t, clone, "d", 3)
}

func TestNumbersStayAfterARestart(t *testing.T) {
	ids := &IDs{}
	for i, name := range []string{"a", "b", "c"} {
		mustGet(t, ids, name, uint32(i+1))
	}
	ids.Prune()
	mustGet(t, ids, "a", 1)
	mustGet(t, ids, "c", 3)
	ids.Prune()
	text, err := json.Marshal(ids, json.Deterministic(true))
	if want := `{"nexthop":{"a":1,"c":3}}`; err != nil || string(text) != want {
		t.Fatalf("they are written %s, %v; want %s", text, err, want)
	}
	var again IDs
	must.Succeed(t, json.Unmarshal(text, &again))
	mustGet(t, &again, "c", 3)
	mustGet(t, &again, "new", 2)
	mustGet(t, &again, "newer", 4)
	mustGet(t, &again, "a", 1)
}

func TestInvalidNumbersAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"vif":{"a":1,"b":1}}`: `decode the ids of table entries: vif "b" has id 1, which is 0 or used twice`,
		`{"vif":{"a":0}}`:       `decode the ids of table entries: vif "a" has id 0, which is 0 or used twice`,
		`{"vif":{"a":-1}}`:      `decode the ids of table entries: json: cannot unmarshal JSON number -1 into Go uint32 within "/vif/a": invalid syntax`,
	} {
		var ids IDs
		err := ids.UnmarshalJSON([]byte(text))
		// go-json-experiment's errors say "cannot" or "unable to", at random in each process.
		if err == nil || strings.Replace(err.Error(), "unable to", "cannot", 1) != want {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

func FuzzIDs(f *testing.F) {
	for _, text := range []string{`{}`, `{"nexthop":{"a":1,"c":3},"vif":{"z":9}}`, `{"vif":null}`, `{"vif":{"a":4294967295}}`, `[]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var ids, again IDs
		if json.Unmarshal(text, &ids) != nil {
			return
		}
		written := must.Get(json.Marshal(&ids))(t)
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%q was read, and written as %q is not: %v", text, written, err)
		}
		for kind, n := range ids.kinds {
			for name, id := range n.byName {
				if got, ok := again.get(kind, name, 0); !ok || got != id {
					t.Errorf("%s %q had number %d, has %d", kind, name, id, got)
				}
			}
			if id, ok := again.get(kind, "\xffnew", 0); !ok || n.taken[id] {
				t.Errorf("a new %s has number %d, which is taken", kind, id)
			}
		}
	})
}
