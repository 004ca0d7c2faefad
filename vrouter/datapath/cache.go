package datapath

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// isPreemptRT reports whether the kernel is a PREEMPT_RT kernel (kernel/ksysfs.c).
func isPreemptRT() bool {
	text, err := os.ReadFile("/sys/kernel/realtime")
	return err == nil && strings.TrimSpace(string(text)) == "1"
}

// changeCached runs a function that changes tables. Meanwhile the programs do not use their
// caches of these tables (bpf/cache.h), and afterwards no cached entry is valid. If change fails,
// or the agent dies meanwhile, the programs use no cache until the next call succeeds. A second
// process must not call it at the same time: the lock of agent/lock.go prevents this.
//
// On a PREEMPT_RT kernel the programs never use their caches, because there a program can
// interrupt another one on the same CPU.
func (d *Datapath) changeCached(change func() error) error {
	var generation uint64
	if err := d.maps.CacheGeneration.Lookup(uint32(0), &generation); err != nil {
		return fmt.Errorf("read the generation of the caches: %w", err)
	}
	odd := generation | 1
	if err := d.maps.CacheGeneration.Put(uint32(0), odd); err != nil {
		return fmt.Errorf("turn the caches off: %w", err)
	}
	if err := change(); err != nil {
		return err
	}
	if d.preemptRT {
		return nil // the generation stays odd
	}
	if runtime.GOARCH != "amd64" { // a program may have read a table before it reads the generation
		awaitPrograms()
	}
	if err := d.maps.CacheGeneration.Put(uint32(0), odd+1); err != nil {
		return fmt.Errorf("turn the caches on: %w", err)
	}
	return nil
}
