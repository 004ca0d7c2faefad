// Package datapath is the vrouter's eBPF programs, their maps, and where they
// are attached. Everything that it makes is pinned, so that packets go on
// while no program of ours runs.
//
// Devices are named by ifindex, of the network namespace of the calling thread. It must be
// the namespace in which Open was called.
package datapath

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Options of Open.
type Options struct {
	Pins      string // directory on a bpffs of this node alone; see MountPins
	Limits    Limits
	NoTCX     bool // attach by clsact filters, as kernels before 6.6 do
	NoXDP     bool // decapsulate in tc alone
	Times     FlowTimes
	Checksums Checksums
	Logger    *slog.Logger
}

// Datapath is the loaded programs and their maps.
type Datapath struct {
	options    Options
	generation string // directory of the maps' pins
	maps       vrouterMaps
	programs   vrouterPrograms
	ids        map[hook]ebpf.ProgramID // the programs' numbers
	nonce      nonce
	tc         *netlink.Handle // socket for filters, in the namespace in which Open was called
	swapping   swapping        // swaps of programs of links for ours
	grace      grace           // grace period of replaced nexthops
	metadata   func() error    // whether XDP metadata reaches tc; tested once
	services   services        // what SetServices wrote
	watch      FlowWatch       // WatchFlows
	preemptRT  bool            // the programs must not use their caches
	isNew      bool            // the maps are new, and nothing was written
}

// Open loads the programs, on the maps that are pinned where they are of the
// same layout and limits, else on new ones. Nothing is attached yet, and links
// that exist go on with the programs that they have until AttachVif and
// AttachFabric are called: so Apply comes first.
func Open(o Options) (*Datapath, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.WithDefaults()
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the limit on locked memory: %w (run as root)", err)
	}
	d := &Datapath{options: o, generation: filepath.Join(o.Pins, generationName(o.Limits)), metadata: sync.OnceValue(tryMetadata), preemptRT: isPreemptRT()}
	err := os.MkdirAll(d.linkDir(), 0o700)
	if err == nil {
		err = os.Mkdir(d.generation, 0o700)
		d.isNew = err == nil
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("make a place for pins: %w (is %s a bpf filesystem?)", err, o.Pins)
	}
	if err := d.load(); err != nil {
		return nil, err
	}
	err = d.openTC()
	if err == nil {
		d.ids, err = d.programIDs()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.adoptFlows(); err != nil {
		o.Logger.Warn("flows of the older maps are lost", "error", err)
	}
	if err := d.adoptServices(); err != nil {
		o.Logger.Warn("services of the older maps are lost", "error", err)
	}
	return d, nil
}

const linksName = "links"

func (d *Datapath) linkDir() string { return filepath.Join(d.options.Pins, linksName) }

// Close lets go of the programs and maps. What is pinned stays: packets go on.
func (d *Datapath) Close() error {
	if d.tc != nil {
		d.tc.Close()
	}
	return errors.Join(d.maps.Close(), d.programs.Close())
}

// openTC opens the socket for filters. There may be thousands of devices, and a socket for each
// request takes longer than the request.
func (d *Datapath) openTC() (err error) {
	if d.tc, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open netlink: %w", err)
	}
	return nil
}

// Remove detaches everything and removes the pins. The datapath is closed.
func (d *Datapath) Remove() error {
	attached, err := d.Attached()
	errs := []error{err}
	for _, a := range attached {
		errs = append(errs, d.Detach(a.Ifindex))
	}
	errs = append(errs, d.dropLink(hookLoop, loopback), d.removeFilter(hookLoop, loopback), d.removeHook(loopback))
	errs = append(errs, d.Close(), RemovePins(d.options.Pins))
	return errors.Join(errs...)
}

// RemoveStopped is Remove for a node whose agent is not running. It loads no program.
func RemoveStopped(pins string) error {
	d := &Datapath{options: Options{Pins: pins}}
	if err := os.MkdirAll(d.linkDir(), 0o700); err != nil {
		return fmt.Errorf("make a place for pins: %w", err)
	}
	if err := d.openTC(); err != nil {
		return err
	}
	return d.Remove()
}

// RemovePins removes every pin below a directory, of links first: it is how a
// node is taken down whose programs cannot be loaded any more. The kernel's own
// files on a bpffs stay.
func RemovePins(pins string) error {
	entries, err := os.ReadDir(pins)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	errs := []error{err, os.RemoveAll(filepath.Join(pins, linksName))}
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, os.RemoveAll(filepath.Join(pins, e.Name())))
		}
	}
	return errors.Join(errs...)
}
