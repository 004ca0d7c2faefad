package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
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

// runImages builds the image of each program alone, and writes it to o.images. They are for the
// first architecture. Their tag is the revision, from which the programs derive their default image.
func runImages(ctx context.Context, o options) (paths []string, err error) {
	r, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(r.stage)
	arch := o.architectures[0]
	for _, a := range union(o.architectures[:1], runtime.GOARCH) {
		if err := r.build(ctx, a, products); err != nil {
			return nil, err
		}
	}
	if err := r.findLicences(ctx, arch, products); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.images, 0o755); err != nil {
		return nil, err
	}
	for _, p := range products {
		if err := r.askVersion(ctx, p); err != nil {
			return nil, err
		}
		b, err := r.inspect(p, arch)
		if err != nil {
			return nil, err
		}
		contents, err := r.contents(p, b)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(o.images, p.name+".image.tar")
		if err := writeFile(path, func(w io.Writer) error { return r.writeImage(w, p, b, contents, r.revision) }); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// writeImage writes an image with one layer, in the format of `docker save`. The layer holds the
// static programs, their licences, and the folders that programs expect.
func (r *release) writeImage(w io.Writer, p product, b binary, contents []file, version string) error {
	layer, err := r.layer(contents)
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

// layer packs the programs and their licences.
func (r *release) layer(contents []file) (v1.Layer, error) {
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
		if path.Dir(f.to) != "/usr/bin" && path.Base(f.to) != "copyright" {
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
