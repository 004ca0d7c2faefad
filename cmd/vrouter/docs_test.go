package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"windtunnel/internal/must"
	"windtunnel/vrouter/agent/config"
	"windtunnel/vrouter/datapath"
	"windtunnel/vrouter/model"
)

const handbook = "../../docs/vrouter.md"

// section returns the handbook's text between a heading and the next heading of the
// same level.
func section(t *testing.T, heading string) string {
	t.Helper()
	text := must.Get(os.ReadFile(handbook))(t)
	_, rest, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", handbook, heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	body, _, _ := strings.Cut(rest, "\n"+level+" ")
	return body
}

// blocks returns the fenced blocks of a language in a section.
func blocks(text, language string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestTheHandbookExplainsEveryDropReason(t *testing.T) {
	_, table, _ := strings.Cut(section(t, "## Operating"), "### Drop reasons")
	explains(t, table, datapath.Reasons()[1:])
}

func TestTheHandbookExplainsEveryFallback(t *testing.T) {
	explains(t, section(t, "### Packets that direct cannot carry"), datapath.FallbackReasons()[1:])
}

// explains checks that a table of the handbook has a line for each reason, and no other lines.
func explains(t *testing.T, table string, reasons []datapath.Reason) {
	t.Helper()
	for _, r := range reasons {
		if !strings.Contains(table, "\n| `"+r.Name+"` | "+r.Meaning+" | ") {
			t.Errorf("there is no line for %s: %s", r.Name, r.Meaning)
		}
	}
	if got := strings.Count(table, "\n| `"); got != len(reasons) || got == 0 {
		t.Errorf("the table in docs/vrouter.md has %d reasons, the data path has %d", got, len(reasons))
	}
}

// keys collects the YAML keys of a type and of its fields.
func keys(of reflect.Type, into map[string]bool) {
	switch of.Kind() {
	case reflect.Slice, reflect.Pointer:
		keys(of.Elem(), into)
	case reflect.Struct:
		for i := range of.NumField() {
			f := of.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "" && name != "-" {
				into[name] = true
				keys(f.Type, into)
			}
		}
	}
}

func TestTheHandbookExplainsEveryKey(t *testing.T) {
	for heading, of := range map[string]reflect.Type{
		"## Node configuration": reflect.TypeFor[config.Config](),
		"## Desired state":      reflect.TypeFor[model.State](),
	} {
		text, all := section(t, heading), map[string]bool{}
		keys(of, all)
		if len(all) < 20 {
			t.Fatalf("%s: only the keys %v were found", heading, all)
		}
		for key := range all {
			if !strings.Contains(text, "\n| `"+key+"` | ") && !strings.Contains(text, "\n### "+key) {
				t.Errorf("%q does not explain %s", heading, key)
			}
		}
	}
}

// The examples together are one valid state that uses every key.
func TestTheExamplesInTheHandbookAreAValidState(t *testing.T) {
	text := strings.Join(blocks(section(t, "## Desired state"), "yaml"), "")
	state := must.Get(model.Parse("examples", []byte(text)))(t)
	must.Succeed(t, state.Validate())
	all := map[string]bool{}
	keys(reflect.TypeFor[model.State](), all)
	delete(all, "any_source") // insecure: no example shows it
	for key := range all {
		if !regexp.MustCompile(`\b` + key + `:`).MatchString(text) {
			t.Errorf("no example has %s", key)
		}
	}
}

func TestTheConfigurationInTheHandbookIsValid(t *testing.T) {
	for _, text := range blocks(section(t, "## Node configuration"), "yaml") {
		var c config.Config
		if err := yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict()); err != nil || c.Node != "rack3-a" || c.Limits.Routes != 1000000 {
			t.Errorf("the configuration is %+v (%v), want node rack3-a with 1,000,000 routes", c, err)
		}
	}
}

func TestTheHandbookNamesEveryCommand(t *testing.T) {
	text := section(t, "## Commands")
	for _, c := range root().Commands() {
		if !c.Hidden && c.Name() != "help" && !strings.Contains(text, "\nvrouter "+c.Name()+" ") {
			t.Errorf("`vrouter %s` is not there", c.Name())
		}
	}
}

// The files, functions and constants in docs/datapath.md exist.
func TestTheNamesInTheDataPathsDocumentExist(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/datapath.md"))(t)
	sources := readSources(t, "../../vrouter")
	all := strings.Join(slices.Collect(maps.Values(sources)), "\n")
	words := map[string]bool{"XDP_PASS": true} // a call ends with a bracket
	for _, word := range regexp.MustCompile(`\w+\(?`).FindAllString(all, -1) {
		words[word], words[strings.TrimSuffix(word, "(")] = true, true
	}
	for _, what := range []struct{ named, end string }{
		{"`([a-z_/]+\\.(?:h|c|go))`", "file"},
		{"`([A-Za-z0-9_]+)\\(\\)`", "("},
		{"`([A-Z][A-Z_0-9]+)`", ""},
		{"`(bpf_[a-z_]+)`", "("},
	} {
		found := regexp.MustCompile(what.named).FindAllStringSubmatch(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s: only %v", what.named, found)
		}
		for _, m := range found {
			if what.end == "file" && !hasFile(sources, m[1]) || what.end != "file" && !words[m[1]+what.end] {
				t.Errorf("there is no %s", m[0])
			}
		}
	}
}

// readSources reads the C and Go files below a directory, by path.
func readSources(t *testing.T, dir string) map[string]string {
	t.Helper()
	sources := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".h", ".c", ".go"}, filepath.Ext(path)) {
			return err
		}
		text, err := os.ReadFile(path)
		sources[path] = string(text)
		return err
	})
	must.Succeed(t, err)
	return sources
}

func hasFile(sources map[string]string, name string) bool {
	for path := range sources {
		if strings.HasSuffix(path, "/"+name) {
			return true
		}
	}
	return false
}

// docs/security.md names every test in vrouter/e2e/attack*_test.go, and only tests that
// exist.
func TestTheTableOfAttacksNamesEveryTest(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/security.md"))(t)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	files, err := filepath.Glob("../../vrouter/e2e/attack*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("find vrouter/e2e/attack*_test.go: %d files, error %v", len(files), err)
	}
	for _, file := range files {
		code := must.Get(os.ReadFile(file))(t)
		for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(`).FindAllStringSubmatch(string(code), -1) {
			if !named[m[1]] {
				t.Errorf("docs/security.md has no row for %s of %s", m[1], filepath.Base(file))
			}
		}
	}
	sources := strings.Join(slices.Concat(slices.Collect(maps.Values(readSources(t, "../../vrouter"))), slices.Collect(maps.Values(readSources(t, "../../internal")))), "\n")
	for name := range named {
		if !strings.Contains(sources, "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("docs/security.md names %s, but there is no such test", name)
		}
	}
}
