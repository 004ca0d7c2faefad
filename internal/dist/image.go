package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// runImage builds the image of the lab alone, and writes it to o.image. It is for the first
// architecture. Its tag is the revision, from which the program derives its default image.
func runImage(ctx context.Context, o options) error {
	r, err := begin(ctx, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.stage)
	lab, arch := products[0], o.architectures[0]
	for _, a := range union(o.architectures[:1], runtime.GOARCH) {
		if err := r.build(ctx, a, products[:1]); err != nil {
			return err
		}
	}
	if err := errors.Join(r.askVersion(ctx, lab), r.findLicences(ctx, arch, products[:1])); err != nil {
		return err
	}
	b, err := r.inspect(lab, arch)
	if err != nil {
		return err
	}
	contents, err := r.contents(lab, b)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.image), 0o755); err != nil {
		return err
	}
	return writeFile(o.image, func(w io.Writer) error { return r.writeImage(w, lab, b, contents, r.revision) })
}

// writeImage writes an image with one layer, in the format of `docker save`. The layer holds the
// static program, its licences, and the folders that programs expect.
func (r *release) writeImage(w io.Writer, p product, b binary, contents []file, version string) error {
	layer, err := r.layer(p, contents)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(p.name + ":" + imageTag(version))
	if err != nil {
		return err
	}
	config, err := empty.Image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", b.arch
	config.Created = v1.Time{Time: r.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/" + p.name},
		Env:        []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    p.name,
			"org.opencontainers.image.version":  b.version,
			"org.opencontainers.image.revision": r.revision,
			"org.opencontainers.image.licenses": ownLicence,
		},
	}
	image, err := mutate.ConfigFile(empty.Image, config)
	if err != nil {
		return err
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "windtunnel/internal/dist"},
	})
	if err != nil {
		return err
	}
	return tarball.Write(tag, image, w)
}

// imageTag returns a version as a tag: tags have no tilde.
func imageTag(version string) string { return strings.ReplaceAll(version, "~", "-") }

// layer packs the program and its licences.
func (r *release) layer(p product, contents []file) (v1.Layer, error) {
	var packed bytes.Buffer
	t := tar.NewWriter(&packed)
	made := map[string]bool{}
	var folder func(name string, mode int64) error
	folder = func(name string, mode int64) error {
		if name == "/" || made[name] {
			return nil
		}
		if err := folder(path.Dir(name), 0o755); err != nil {
			return err
		}
		made[name] = true
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[1:] + "/", Mode: mode, ModTime: r.time, Format: tar.FormatGNU})
	}
	for _, f := range contents {
		if f.to != "/usr/bin/"+p.name && path.Base(f.to) != "copyright" {
			continue
		}
		if err := folder(path.Dir(f.to), 0o755); err != nil {
			return nil, err
		}
		content, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.to[1:], Size: int64(len(content)), Mode: int64(f.mode), ModTime: r.time, Format: tar.FormatGNU}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(content); err != nil {
			return nil, err
		}
	}
	for _, d := range []struct {
		name string
		mode int64
	}{{"/etc", 0o755}, {"/root", 0o700}, {"/run", 0o755}, {"/tmp", 0o1777}, {"/var/lib", 0o755}} {
		if err := folder(d.name, d.mode); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
}
