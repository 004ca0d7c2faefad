package meter

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// driverStats reads drivers' statistics (ethtool -S) in the namespace in which
// it was opened.
type driverStats struct{ fd int }

func openDriverStats() (*driverStats, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open a socket for driver statistics: %w", err)
	}
	return &driverStats{fd}, nil
}

func (d *driverStats) close() { unix.Close(d.fd) }

// Sizes and commands of include/uapi/linux/ethtool.h.
const (
	ethtoolSetInfo   = 0x37 // ETHTOOL_GSSET_INFO
	ethtoolStrings   = 0x1b // ETHTOOL_GSTRINGS
	ethtoolStats     = 0x1d // ETHTOOL_GSTATS
	stringSetStats   = 1    // ETH_SS_STATS
	statNameLength   = 32   // ETH_GSTRING_LEN
	mostDriverStats  = 1 << 14
	stringsHeadBytes = 12 // cmd, string_set, len
	statsHeadBytes   = 8  // cmd, n_stats
)

// of returns a device's driver statistics by name.
func (d *driverStats) of(device string) (map[string]uint64, error) {
	n, err := d.count(device)
	if err != nil {
		return nil, fmt.Errorf("count driver statistics of %s: %w", device, err)
	}
	names := make([]byte, stringsHeadBytes+n*statNameLength)
	binary.NativeEndian.PutUint32(names, ethtoolStrings)
	binary.NativeEndian.PutUint32(names[4:], stringSetStats)
	binary.NativeEndian.PutUint32(names[8:], uint32(n))
	if err := d.call(device, names); err != nil {
		return nil, fmt.Errorf("read names of driver statistics of %s: %w", device, err)
	}
	values := make([]byte, statsHeadBytes+n*8)
	binary.NativeEndian.PutUint32(values, ethtoolStats)
	binary.NativeEndian.PutUint32(values[4:], uint32(n))
	if err := d.call(device, values); err != nil {
		return nil, fmt.Errorf("read driver statistics of %s: %w", device, err)
	}
	stats := make(map[string]uint64, n)
	for i := range n {
		name := names[stringsHeadBytes+i*statNameLength:][:statNameLength]
		stats[untilZero(name)] = binary.NativeEndian.Uint64(values[statsHeadBytes+i*8:])
	}
	return stats, nil
}

// count returns the number of statistics of a device (ETHTOOL_GSSET_INFO,
// include/uapi/linux/ethtool.h). The request asks for one string set, the
// statistics. A driver without statistics returns no length.
func (d *driverStats) count(device string) (int, error) {
	info := make([]byte, 20) // cmd, reserved, mask of 64 bits, one length
	binary.NativeEndian.PutUint32(info, ethtoolSetInfo)
	binary.NativeEndian.PutUint64(info[8:], 1<<stringSetStats)
	if err := d.call(device, info); err != nil {
		return 0, err
	}
	if binary.NativeEndian.Uint64(info[8:]) == 0 {
		return 0, nil // the driver has none
	}
	n := int(binary.NativeEndian.Uint32(info[16:]))
	if n > mostDriverStats {
		return 0, fmt.Errorf("%d of them, at most %d are read", n, mostDriverStats)
	}
	return n, nil
}

// call makes one ethtool request. The kernel reads and fills data in place.
func (d *driverStats) call(device string, data []byte) error {
	if len(device) >= unix.IFNAMSIZ {
		return fmt.Errorf("device name %q is longer than %d bytes", device, unix.IFNAMSIZ-1)
	}
	var pin runtime.Pinner // the structure passed to the kernel contains an address
	defer pin.Unpin()
	pin.Pin(&data[0])
	request := struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&data[0])}
	copy(request.name[:], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	if errno != 0 {
		return errno
	}
	return nil
}
