package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Package is Debian's kernel for virtual machines: small, and with virtio.
const Package = "linux-image-cloud-amd64"

// fetchTime limits each step of a fetch. The package has 27 MB.
const fetchTime = 5 * time.Minute

// Fetch downloads a kernel package and unpacks it into the cache. pkg may
// be a package that only depends on the current kernel's. It asks the
// machine's own package sources and installs nothing.
func Fetch(ctx context.Context, pkg string) (Kernel, error) {
	cache, err := Cache()
	if err != nil {
		return Kernel{}, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return Kernel{}, fmt.Errorf("make the cache for guests: %w", err)
	}
	if pkg, err = concrete(ctx, pkg); err != nil {
		return Kernel{}, err
	}
	dir, err := os.MkdirTemp(cache, "fetch-")
	if err != nil {
		return Kernel{}, fmt.Errorf("make a place for the download: %w", err)
	}
	defer os.RemoveAll(dir)
	if _, err := run(ctx, dir, "apt-get", "download", pkg); err != nil {
		return Kernel{}, fmt.Errorf("%w\nIf its sources are out of date: apt-get update", err)
	}
	debs, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
	if len(debs) != 1 {
		return Kernel{}, fmt.Errorf("apt-get downloaded %d packages for %s; one was wanted", len(debs), pkg)
	}
	root := filepath.Join(dir, "root")
	if _, err := run(ctx, dir, "dpkg-deb", "-x", debs[0], root); err != nil {
		return Kernel{}, err
	}
	return keep(root, filepath.Join(cache, "kernel-"+strings.TrimPrefix(pkg, "linux-image-")))
}

// keep moves an unpacked package to its place, if a guest can boot it.
func keep(root, to string) (Kernel, error) {
	if _, err := find([]string{root}); err != nil {
		return Kernel{}, fmt.Errorf("the package does not serve: %w", err)
	}
	if err := errors.Join(os.RemoveAll(to), os.Chmod(root, 0o755), os.Rename(root, to)); err != nil {
		return Kernel{}, fmt.Errorf("keep the kernel: %w", err)
	}
	return find([]string{to})
}

// concrete returns the package on which a package without contents depends.
func concrete(ctx context.Context, pkg string) (string, error) {
	out, err := run(ctx, "", "apt-cache", "depends", "--important", pkg)
	if err != nil {
		return "", fmt.Errorf("%w\nGuests boot Debian's kernel %s: on a system without apt put a kernel and its modules into /boot and /lib/modules", err, Package)
	}
	return dependency(string(out), pkg), nil
}

// dependency reads apt-cache's listing: the first kernel package that pkg
// depends on, or pkg itself.
func dependency(listing, pkg string) string {
	for line := range strings.Lines(listing) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: linux-image-")
		if ok && name != "" {
			return "linux-image-" + name
		}
	}
	return pkg
}

func run(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}
