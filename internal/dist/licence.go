package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence is the licence of a module.
type licence struct {
	ids   []string // SPDX identifiers, of the texts that are known
	texts []string // of the files LICENSE, COPYING and NOTICE
}

// The licence of the programs, and the module under which the licence of Go's standard
// library is kept.
const (
	ownLicence = "Apache-2.0"
	standard   = "std"
)

var licenceFile = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)([-._].*)?$`)

// findLicences reads the licences of all modules in products for an architecture.
func (r *release) findLicences(ctx context.Context, arch string, list []product) error {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}"}
	for _, p := range list {
		args = append(args, "./cmd/"+p.name)
		if p.helper != "" {
			args = append(args, p.helper)
		}
	}
	out, err := r.goTool(ctx, arch, args...)
	if err != nil {
		return fmt.Errorf("list the modules: %w", err)
	}
	root, err := r.goTool(ctx, arch, "env", "GOROOT")
	if err != nil {
		return err
	}
	for line := range strings.Lines(standard + "\t" + root + out) {
		path, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if _, done := r.licences[path]; done || !found {
			continue
		}
		if r.licences[path], err = readLicence(dir); err != nil {
			return fmt.Errorf("read the licence of %s: %w", path, err)
		}
	}
	return nil
}

// readLicence reads the licence in a module's folder.
func readLicence(dir string) (licence, error) {
	var l licence
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return l, err
		}
		l.texts = append(l.texts, string(text))
		for _, id := range identify(string(text)) {
			if !slices.Contains(l.ids, id) {
				l.ids = append(l.ids, id)
			}
		}
	}
	return l, nil
}

// copyright returns the file with the licences of a product's programs and of all their modules. Equal texts
// are printed once.
func (r *release) copyright(p product, b binary) ([]byte, error) {
	own, err := os.ReadFile(filepath.Join(r.tree, "LICENSE"))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s has the licence %s, whose text follows. vrouter's eBPF programs have the\nlicence GPL-2.0-only OR BSD-2-Clause.\n\n%s\n", p.name, ownLicence, tidy(string(own)))
	for _, notice := range p.notices {
		text, err := os.ReadFile(filepath.Join(r.tree, notice))
		if err != nil {
			return nil, err
		}
		chapter(&out, []string{filepath.Base(notice)}, string(text))
	}
	var order []string // texts, in the order of the first module that has them
	users := map[string][]string{}
	for _, m := range append([]module{{path: "Go's standard library", version: b.goVersion, key: standard}}, append(slices.Clip(b.modules), b.shipped...)...) {
		title := m.path + " " + m.version
		texts := r.licences[m.key].texts
		if len(texts) == 0 {
			texts = []string{"The module has no file with a licence.\n"}
		}
		for _, text := range texts {
			if users[text] == nil {
				order = append(order, text)
			}
			users[text] = append(users[text], title)
		}
	}
	for _, text := range order {
		chapter(&out, users[text], text)
	}
	return out.Bytes(), nil
}

// chapter prints a licence after the parts that have it.
func chapter(out *bytes.Buffer, parts []string, text string) {
	fmt.Fprintf(out, "%s\n%s\n\n%s\n", strings.Repeat("-", 72), strings.Join(parts, "\n"), tidy(text))
}

// tidy removes carriage returns, and blank lines at both ends.
func tidy(text string) string {
	return strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n") + "\n"
}
