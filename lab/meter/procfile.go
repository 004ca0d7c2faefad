package meter

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// procFile is an open /proc file that is read again from its start each time.
type procFile struct {
	fd   int
	path string
}

var closed = procFile{fd: -1}

func openProc(path string) (procFile, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return closed, fmt.Errorf("open %s: %w", path, err)
	}
	return procFile{fd, path}, nil
}

func (f procFile) close() {
	if f.fd >= 0 {
		unix.Close(f.fd)
	}
}

// read returns the whole text in *buf, which grows as needed. The text is valid
// until the next use of buf. The kernel generates the text at a read from
// offset 0.
func (f procFile) read(buf *[]byte) ([]byte, error) {
	at := 0
	for {
		if at == len(*buf) {
			*buf = append(*buf, make([]byte, max(len(*buf), 16<<10))...)
		}
		n, err := f.readAt((*buf)[at:], at)
		if err != nil || n == 0 {
			return (*buf)[:at], err
		}
		at += n
	}
}

// readStart returns at most the first length bytes. For files of which only the
// start is needed it saves the second call that finds the end.
func (f procFile) readStart(buf *[]byte, length int) ([]byte, error) {
	if len(*buf) < length {
		*buf = make([]byte, length)
	}
	n, err := f.readAt((*buf)[:length], 0)
	return (*buf)[:n], err
}

// readAt calls pread(2), again after a signal. After another error it returns 0
// bytes.
func (f procFile) readAt(to []byte, at int) (int, error) {
	for {
		n, err := unix.Pread(f.fd, to, int64(at))
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
		default:
			return 0, fmt.Errorf("read %s: %w", f.path, err)
		}
	}
}
