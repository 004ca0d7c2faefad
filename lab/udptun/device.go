package udptun

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const cloneDevice = "/dev/net/tun"

// openDevice makes a TUN device in the calling thread's network namespace. Packets
// have no additional header (IFF_NO_PI) and no offloads: the kernel segments to the
// device's MTU, and each read or write is one IP packet. The device exists until the
// file is closed.
func openDevice(name string) (*os.File, error) {
	request, err := unix.NewIfreq(name)
	if err != nil || name == "" {
		return nil, fmt.Errorf("device name %q: want 1 to %d characters", name, unix.IFNAMSIZ-1)
	}
	fd, err := unix.Open(cloneDevice, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s (load the module tun; root is needed): %w", cloneDevice, err)
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_TUN_EXCL)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EINVAL) {
			return nil, fmt.Errorf("make TUN device %s: %w; a device of that name exists, or the name has invalid characters: choose another name", name, err)
		}
		return nil, fmt.Errorf("make TUN device %s (CAP_NET_ADMIN is needed): %w", name, err)
	}
	// Go can poll the file only after TUNSETIFF: before, it has no queue.
	return os.NewFile(uintptr(fd), cloneDevice), nil
}
