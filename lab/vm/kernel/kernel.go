// Package kernel finds a kernel for guests, with the modules that they need. It can fetch
// Debian's kernel.
package kernel

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kernel is a kernel that a guest can boot.
type Kernel struct {
	Release string // as uname says it
	Image   string // path of its bzImage
	Modules string // path of its modules' folder, /lib/modules/RELEASE
}

// Required are the modules that a guest needs, unless they are built into the kernel.
// Useful are loaded if they exist: the meter uses sock_diag for the guest's sockets.
var (
	Required = []string{"virtio_pci", "virtio_console", "failover", "net_failover", "virtio_net"}
	Useful   = []string{"tcp_diag", "udp_diag"}
)

// FetchCommand is the command line that fetches a kernel.
const FetchCommand = "windtunnel vm fetch"

// ErrNone says that no kernel was found.
var ErrNone = errors.New("no kernel for guests was found; get one with: " + FetchCommand)

// Cache returns the folder of the fetched kernels. Each has a folder with boot/ and
// lib/modules/.
func Cache() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(user, "windtunnel", "vm"), nil
}

// Find returns the newest kernel of the cache, else the newest of /boot, that
// has the modules that a guest requires. The error wraps ErrNone and lists the missing
// modules of each kernel that was found.
func Find() (Kernel, error) {
	var roots []string
	if cache, err := Cache(); err == nil {
		kept, _ := filepath.Glob(filepath.Join(cache, "kernel-*")) // an empty cache is not wrong
		slices.SortFunc(kept, func(a, b string) int { return compare(b, a) })
		roots = append(roots, kept...)
	}
	return find(append(roots, "/"))
}

func find(roots []string) (Kernel, error) {
	var lacks []error
	for _, root := range roots {
		images, _ := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
		slices.SortFunc(images, func(a, b string) int { return compare(b, a) })
		for _, image := range images {
			release := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
			k := Kernel{release, image, filepath.Join(root, "lib", "modules", release)}
			if _, err := k.Plan(Required); err != nil {
				lacks = append(lacks, err)
				continue
			}
			return k, nil
		}
	}
	return Kernel{}, errors.Join(append([]error{ErrNone}, lacks...)...)
}

// compare orders names of kernels by the numbers in them: 6.1.0-9 is before
// 6.1.0-56.
func compare(a, b string) int {
	for a != "" && b != "" {
		x, restA := part(a)
		y, restB := part(b)
		n, errA := strconv.Atoi(x)
		m, errB := strconv.Atoi(y)
		c := cmp.Compare(x, y)
		if errA == nil && errB == nil {
			c = cmp.Compare(n, m)
		}
		if c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return cmp.Compare(len(a), len(b))
}

// part splits off the leading digits of a text, or the text before the first digit.
func part(s string) (first, rest string) {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}
