package profile

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// event samples one CPU into a ring of memory that it shares with the kernel
// (perf_event_open(2)).
type event struct {
	cpu    int
	fd     int
	memory []byte // a control page, then the ring
	ring   []byte
}

// ringBytes holds some 8 s of deep chains at 1000 Hz, and the rings are emptied
// four times a second.
const ringBytes = 4 << 20

// clockName is the event that takes the samples: a high-resolution timer on each CPU
// (kernel/events/core.c, cpu_clock). It counts time, as the meter does, while a
// hardware counter of cycles follows the CPU's frequency and stops in idle.
const clockName = "cpu-clock"

// openEvent opens an event that is off; see enable.
func openEvent(cpu, rate int) (*event, error) {
	a := unix.PerfEventAttr{
		Type:        unix.PERF_TYPE_SOFTWARE,
		Config:      unix.PERF_COUNT_SW_CPU_CLOCK,
		Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Sample:      uint64(rate),
		Sample_type: sampleType,
		// Task, comm and mmap2 records report programs that start and end during
		// the window.
		Bits:    unix.PerfBitDisabled | unix.PerfBitFreq | unix.PerfBitUseClockID | unix.PerfBitComm | unix.PerfBitCommExec | unix.PerfBitTask | unix.PerfBitMmap | unix.PerfBitMmap2 | unix.PerfBitWatermark,
		Wakeup:  ringBytes, // the reader looks by itself
		Clockid: unix.CLOCK_MONOTONIC,
	}
	fd, err := unix.PerfEventOpen(&a, -1, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sample CPU %d at %d Hz (perf_event_open): %w", cpu, rate, explain(err, cpu, rate))
	}
	e := &event{cpu: cpu, fd: fd}
	page := os.Getpagesize()
	e.memory, err = unix.Mmap(fd, 0, page+ringBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("share %d MB of memory for the samples of CPU %d (mmap; kernel.perf_event_mlock_kb bounds it for those without CAP_IPC_LOCK): %w", ringBytes>>20, cpu, err)
	}
	e.ring = e.memory[page:]
	return e, nil
}

// explain adds the remedy to the kernel's error.
func explain(err error, cpu, rate int) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: run as root or with CAP_PERFMON, or set sysctl kernel.perf_event_paranoid to -1; a container may need its seccomp profile to allow the call", err)
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return fmt.Errorf("%w: is CPU %d online?", err, cpu)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: %d Hz may be above sysctl kernel.perf_event_max_sample_rate, or CPU %d does not exist", err, rate, cpu)
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: this kernel was built without CONFIG_PERF_EVENTS", err)
	case errors.Is(err, unix.EMFILE):
		return fmt.Errorf("%w: too many files are open; raise the limit (ulimit -n)", err)
	}
	return err
}

func (e *event) ioctl(request uint, what string) error {
	if err := unix.IoctlSetInt(e.fd, request, 0); err != nil {
		return fmt.Errorf("%s sampling CPU %d: %w", what, e.cpu, err)
	}
	return nil
}

// drain calls visit for each record in the ring and frees the record's space. visit must
// not keep the bytes.
func (e *event) drain(visit func([]byte) error) error {
	control := (*unix.PerfEventMmapPage)(unsafe.Pointer(&e.memory[0]))
	head, tail := atomic.LoadUint64(&control.Data_head), control.Data_tail
	if head-tail > uint64(len(e.ring)) {
		return fmt.Errorf("the ring of CPU %d is not as the kernel keeps it: it would hold %d bytes", e.cpu, head-tail)
	}
	var scratch []byte
	for tail < head {
		header := e.at(tail, headerSize, &scratch)
		size := uint64(native.Uint16(header[6:]))
		if size < headerSize || size > head-tail {
			return fmt.Errorf("the ring of CPU %d has a record of %d bytes with %d left", e.cpu, size, head-tail)
		}
		if err := visit(e.at(tail, size, &scratch)); err != nil {
			return err
		}
		tail += size
	}
	atomic.StoreUint64(&control.Data_tail, tail)
	return nil
}

// at returns bytes of the ring. It copies them if they continue at the ring's start.
func (e *event) at(position, size uint64, scratch *[]byte) []byte {
	from := position % uint64(len(e.ring))
	if from+size <= uint64(len(e.ring)) {
		return e.ring[from : from+size]
	}
	*scratch = append((*scratch)[:0], e.ring[from:]...)
	*scratch = append(*scratch, e.ring[:from+size-uint64(len(e.ring))]...)
	return *scratch
}
