package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// completions are the places where shells look for completions.
var completions = map[string]string{
	"bash": "/usr/share/bash-completion/completions/%s",
	"fish": "/usr/share/fish/vendor_completions.d/%s.fish",
	"zsh":  "/usr/share/zsh/vendor-completions/_%s",
}

// askVersion reads a program's version.
func (r *release) askVersion(ctx context.Context, p product) error {
	out, err := r.native(ctx, p.name, "version")
	if err != nil {
		return err
	}
	version, found := strings.CutSuffix(strings.TrimSpace(string(out)), " ("+r.revision+")")
	if !found {
		return fmt.Errorf("%s version prints %q, want the revision %s", p.name, out, r.revision)
	}
	r.versions[p.name] = version[strings.LastIndex(version, " ")+1:]
	return nil
}

// document lets a program write its manual pages and completions, and reads its version.
func (r *release) document(ctx context.Context, p product) error {
	if err := r.askVersion(ctx, p); err != nil {
		return err
	}
	dir := filepath.Join(r.stage, "papers", p.name)
	pages := filepath.Join(dir, "man")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := r.native(ctx, p.name, "man", pages); err != nil {
		return err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return err
		}
		packed, err := compress(text)
		if err != nil {
			return err
		}
		if err := r.paper(p, filepath.Join(dir, e.Name()+".gz"), "/usr/share/man/man1/"+e.Name()+".gz", packed); err != nil {
			return err
		}
	}
	for shell, place := range completions {
		text, err := r.native(ctx, p.name, "completion", shell)
		if err != nil {
			return err
		}
		if err := r.paper(p, filepath.Join(dir, shell), fmt.Sprintf(place, p.name), text); err != nil {
			return err
		}
	}
	return nil
}

// paper writes a document to path. The package installs it at place.
func (r *release) paper(p product, path, place string, text []byte) error {
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	r.papers[p.name] = append(r.papers[p.name], file{path, place, 0o644, plain})
	return nil
}

// compress compresses a text as `gzip -9n` does: without a name and a time.
func compress(text []byte) ([]byte, error) {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}
