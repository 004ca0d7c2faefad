package probe

import (
	"fmt"
	"strconv"
	"strings"
)

// Kernel is the release of a kernel, by its first two numbers.
type Kernel struct{ Major, Minor int }

// ParseKernel reads a release such as "6.1.0-18-amd64". What follows the
// second number is the distribution's.
func ParseKernel(release string) (Kernel, error) {
	major, rest, ok := strings.Cut(release, ".")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(rest[:digits])
	if !ok || errA != nil || errB != nil || a < 0 || a > 1000 {
		return Kernel{}, fmt.Errorf("read kernel release %q: want numbers such as 6.1.0", cut(release, 80))
	}
	return Kernel{a, b}, nil
}

// AtLeast reports whether the kernel is this release or a later one.
func (k Kernel) AtLeast(major, minor int) bool {
	return k.Major > major || k.Major == major && k.Minor >= minor
}

func (k Kernel) String() string { return fmt.Sprintf("%d.%d", k.Major, k.Minor) }
