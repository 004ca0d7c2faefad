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

	"github.com/cilium/ebpf"

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

func zero(m *ebpf.Map) error {
	var value any = make([]byte, m.ValueSize())
	if m.Type() == ebpf.PerCPUArray {
		cpus, err := ebpf.PossibleCPU()
		if err != nil {
			return err
		}
		each := make([][]byte, cpus)
		for i := range each {
			each[i] = make([]byte, m.ValueSize())
		}
		value = each
	}
	for i := range m.MaxEntries() {
		if err := m.Put(i, value); err != nil {
			return err
		}
	}
	return nil
}
