package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf"
)

// layoutVersion is LAYOUT_VERSION of bpf/layout.h; a test compares them.
const layoutVersion = 1

const generationPrefix = "g"

// generationName names the directory of maps of one layout and size.
func generationName(l Limits) string {
	return fmt.Sprintf("%s%d-%s", generationPrefix, layoutVersion, l.fingerprint())
}

// isFresh: nothing of this generation is pinned.
func (d *Datapath) isFresh() (bool, error) {
	entries, err := os.ReadDir(d.generation)
	if err != nil {
		return false, fmt.Errorf("read the pins: %w", err)
	}
	return len(entries) == 0, nil
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

// adoptFlows copies the flows of an older generation, so that policy goes on to
// know its connections. Flows of another layout cannot be read, and are not.
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
		err = d.copyFlows(old)
		old.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Datapath) copyFlows(old *ebpf.Map) error {
	if old.KeySize() != d.maps.Flows.KeySize() || old.ValueSize() != d.maps.Flows.ValueSize() {
		return fmt.Errorf("their layout is another")
	}
	from := table[vrouterFlowKey, vrouterFlow]{"flows", old, false}
	to := table[vrouterFlowKey, vrouterFlow]{"flows", d.maps.Flows, false}
	var keys []vrouterFlowKey
	var values []vrouterFlow
	if err := from.each(func(k vrouterFlowKey, v vrouterFlow) {
		if len(keys) < int(d.maps.Flows.MaxEntries()) {
			keys, values = append(keys, k), append(values, v)
		}
	}); err != nil {
		return err
	}
	return to.put(keys, values)
}

// retire removes older generations once every link runs a program of this one.
func (d *Datapath) retire() error {
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
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
