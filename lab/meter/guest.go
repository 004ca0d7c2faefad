package meter

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// Guest is a virtual machine whose CPU time is metered separately.
type Guest struct {
	Name    string // name of the endpoint
	PID     int    // process that runs the machine
	Threads []int  // threads of its virtual CPUs
	// Emulated: the virtual CPUs' threads translate the guest's code, so that
	// the times of guest and emulation cannot be separated.
	Emulated bool
}

// GuestReading is the CPU time of a guest since it started.
type GuestReading struct {
	Name string `json:"name"`
	// CPU is the time in the guest, in nanoseconds, known in ticks. For an
	// emulated guest it is all time of its virtual CPUs' threads.
	CPU int64 `json:"cpu_ns"`
}

// AddGuest adds a virtual machine to the following readings.
func (m *Meter) AddGuest(g Guest) {
	m.full.Lock()
	defer m.full.Unlock()
	m.guests = append(m.guests, g)
}

// readGuests reads all guests. A guest whose threads are missing has ended;
// that is an error, because the trial then has no figures.
func (m *Meter) readGuests() ([]GuestReading, error) {
	var all []GuestReading
	for _, g := range m.guests {
		r := GuestReading{Name: g.Name}
		for _, thread := range g.Threads {
			ran, err := g.thread(thread)
			if errors.Is(err, os.ErrNotExist) {
				return nil, fmt.Errorf("read the CPU time of VM %s: it has ended", g.Name)
			}
			if err != nil {
				return nil, fmt.Errorf("read the CPU time of VM %s: %w", g.Name, err)
			}
			r.CPU += ran
		}
		all = append(all, r)
	}
	return all, nil
}

// thread returns the CPU time of a virtual CPU's thread, ns.
func (g Guest) thread(id int) (int64, error) {
	qemu, err := procfs.NewProc(g.PID)
	if err != nil {
		return 0, err
	}
	t, err := qemu.Thread(id)
	if err != nil {
		return 0, err
	}
	if g.Emulated {
		s, err := t.Schedstat()
		return int64(s.RunningNanoseconds), err
	}
	s, err := t.Stat()
	return int64(s.GuestTime) * tickNanoseconds, err
}

// guests sets the CPU time of each guest in the window, in seconds by name.
func (d *Delta) guests(a, b []GuestReading) error {
	before := map[string]int64{}
	for _, g := range a {
		before[g.Name] = g.CPU
	}
	for _, g := range b {
		was, ok := before[g.Name]
		if !ok {
			return errGone("VM " + g.Name)
		}
		used, err := since("CPU time of VM "+g.Name, uint64(was), uint64(g.CPU))
		if err != nil {
			return err
		}
		if d.Guests == nil {
			d.Guests = map[string]float64{}
		}
		d.Guests[g.Name] = float64(used) / 1e9
	}
	return nil
}
