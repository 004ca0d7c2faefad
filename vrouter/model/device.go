package model

import (
	"fmt"
	"strings"

	"windtunnel/internal/phrase"
)

// maxDevice is the maximum length of a device name in bytes (IFNAMSIZ in linux/if.h, without the
// final zero).
const maxDevice = 15

// CheckDevice returns an error if the kernel refuses a device name or changes it (dev_valid_name
// and __dev_alloc_name in net/core/dev.c). The kernel replaces %d by a number. The
// kernel takes byte 0xA0 for white space. The names "all" and "default" are reserved in /proc/sys/net.
func CheckDevice(name string) error {
	i := strings.IndexFunc(name, func(r rune) bool { return strings.ContainsRune("\x00%/:\t\n\v\f\r ", r) })
	if nbsp := strings.IndexByte(name, 0xa0); i < 0 {
		i = nbsp
	}
	switch {
	case name == "":
		return fmt.Errorf("%q is not a device name: it is empty", name)
	case name == "." || name == ".." || name == "all" || name == "default":
		return fmt.Errorf("%q is not a device name", name)
	case len(name) > maxDevice:
		return fmt.Errorf("%q is not a device name: it has %d bytes, at most %d are allowed", phrase.Clip(name), len(name), maxDevice)
	case i >= 0:
		return fmt.Errorf("%q is not a device name: the kernel refuses the byte %q", name, name[i])
	}
	return nil
}
