package tool

import (
	"slices"
	"testing"

	"windtunnel/internal/must"
)

func TestEveryToolIsFoundByItsOwnName(t *testing.T) {
	if len(Registry()) == 0 {
		t.Fatal("the registry is empty")
	}
	seen := map[string]bool{}
	for _, want := range Registry() {
		name := want.Name()
		if seen[name] {
			t.Errorf("two tools are called %s", name)
		}
		seen[name] = true
		if got, ok := ByName(name); !ok || got != want {
			t.Errorf("ByName(%q) is %v, %v", name, got, ok)
		}
		if !slices.Contains(Names(), name) {
			t.Errorf("Names lacks %s", name)
		}
		for _, p := range want.Programs() {
			if p.Name == "" || p.Remedy() == "" || len(p.Version) == 0 || p.Version[0] != p.Name {
				t.Errorf("%s needs %+v: name, package and version command are wanted", name, p)
			}
		}
	}
	must.Equal(t, len(Registry()), len(Names()))
	if got, ok := ByName("telepathy"); ok {
		t.Errorf("ByName knows %v", got)
	}
}
