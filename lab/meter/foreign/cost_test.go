package foreign

import (
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// BenchmarkSwitch is two threads that wake each other on one CPU: two context
// switches a round. What the meter costs is the difference to the first.
//
//	go test ./lab/meter/foreign -run - -bench Switch -count 5
func BenchmarkSwitch(b *testing.B) {
	cpu := lastCPU(b)
	b.Run("unmetered", func(b *testing.B) { pingPong(b, cpu) })
	b.Run("ours", func(b *testing.B) {
		open(b, cpu) // the calling process is always allowed
		pingPong(b, cpu)
	})
	b.Run("foreign", func(b *testing.B) {
		m := open(b, cpu)
		must.Succeed(b, m.objects.Processes.Delete(uint32(os.Getpid())))
		must.Succeed(b, m.objects.Edition.Set(uint32(1<<20)))
		pingPong(b, cpu)
		if read(b, m)[cpu].Foreign == 0 {
			b.Error("nothing was foreign")
		}
	})
}

func pingPong(b *testing.B, cpu int) {
	var out, back [2]int
	for _, p := range []*[2]int{&out, &back} {
		must.Succeed(b, unix.Pipe2(p[:], unix.O_CLOEXEC))
		defer unix.Close(p[0])
		defer unix.Close(p[1])
	}
	done := make(chan error, 2)
	play := func(first, second func() error) {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		var one unix.CPUSet
		one.Set(cpu)
		err := unix.SchedSetaffinity(0, &one)
		for range b.N {
			if err == nil {
				err = first()
			}
			if err == nil {
				err = second()
			}
		}
		done <- err
	}
	b.ResetTimer()
	go play(func() error { return put(out[1]) }, func() error { return take(back[0]) })
	go play(func() error { return take(out[0]) }, func() error { return put(back[1]) })
	for range 2 {
		must.Succeed(b, <-done)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/switch")
}

// Raw system calls, so that the runtime does not put another thread in.
func put(fd int) error {
	b := [1]byte{'.'}
	_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1)
	return failure(errno)
}

func take(fd int) error {
	var b [1]byte
	_, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&b)), 1)
	return failure(errno)
}

func failure(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
