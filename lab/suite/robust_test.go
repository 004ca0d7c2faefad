package suite

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestHostileFilesAreRefusedQuicklyWithAReason(t *testing.T) {
	repeat := func(s string) string { return strings.Repeat(s, MaxFileBytes/len(s)) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for name, c := range map[string]struct{ text, says string }{
		"empty":                  {"", "the file is empty"},
		"blank":                  {" \n\n", "the file is empty"},
		"comments only":          {"# nothing\n", "the file is empty"},
		"document mark only":     {"---\n", "the file is empty"},
		"10 MB":                  {strings.Repeat("# ten bytes\n", 900_000), "the file has 10800000 bytes, at most 1048576 are allowed"},
		"billion laughs":         {bomb, "anchors, aliases and merge keys are not allowed"},
		"alias":                  {"suite: *x\n", "anchors, aliases"},
		"merge key":              {"<<: {suite: x}\n", "anchors, aliases"},
		"tag":                    {"suite: !!str x\n", "tags are not allowed"},
		"directive":              {"%YAML 1.2\n---\nsuite: x\n", "directives are not allowed"},
		"question mark key":      {"? suite\n: x\n", `"? key"`},
		"two documents":          {"suite: x\n---\nsuite: y\n", "a second document"},
		"list":                   {"- suite\n", "the file is a list, not a mapping"},
		"single word":            {"suite\n", "the file is a single value, not a mapping"},
		"brackets without end":   {strings.Repeat("[", 40_000), "nested more than 32 deep"},
		"braces without end":     {strings.Repeat("{a: ", 10_000), "nested more than 32 deep"},
		"dashes without end":     {strings.Repeat("- ", 40_000), "nested more than 32 deep"},
		"questions without end":  {strings.Repeat("? ", 40_000), `"? key"`},
		"a megabyte of brackets": {repeat("- []\n"), "more than 50000 YAML tokens"},
		"a megabyte of keys":     {manyKeys(100_000), "more than 50000 YAML tokens"},
		"deep indentation":       {deep(1400), "indented by more than 200"},
		"deep keys in flow":      {"suite: " + strings.Repeat("{a: {b: ", 5000), "nested more than 32 deep"},
		"not UTF-8":              {"suite: caf\xe9\n", "byte 0xe9 is not UTF-8"},
		"UTF-16":                 {"\xff\xfes\x00u\x00", "byte 0xff is not UTF-8"},
		"NUL":                    {"suite: a\x00b\n", "control character U+0000"},
		"escape":                 {"suite: \x1b[31mred\n", "control character U+001B"},
		"tab indentation":        {"suite: x\nworkloads:\n\tstream: 1\n", "the YAML cannot be read"},
		"bracket never closed":   {"suite: [x\n", "the YAML cannot be read"},
		"two colons":             {"suite: a: b\n", "the YAML cannot be read"},
		"many unknown keys":      {manyKeys(16_000), "there are more errors than these 20"},
		"a key of a megabyte":    {strings.Repeat("k", MaxFileBytes-10) + ": 1\n", "unknown key"},
		"a value of a megabyte":  {"suite: " + strings.Repeat("v", MaxFileBytes-10) + "\n", "cannot be a name"},
		"a scalar over lines":    {"suite: " + repeat("b\n  ")[:MaxFileBytes-10], "cannot be a name"},
		"flow list of 20,000":    {"notes: [" + strings.Repeat("a,", 20_000) + "]\n", "the list has 20000 entries"},
		"quotes never closed":    {"suite: \"" + repeat("b\\n")[:MaxFileBytes-10], "the YAML cannot be read"},
		"a megabyte of comments": {strings.Repeat("#\n", MaxFileBytes/2-10) + "suite: x\n", "lacks workloads, scenarios"},
	} {
		t.Run(name, func(t *testing.T) {
			started := time.Now()
			_, err := Parse("bad.yaml", []byte(c.text))
			took := time.Since(started)
			var es Errors
			if !errors.As(err, &es) || len(es) == 0 {
				t.Fatalf("Parse gave %T %v; want Errors", err, err)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %q does not say %q", clipTest(err.Error()), c.says)
			}
			if n := len(err.Error()); n > 40_000 {
				t.Errorf("the message has %d bytes", n)
			}
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			t.Logf("%v", took)
		})
	}
}

func deep(n int) string {
	var b strings.Builder
	for i := 0; i < n && b.Len() < MaxFileBytes-2*n; i++ {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := 0; i < n && b.Len() < MaxFileBytes-100; i++ {
		fmt.Fprintf(&b, "k%d: %d\n", i, i)
	}
	return b.String()
}

func clipTest(s string) string {
	if len(s) > 600 {
		return s[:600] + "…"
	}
	return s
}
