package system

import (
	"strings"
	"testing"

	"windtunnel/internal/guide"
	"windtunnel/internal/must"
)

func TestTheDocumentedSystemsPassTheTestsOfAllSystems(t *testing.T) {
	must.Long(t)
	files := guide.Files(t, "../..", "docs/adding-a-system.md")
	if len(files) != 5 { // two systems, the registry, and two files of the probe
		t.Fatalf("the page makes %d files, want 5", len(files))
	}
	files["lab/system/documented_test.go"] = `package system

import "testing"

func TestTheDocumentedSystemsAreRegistered(t *testing.T) {
	for _, name := range []string{"ipvlan", "socat"} {
		if _, err := ByName(name); err != nil {
			t.Error(err)
		}
	}
}
`
	guide.Run(t, "../..", files, "vet", "./lab/system", "./lab/probe")
	out := guide.Run(t, "../..", files, "test", "-short", "-v", "./lab/probe", "./lab/system", "-run", "^TestTheDocumentedSystemsAre|^TestEverySystem|^TestMissingFeatures")
	for _, name := range []string{"TheDocumentedSystemsAreRegistered", "EverySystemIsFoundByItsOneName", "MissingFeaturesHaveAReasonAndARemedy"} {
		if !strings.Contains(out, "--- PASS: Test"+name) {
			t.Errorf("Test%s did not run:\n%s", name, out)
		}
	}
}
