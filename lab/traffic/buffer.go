package traffic

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newBuffer maps size bytes outside Go's heap, and writes to every page. release unmaps
// them.
func newBuffer(size int) (p []byte, release func() error, err error) {
	p, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, fmt.Errorf("map a buffer of %d bytes: %w", size, err)
	}
	for i := range p {
		p[i] = 'A' // NTttcp sends this byte too
	}
	whole := p
	return p, func() error { return unix.Munmap(whole) }, nil
}

// sendfileSize is the smallest size of a file for sendfile, so that it does not read the
// same page again and again.
const sendfileSize = 4 << 20

// newFile makes a file in memory, with all of its pages in the page cache. Its size is a
// multiple of the buffer's size, and at least sendfileSize.
func newFile(buffer int) (fd int, size int64, err error) {
	size = int64((max(sendfileSize, buffer)+buffer-1)/buffer) * int64(buffer)
	if fd, err = unix.MemfdCreate("windtunnel-sendfile", unix.MFD_CLOEXEC); err != nil {
		return -1, 0, fmt.Errorf("make a file in memory for sendfile: %w", err)
	}
	block := make([]byte, 1<<20)
	for written := int64(0); written < size; {
		n, err := unix.Write(fd, block[:min(int64(len(block)), size-written)])
		if err != nil {
			unix.Close(fd)
			return -1, 0, fmt.Errorf("fill a file in memory with %d bytes for sendfile: %w", size, err)
		}
		written += int64(n)
	}
	return fd, size, nil
}
