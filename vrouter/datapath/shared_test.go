package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
)

// sharedPins is the directory of the shared datapath's pins, if a test used it.
var sharedPins string

func TestMain(m *testing.M) {
	code := m.Run()
	if sharedPins != "" {
		if err := errors.Join(UnmountPins(filepath.Join(sharedPins, "bpf")), os.Remove(sharedPins)); err != nil {
			fmt.Fprintln(os.Stderr, "remove the shared datapath:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// loadOnce loads the programs for all tests that share them. The kernel verifies the programs
// at each load, which takes 0.6 s of CPU time.
var loadOnce = sync.OnceValues(func() (*Datapath, error) {
	var err error
	if sharedPins, err = os.MkdirTemp("", "vrouter-datapath-"); err != nil {
		return nil, err
	}
	path, err := MountPins(filepath.Join(sharedPins, "bpf"))
	if err != nil {
		return nil, err
	}
	return Open(Options{Pins: path, Limits: small, Times: FlowTimes{180 * time.Second, 30 * time.Second, 10 * time.Second}})
})

// shared returns a loaded datapath with empty maps. The next test gets the same datapath.
func shared(t testing.TB) *Datapath {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: loads eBPF programs")
	}
	d := must.Get(loadOnce())(t)
	d.services.written = nil
	all := reflect.ValueOf(d.maps)
	for i := range all.NumField() {
		m := all.Field(i).Interface().(*ebpf.Map)
		if err := empty(m); err != nil {
			t.Fatalf("empty %s: %v", m, err)
		}
	}
	return d
}

// empty deletes the entries of a map, and writes zeros to those of an array. The ring buffer of
// dropped packets keeps its entries: no test that shares the datapath reads it.
func empty(m *ebpf.Map) error {
	switch m.Type() {
	case ebpf.RingBuf:
		return nil
	case ebpf.Array, ebpf.PerCPUArray:
		return zero(m)
	}
	for {
		key, err := m.NextKeyBytes(nil)
		if key == nil || err != nil {
			return err
		}
		if err := m.Delete(key); err != nil {
			return err
		}
	}
}

// zero writes zeros to all entries of an array in one system call. It does not use ebpf.Map.BatchUpdate, which copies the values of
// a per-CPU array one by one.
func zero(m *ebpf.Map) error {
	size := uintptr(m.ValueSize())
	if m.Type() == ebpf.PerCPUArray {
		cpus, err := ebpf.PossibleCPU()
		if err != nil {
			return err
		}
		size = (size + 7) &^ 7 * uintptr(cpus)
	}
	keys, values := make([]uint32, m.MaxEntries()), make([]byte, uintptr(m.MaxEntries())*size)
	for i := range keys {
		keys[i] = uint32(i)
	}
	a := struct { // struct batch in union bpf_attr of linux/bpf.h
		in, out      uint64
		keys, values unsafe.Pointer
		count, fd    uint32
		flags        [2]uint64
	}{keys: unsafe.Pointer(&keys[0]), values: unsafe.Pointer(&values[0]), count: uint32(len(keys)), fd: uint32(m.FD())}
	if _, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_UPDATE_BATCH, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a)); errno != 0 {
		return errno
	}
	return nil
}

// trace is Datapath.Trace with the program of tracingOnce.
func (r *rig) trace(t testing.TB, ifindex int, frame []byte) ([]TraceStep, int32) {
	t.Helper()
	c := must.Get(tracingOnce())(t)
	must.Succeed(t, zero(c.Maps["traces"]))
	steps, code, err := traceBy(c, ifindex, frame)
	must.Succeed(t, err)
	return steps, code
}

// tracingOnce loads the tracing program once for all tests. The program uses the tables of the shared datapath.
var tracingOnce = sync.OnceValues(func() (*ebpf.Collection, error) {
	d, err := loadOnce()
	if err != nil {
		return nil, err
	}
	return d.loadTracing()
})

// attaching returns the shared datapath for a test that attaches its programs to devices. noTCX and noXDP: without tcx, without XDP.
// At the end of the test, the programs are detached from the loopback device and from devices (indexes).
func attaching(t testing.TB, noTCX, noXDP bool, devices ...int) *Datapath {
	t.Helper()
	d := shared(t)
	options, tc := d.options, d.tc
	d.options.NoTCX, d.options.NoXDP = noTCX, noXDP
	d.tc = must.Get(netlink.NewHandle(unix.NETLINK_ROUTE))(t)
	t.Cleanup(func() {
		for _, ifindex := range devices {
			must.Succeed(t, d.Detach(ifindex))
		}
		must.Succeed(t, errors.Join(d.dropLink(hookLoop, loopback), d.removeFilter(hookLoop, loopback)))
		d.tc.Close()
		d.options, d.tc = options, tc
	})
	return d
}
