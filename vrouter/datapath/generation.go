package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
)

// layoutVersion is LAYOUT_VERSION of bpf/layout.h; a test compares them.
const layoutVersion = 17

// keptSince is the oldest layout that has the same structs of flows and services (bpf/types.h) as layoutVersion.
// An agent copies these from maps with a layout from keptSince on.
const keptSince = 13

const generationPrefix = "g"

// generationName names the directory of maps of one layout and size.
func generationName(l Limits) string {
	return fmt.Sprintf("%s%d-%s", generationPrefix, layoutVersion, l.fingerprint())
}

// others are the directories of other generations.
func (d *Datapath) others() ([]string, error) {
	entries, err := os.ReadDir(d.options.Pins)
	if err != nil {
		return nil, fmt.Errorf("read the pins: %w", err)
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(d.options.Pins, e.Name())
		if e.IsDir() && dir != d.generation && strings.HasPrefix(e.Name(), generationPrefix) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// isKept reports whether the flows and services of a generation have the present structs.
func isKept(dir string) bool {
	var version int
	_, err := fmt.Sscanf(filepath.Base(dir), generationPrefix+"%d-", &version)
	return err == nil && version >= keptSince && version <= layoutVersion
}

// adoptFlows copies the flows of older generations, so that policies and services go on to
// know their connections: where both have one, the one seen last stands. Flows of
// another layout cannot be read, and are not. It may be repeated.
func (d *Datapath) adoptFlows() error {
	dirs, err := d.others()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if !isKept(dir) {
			return fmt.Errorf("maps %s have another layout", filepath.Base(dir))
		}
		if err := adopt(dir, "flows", d.maps.Flows, func(k layout.FlowKey, v layout.Flow) bool {
			var ours layout.Flow
			return d.maps.Flows.Lookup(&k, &ours) != nil || ours.SeenNs < v.SeenNs
		}); err != nil {
			return err
		}
	}
	return nil
}

// adoptServices copies the services of an older generation to a new one, so that workloads reach them before
// SetServices is called. It copies the ranges last: without them no service is in force.
func (d *Datapath) adoptServices() error {
	dirs, err := d.others()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		if has, err := d.hasServices(); err != nil || has {
			return err
		}
		if !isKept(dir) {
			continue
		}
		if err := errors.Join(
			adopt[layout.BackendKey, layout.Backend](dir, "backends", d.maps.Backends, nil),
			adopt[layout.ServiceKey, layout.Service](dir, "services", d.maps.Services, nil),
			adopt[layout.AffinityKey, layout.Affinity](dir, "affinities", d.maps.Affinities, nil),
		); err != nil {
			return err
		}
		if err := adopt[uint32, layout.ServiceRange](dir, "service_ranges", d.maps.ServiceRanges, nil); err != nil {
			return err
		}
	}
	return nil
}

func (d *Datapath) hasServices() (has bool, err error) {
	err = table[uint32, layout.ServiceRange]{"service_ranges", d.maps.ServiceRanges, true}.each(func(uint32, layout.ServiceRange) { has = true })
	return has, err
}

// adopt copies the entries of a map of another generation. If filter is not nil, it copies those for which filter
// returns true.
func adopt[K, V comparable](dir, name string, to *ebpf.Map, filter func(K, V) bool) error {
	old, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
	if err != nil {
		return nil // it was being removed
	}
	defer old.Close()
	var failed error
	err = table[K, V]{name, old, false}.each(func(k K, v V) {
		if failed == nil && (filter == nil || filter(k, v)) {
			failed = to.Put(&k, &v)
		}
	})
	if failed != nil {
		return fmt.Errorf("copy to map %s: %w", name, failed) // no room: the new table is smaller
	}
	return err
}

// swapping has the time from which beforeSwap may copy flows again.
type swapping struct {
	sync.Mutex
	next time.Time
}

// beforeSwap copies the flows of older generations. It is called before an older program of a link is replaced,
// which writes flows until then. It takes at most half of the time of all replacements: with many flows, it does
// nothing for some links.
func (d *Datapath) beforeSwap() {
	s := &d.swapping
	s.Lock()
	defer s.Unlock()
	start := time.Now()
	if start.Before(s.next) {
		return
	}
	if err := d.adoptFlows(); err != nil {
		d.options.Logger.Warn("flows of the older maps are lost", "error", err)
	}
	s.next = time.Now().Add(time.Since(start))
}

// Retire removes older generations if every link runs a program of this one. Call it after Apply and
// after the programs are attached.
func (d *Datapath) Retire() error {
	dirs, err := d.others()
	if err != nil || len(dirs) == 0 {
		return err
	}
	attached, err := d.Attached()
	if err != nil {
		return err
	}
	for _, a := range attached {
		if !a.Current {
			return nil
		}
	}
	if err := d.adoptFlows(); err != nil {
		d.options.Logger.Warn("flows of the older maps are lost", "error", err)
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
