package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"

	"windtunnel/vrouter/layout"
)

// layoutVersion is LAYOUT_VERSION of bpf/layout.h; a test compares them.
const layoutVersion = 14

const generationPrefix = "g"

// layoutPrefix begins the names of generations whose entries we can read.
var layoutPrefix = fmt.Sprintf("%s%d-", generationPrefix, layoutVersion)

// generationName names the directory of maps of one layout and size.
func generationName(l Limits) string { return layoutPrefix + l.fingerprint() }

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

// adoptFlows copies the flows of older generations, so that policy goes on to
// know its connections: where both have one, the one seen last stands. Flows of
// another layout cannot be read, and are not. It may be repeated.
func (d *Datapath) adoptFlows() error {
	dirs, err := d.others()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		old, err := ebpf.LoadPinnedMap(filepath.Join(dir, "flows"), nil)
		if err != nil {
			continue // it was being removed
		}
		if strings.HasPrefix(filepath.Base(dir), layoutPrefix) {
			err = d.copyFlows(old)
		} else {
			err = fmt.Errorf("their layout is another: %s", filepath.Base(dir))
		}
		old.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// beforeSwap comes before a link's program is swapped for ours. Before the first
// one the flows are copied, as the older programs have them until then.
func (d *Datapath) beforeSwap() {
	d.swapping.Do(func() {
		if err := d.adoptFlows(); err != nil {
			d.options.Logger.Warn("flows of the older maps are lost", "error", err)
		}
	})
}

func (d *Datapath) copyFlows(old *ebpf.Map) error {
	from := table[layout.FlowKey, layout.Flow]{"flows", old, false}
	var failed error
	err := from.each(func(k layout.FlowKey, v layout.Flow) {
		var ours layout.Flow
		if failed != nil || d.maps.Flows.Lookup(&k, &ours) == nil && ours.SeenNs >= v.SeenNs {
			return
		}
		failed = d.maps.Flows.Put(&k, &v)
	})
	if failed != nil {
		return fmt.Errorf("copy a flow: %w", failed) // no room: the new table is smaller
	}
	return err
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
