package traffic

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// newBuffer maps size bytes outside Go's heap, on pages of their own, and
// touches every page. release gives them back.
func newBuffer(size int) (p []byte, release func() error, err error) {
	p, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, nil, fmt.Errorf("map a buffer of %d bytes: %w", size, err)
	}
	for i := range p {
		p[i] = 'A' // NTttcp's filling
	}
	whole := p
	return p, func() error { return unix.Munmap(whole) }, nil
}

// sendfileSize is how much page cache sendfile reads through at least, so that
// it is not one page over and over.
const sendfileSize = 4 << 20

// newFile makes a file in memory, whole buffers of at least sendfileSize, all of
// it in the page cache.
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
