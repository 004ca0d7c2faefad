package main

import (
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// bill is the part of CycloneDX 1.6 that the release writes, as its JSON schema names it.
type bill struct {
	Schema      string `json:"$schema"`
	BOMFormat   string `json:"bomFormat"`
	SpecVersion string `json:"specVersion"`
	Version     int    `json:"version"`
	Metadata    struct {
		Timestamp time.Time     `json:"timestamp"`
		Component billComponent `json:"component"`
		Tools     struct {
			Components []billComponent `json:"components"`
		} `json:"tools"`
	} `json:"metadata"`
	Components   []billComponent `json:"components"`
	Dependencies []struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn"`
	} `json:"dependencies"`
}

type billComponent struct {
	BOMRef  string `json:"bom-ref"`
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Scope   string `json:"scope"`
	PURL    string `json:"purl"`
	Hashes  []struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	} `json:"hashes"`
	Licenses []struct {
		License struct {
			ID string `json:"id"`
		} `json:"license"`
	} `json:"licenses"`
	Properties []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"properties"`
}

func readBill(t *testing.T, path string) bill {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	var b bill
	if err := d.Decode(&b); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

// The identifiers of SPDX that the schema allows have these characters.
var spdxID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+-]*$`)

// Each list has exactly the modules that `go version -m` prints for the program, with their
// versions and sums, and Go's standard library.
func TestTheBillOfMaterialsListsTheModulesOfTheProgram(t *testing.T) {
	need(t, "go")
	for _, p := range products {
		for _, arch := range supported {
			path := artifact(t, p.name, "linux_"+arch)
			b := readBill(t, path+".cdx.json")
			if b.BOMFormat != "CycloneDX" || b.SpecVersion != "1.6" || b.Version != 1 || b.Metadata.Timestamp.IsZero() || !strings.Contains(b.Schema, "bom-1.6") {
				t.Errorf("%s: %q %q, version %d, time %v", path, b.BOMFormat, b.SpecVersion, b.Version, b.Metadata.Timestamp)
			}
			own := b.Metadata.Component
			if own.Type != "application" || own.Name != p.name || !strings.Contains(path, "_"+own.Version+"_") || len(own.Hashes) != 1 || own.Hashes[0].Alg != "SHA-256" || own.Hashes[0].Content != digest(t, path) {
				t.Errorf("%s describes %+v", path, own)
			}
			got, refs := map[string]string{}, []string{}
			unknown := 0
			for _, c := range b.Components {
				if c.Type != "library" || c.Name == "" || c.Version == "" || c.Scope != "required" || !strings.HasPrefix(c.PURL, "pkg:golang/"+c.Name+"@") || c.BOMRef == "" {
					t.Errorf("%s: component %+v", path, c)
				}
				for _, l := range c.Licenses {
					if !spdxID.MatchString(l.License.ID) {
						t.Errorf("%s: the licence of %s is %q, which is no identifier of SPDX", path, c.Name, l.License.ID)
					}
				}
				if len(c.Licenses) == 0 {
					unknown++
					t.Logf("the licence of %s is unknown", c.Name)
				}
				sum := ""
				for _, property := range c.Properties {
					if property.Name == sumProperty {
						sum = property.Value
					}
				}
				if _, twice := got[c.Name]; twice {
					t.Errorf("%s names %s twice", path, c.Name)
				}
				got[c.Name] = c.Version + " " + sum
				refs = append(refs, c.BOMRef)
			}
			if unknown > len(b.Components)/20 {
				t.Errorf("%s: the licences of %d modules are unknown", path, unknown)
			}
			if d := cmp.Diff(modulesOf(t, path), got); d != "" {
				t.Errorf("%s: the modules of the program (-) and of the list (+): %s", path, d)
			}
			if len(b.Dependencies) != 1 || b.Dependencies[0].Ref != own.BOMRef || !cmp.Equal(b.Dependencies[0].DependsOn, refs) {
				t.Errorf("%s: dependencies %+v, want all components below %s", path, b.Dependencies, own.BOMRef)
			}
		}
	}
}

// modulesOf reads the modules of a program as the go command prints them.
func modulesOf(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{"std": strings.TrimPrefix(runtime.Version(), "go") + " "}
	last := ""
	for line := range strings.Lines(output(t, "go", "version", "-m", path)) {
		f := append(strings.Fields(line), "", "")
		switch f[0] {
		case "dep":
			last = f[1]
			all[last] = f[2] + " " + f[3]
		case "=>":
			delete(all, last)
			all[f[1]] = f[2] + " " + f[3]
		}
	}
	return all
}

// The package carries the licence of every module that the program contains.
func TestThePackageHasAllLicences(t *testing.T) {
	for _, p := range products {
		text, err := os.ReadFile(unpacked(t, p.name, "amd64") + "/usr/share/doc/" + p.name + "/copyright")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range readBill(t, artifact(t, p.name, "linux_amd64")+".cdx.json").Components {
			if c.Name != "std" && !strings.Contains(string(text), "\n"+c.Name+" "+c.Version+"\n") {
				t.Errorf("the licences of %s do not name %s %s", p.name, c.Name, c.Version)
			}
		}
		for _, part := range []string{"Apache License", "Go's standard library go", "Copyright 2009 The Go Authors"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("the licences of %s lack %q", p.name, part)
			}
		}
		if strings.Contains(string(text), "NOTICE.echarts") != (p.name == "windtunnel") {
			t.Errorf("the licences of %s: ECharts is part of windtunnel only", p.name)
		}
	}
}
