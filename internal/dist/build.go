package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// binary is the program of a product for one architecture.
type binary struct {
	name, arch string
	version    string // of the packages
	path       string
	sha256     string
	goVersion  string // such as go1.26.0
	modules    []module
	shipped    []module // of the other programs in the image, besides modules
}

// module is a Go module in a binary.
type module struct {
	path, version string
	sum           string // h1 sum of its files, as in go.sum
	key           string // path in go.mod, before a replacement
}

// build compiles products for an architecture.
func (r *release) build(ctx context.Context, arch string, list []product) error {
	dir := filepath.Join(r.stage, arch)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-ldflags", "-s -w -X main.revision=" + r.revision, "-o", dir + "/"}
	for _, p := range list {
		args = append(args, "./cmd/"+p.name)
		if p.plugin != "" {
			args = append(args, "./cmd/"+p.plugin)
		}
		if p.helper != "" {
			args = append(args, p.helper)
		}
	}
	if _, err := r.goTool(ctx, arch, args...); err != nil {
		return fmt.Errorf("build for %s: %w", arch, err)
	}
	return nil
}

// goTool runs the go command in the repository and returns its output. It ignores
// settings of the user that would change the programs.
func (r *release) goTool(ctx context.Context, arch string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.tree
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-trimpath -buildvcs=false", "GOWORK=off")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(complaints.String()))
	}
	return string(out), nil
}

// program returns the path of a built program.
func (r *release) program(name, arch string) string { return filepath.Join(r.stage, arch, name) }

// native runs a program of this machine's architecture. The environment is fixed: no text
// that the program writes may depend on it.
func (r *release) native(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, r.program(name, runtime.GOARCH), args...)
	cmd.Env = []string{"HOME=/root", "PATH=/usr/bin:/bin", "TZ=UTC", fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix())}
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, nil
}

// inspect reads what a built program says about itself.
func (r *release) inspect(p product, arch string) (binary, error) {
	b := binary{name: p.name, arch: arch, version: r.packageVersion(r.versions[p.name]), path: r.program(p.name, arch)}
	content, err := os.ReadFile(b.path)
	if err != nil {
		return b, err
	}
	digest := sha256.Sum256(content)
	b.sha256 = hex.EncodeToString(digest[:])
	info, err := buildinfo.ReadFile(b.path)
	if err != nil {
		return b, err
	}
	b.goVersion, b.modules = info.GoVersion, modules(info.Deps)
	if p.helper == "" {
		return b, nil
	}
	helper, err := buildinfo.ReadFile(r.program(path.Base(p.helper), arch))
	if err != nil {
		return b, err
	}
	for _, m := range modules(append(helper.Deps, &helper.Main)) {
		if !slices.Contains(b.modules, m) {
			b.shipped = append(b.shipped, m)
		}
	}
	return b, nil
}

func modules(deps []*debug.Module) (all []module) {
	for _, d := range deps {
		m := module{path: d.Path, version: d.Version, sum: d.Sum, key: d.Path}
		if d.Replace != nil {
			m.path, m.version, m.sum = d.Replace.Path, d.Replace.Version, d.Replace.Sum
		}
		all = append(all, m)
	}
	return all
}
