package datapath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"structs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"windtunnel/vrouter/layout"
)

// Exported is the map of what an exporter has reported of each flow. It outlives the agent, as the flows do: so
// the next agent reports only what the flows have sent since. Programs do not use it.
type Exported struct {
	t    table[exportedKey, Report]
	path string
}

// FlowID identifies a flow. A later flow can have the same key.
type FlowID struct {
	Key     FlowKey
	Created uint64 // Flow.Created
}

// Report is what has been reported of a flow.
type Report struct {
	_       structs.HostLayout
	Packets [2]uint64
	Bytes   [2]uint64
	Until   int64 // time of the last reported packet, Unix time in milliseconds
}

type exportedKey struct {
	_       structs.HostLayout
	Key     layout.FlowKey
	Pad     uint32
	Created uint64
}

const exportedName = "exported_flows"

// OpenExported opens the map, and creates it if it is missing. It copies the entries of older generations of maps.
func (d *Datapath) OpenExported() (*Exported, error) {
	spec := &ebpf.MapSpec{
		Name: exportedName, Type: ebpf.Hash, KeySize: 56, ValueSize: 40, MaxEntries: d.options.Limits.Flows,
		Flags: unix.BPF_F_NO_PREALLOC, Pinning: ebpf.PinByName,
	}
	path := filepath.Join(d.generation, exportedName)
	_, missing := os.Stat(path)
	m, err := ebpf.NewMapWithOptions(spec, ebpf.MapOptions{PinPath: d.generation})
	if err != nil {
		return nil, fmt.Errorf("create the map %s: %w", exportedName, err)
	}
	e := &Exported{table[exportedKey, Report]{exportedName, m, false}, path}
	if missing == nil {
		return e, nil
	}
	dirs, err := d.others()
	for _, dir := range dirs {
		if isKept(dir) {
			err = errors.Join(err, adopt[exportedKey, Report](dir, exportedName, m, nil))
		}
	}
	return e, err
}

// Load returns all reports.
func (e *Exported) Load() (map[FlowID]Report, error) {
	all := map[FlowID]Report{}
	err := e.t.each(func(k exportedKey, r Report) { all[FlowID{decodeFlowKey(k.Key), k.Created}] = r })
	return all, err
}

// Save writes reports, and deletes those of flows that have ended.
func (e *Exported) Save(reports map[FlowID]Report, ended []FlowID) error {
	keys, values := make([]exportedKey, 0, len(reports)), make([]Report, 0, len(reports))
	for id, r := range reports {
		keys, values = append(keys, encodeFlowID(id)), append(values, r)
	}
	gone := make([]exportedKey, len(ended))
	for i, id := range ended {
		gone[i] = encodeFlowID(id)
	}
	return errors.Join(e.t.put(keys, values), e.t.remove(gone))
}

func encodeFlowID(id FlowID) exportedKey {
	k := id.Key
	return exportedKey{Created: id.Created, Key: layout.FlowKey{
		Vif: k.Vif, Protocol: k.Protocol, Local: layout.AddressOf(k.Local.Addr()), Remote: layout.AddressOf(k.Remote.Addr()),
		LocalPort: layout.Network16(k.Local.Port()), RemotePort: layout.Network16(k.Remote.Port()),
	}}
}

// Close closes the map, which stays.
func (e *Exported) Close() error { return e.t.m.Close() }

// Remove deletes the map.
func (e *Exported) Remove() error { return errors.Join(e.t.m.Close(), os.Remove(e.path)) }
