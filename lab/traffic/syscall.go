package traffic

import (
	"syscall"
	"unsafe"
)

// The system calls of the hot path. They are raw: Go's scheduler does not notice that the
// thread blocks, which saves its work at every call. But a blocked thread then keeps its P,
// so a run needs more Ps than threads (see crew). Also, a stop of the world would have to
// wait for blocked threads. So sockets have receive and send timeouts, and the garbage
// collector is off.

// result converts the result of a raw system call. It returns −1 after an error.
func result(n uintptr, e syscall.Errno) (int, syscall.Errno) {
	if e != 0 {
		return -1, e
	}
	return int(n), 0
}

// send writes p to a connected socket. With MSG_NOSIGNAL a closed peer is an error and not a
// SIGPIPE.
func send(fd int, p []byte, flags int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags|syscall.MSG_NOSIGNAL), 0, 0)
	return result(n, e)
}

// receive fills p from a connected socket.
func receive(fd int, p []byte, flags int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags), 0, 0)
	return result(n, e)
}

// sendfile sends size bytes from offset of a file to a socket, and advances offset.
func sendfile(fd, file int, offset *int64, size int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_SENDFILE, uintptr(fd), uintptr(file),
		uintptr(unsafe.Pointer(offset)), uintptr(size), 0, 0)
	return result(n, e)
}

// accept takes a connection from a listening socket, without its address.
func accept(fd int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_ACCEPT4, uintptr(fd), 0, 0, syscall.SOCK_CLOEXEC, 0, 0)
	return result(n, e)
}

// openSocket makes a blocking socket.
func openSocket(family, kind int) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(syscall.SYS_SOCKET, uintptr(family), uintptr(kind|syscall.SOCK_CLOEXEC), 0)
	return result(n, e)
}

// rawAddress is a socket address as the kernel reads it.
type rawAddress struct {
	storage [syscall.SizeofSockaddrInet6]byte
	length  uint32
}

// connectSocket connects a socket to a.
func connectSocket(fd int, a *rawAddress) syscall.Errno {
	_, _, e := syscall.RawSyscall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&a.storage)), uintptr(a.length))
	return e
}

func closeSocket(fd int) { syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

func setOption(fd, level, name int, value int32) syscall.Errno {
	_, _, e := syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&value)), unsafe.Sizeof(value), 0)
	return e
}

// callTimeval is callTimeout as the kernel reads it.
var callTimeval = syscall.NsecToTimeval(callTimeout.Nanoseconds())

// setCallTimeout is setTimeouts for the hot path.
func setCallTimeout(fd int) syscall.Errno {
	for _, name := range [...]int{syscall.SO_RCVTIMEO, syscall.SO_SNDTIMEO} {
		_, _, e := syscall.RawSyscall6(syscall.SYS_SETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, uintptr(name),
			uintptr(unsafe.Pointer(&callTimeval)), unsafe.Sizeof(callTimeval), 0)
		if e != 0 {
			return e
		}
	}
	return 0
}
