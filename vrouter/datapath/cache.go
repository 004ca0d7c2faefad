package datapath

import (
	"fmt"
	"runtime"
)

// changeCached runs a function that changes tables. Meanwhile the programs do not use their
// caches of these tables (bpf/cache.h), and afterwards no cached entry is valid. If change fails,
// or the agent dies meanwhile, the programs use no cache until the next call succeeds.
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
	if runtime.GOARCH != "amd64" { // a program may have read a table before it reads the generation
		awaitPrograms()
	}
	if err := d.maps.CacheGeneration.Put(uint32(0), odd+1); err != nil {
		return fmt.Errorf("turn the caches on: %w", err)
	}
	return nil
}
