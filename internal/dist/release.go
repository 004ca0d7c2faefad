package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// release is one run of dist.
type release struct {
	options
	source
	stage    string             // temporary folder: programs, documents, and the release until it is complete
	versions map[string]string  // of each product, as its program prints it
	papers   map[string][]file  // manual pages and completions of each product
	licences map[string]licence // of each module, by its path in go.mod
}

// begin finds the source, and makes the temporary folder. The caller removes r.stage.
func begin(ctx context.Context, o options) (*release, error) {
	s, err := findSource(ctx, o.root, o.given, o.images != "")
	if err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp("", "windtunnel-dist-")
	if err != nil {
		return nil, err
	}
	return &release{options: o, source: s, stage: stage, versions: map[string]string{}, papers: map[string][]file{}, licences: map[string]licence{}}, nil
}

// run builds a release and returns the names of the files in o.out.
func run(ctx context.Context, o options) ([]string, error) {
	r, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.stage)
	if err := emptyFolder(o.out); err != nil {
		return nil, err
	}
	if err := os.Mkdir(r.ready(), 0o755); err != nil {
		return nil, err
	}
	// The programs of this machine's architecture write the manual pages of all.
	for _, arch := range union(o.architectures, runtime.GOARCH) {
		if err := r.build(ctx, arch, products); err != nil {
			return nil, err
		}
	}
	for _, p := range products {
		if err := r.document(ctx, p); err != nil {
			return nil, err
		}
	}
	for _, arch := range o.architectures {
		if err := r.findLicences(ctx, arch, products); err != nil {
			return nil, err
		}
		for _, p := range products {
			if err := r.publish(p, arch); err != nil {
				return nil, fmt.Errorf("%s for %s: %w", p.name, arch, err)
			}
		}
	}
	names, err := sum(r.ready())
	if err != nil {
		return nil, err
	}
	return names, os.CopyFS(o.out, os.DirFS(r.ready()))
}

// ready is the folder of the release's finished files.
func (r *release) ready() string { return filepath.Join(r.stage, "ready") }

func union(list []string, more string) []string {
	if slices.Contains(list, more) {
		return list
	}
	return append(slices.Clone(list), more)
}

// publish writes the files of a product for an architecture.
func (r *release) publish(p product, arch string) error {
	b, err := r.inspect(p, arch)
	if err != nil {
		return err
	}
	contents, err := r.contents(p, b)
	if err != nil {
		return err
	}
	linux := fmt.Sprintf("%s_%s_linux_%s", p.name, b.version, arch)
	for name, write := range map[string]func(io.Writer) error{
		linux:                func(w io.Writer) error { return copyFrom(w, b.path) },
		linux + ".cdx.json":  func(w io.Writer) error { return r.writeSBOM(w, b) },
		linux + ".image.tar": func(w io.Writer) error { return r.writeImage(w, p, b, contents, b.version) },
		fmt.Sprintf("%s_%s_%s.deb", p.name, b.version, arch): func(w io.Writer) error { return r.writeDeb(w, p, b, contents) },
	} {
		if err := writeFile(filepath.Join(r.ready(), name), write); err != nil {
			return err
		}
	}
	return os.Chmod(filepath.Join(r.ready(), linux), 0o755)
}

func copyFrom(w io.Writer, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(w, in)
	return err
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	err = write(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
