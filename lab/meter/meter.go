// Package meter reads the cost of a node's network: CPU time by CPU, the CPU
// time of the tools, TCP's state, and the counters of every device on the path.
// It turns two readings into figures.
//
// A Meter runs on the node. The arithmetic over its readings (Window, Metrics,
// Hops, Points) does not use the kernel and runs anywhere.
package meter

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Config says what a meter reads.
type Config struct {
	Node       string      // the node's name, copied to every reading
	CPUs       []int       // the node's own
	Namespaces []Namespace // the node itself and its containers
	Devices    []Device    // the hops, in path order from the endpoint to the fabric
	// FineIdle reads idle time to the nanosecond; see FineIdle. Otherwise it is
	// known in ticks of 10 ms.
	FineIdle bool
	Groups   []Group // see FindGroups
	// Limited is the control group whose CPU quota is part of the experiment; "" if none is.
	Limited string
}

// Meter reads one node. Several goroutines may call its methods.
type Meter struct {
	config     Config
	slot       map[int]int // CPU number to place in config.CPUs
	namespaces []*namespace
	series     []seriesDevice
	proc       procfs.FS

	full      sync.Mutex // held during a full reading. To hold both mutexes, lock full first.
	processes tree
	guests    []Guest
	ports     PortRange
	quotas    []quotaFile
	fullBuf   []byte

	light  sync.Mutex // held while CPU times are read. A full reading releases it after that, so that light readings need not wait
	stat   procFile
	timers procFile   // closed where config.FineIdle is not set
	wall   int64      // wall clock of the current reading
	times  []CPUTimes // by slot, of the current reading
	seen   []bool     // by slot
	buf    []byte
}

// seriesDevice is a device of the light readings.
type seriesDevice struct {
	namespace *namespace
	name      string
}

// New opens a meter. It keeps its namespaces alive until Close.
func New(config Config) (*Meter, error) {
	if len(config.CPUs) == 0 {
		return nil, errors.New("make a meter: no CPUs given; a node needs at least one of its own")
	}
	m := &Meter{config: config, stat: closed, timers: closed,
		slot: map[int]int{}, buf: make([]byte, 64<<10), fullBuf: make([]byte, 64<<10),
		times: make([]CPUTimes, len(config.CPUs)), seen: make([]bool, len(config.CPUs))}
	for i, c := range config.CPUs {
		m.slot[c] = i
	}
	if err := m.open(); err != nil {
		m.Close()
		return nil, fmt.Errorf("make a meter for node %s: %w", config.Node, err)
	}
	return m, nil
}

func (m *Meter) open() (err error) {
	if m.stat, err = openProc(statFile); err != nil {
		return err
	}
	if m.proc, err = procfs.NewDefaultFS(); err != nil {
		return err
	}
	if err := m.openNamespaces(); err != nil {
		return err
	}
	m.watchQuotas(os.Getpid())
	if !m.config.FineIdle {
		return nil
	}
	m.timers, err = openProc(timerListFile)
	return err
}

func (m *Meter) openNamespaces() error {
	byName := map[string]*namespace{}
	for _, spec := range m.config.Namespaces {
		var devices []Device
		for _, d := range m.config.Devices {
			if d.Namespace == spec.Name {
				devices = append(devices, d)
			}
		}
		n, err := openNamespace(spec, devices)
		if err != nil {
			return err
		}
		m.namespaces = append(m.namespaces, n)
		byName[spec.Name] = n
	}
	for _, d := range m.config.Devices {
		n := byName[d.Namespace]
		if n == nil {
			return fmt.Errorf("device %s is in namespace %q, which the meter was not given", d.Name, d.Namespace)
		}
		if d.Series {
			m.series = append(m.series, seriesDevice{n, d.Name})
		}
	}
	return nil
}

// FineIdle reports whether a meter may read idle time to the nanosecond, from
// /proc/timer_list. Only root may read that file. It lists every timer of every
// CPU, so on a large machine reading it would disturb the measurement. All
// meters of a run must use the same method: call FineIdle once.
func FineIdle() bool {
	const affordable = 300 * time.Microsecond
	f, err := openProc(timerListFile)
	if err != nil {
		return false
	}
	defer f.close()
	buf, best := make([]byte, 64<<10), affordable+1
	for range 10 { // use the fastest: other programs use the CPU too
		start := time.Now()
		found := 0
		text, err := f.read(&buf)
		if err == nil {
			err = eachIdleClock(text, func(int, idleClock) { found++ })
		}
		if err != nil || found == 0 {
			return false
		}
		best = min(best, time.Since(start))
	}
	return best <= affordable
}

// IdleMethod describes how idle time is read.
func IdleMethod(fine bool) string {
	if fine {
		return "idle time to the nanosecond (/proc/timer_list)"
	}
	return "idle time in ticks of 10 ms (/proc/stat)"
}

// Close closes everything that is open.
func (m *Meter) Close() {
	m.full.Lock()
	defer m.full.Unlock()
	m.light.Lock()
	defer m.light.Unlock()
	for _, n := range m.namespaces {
		n.close()
	}
	m.namespaces, m.series = nil, nil
	for _, f := range []*procFile{&m.stat, &m.timers} {
		f.close()
		*f = closed
	}
	for _, q := range m.quotas {
		q.file.close()
	}
	m.quotas = nil
}

// Track adds a tool's process, with its threads and all descendants, under a
// label such as "sender".
func (m *Meter) Track(label string, pid int) {
	m.full.Lock()
	defer m.full.Unlock()
	m.processes.track(label, pid)
	m.watchQuotas(pid)
}

// SetPorts selects the sockets that readings list.
func (m *Meter) SetPorts(r PortRange) {
	m.full.Lock()
	defer m.full.Unlock()
	m.ports = r
}

// Read takes a full reading. It reads the CPU times first. If the reading starts a window, the CPU time of the other steps is part of the
// window. If it ends a window, this time is not part of it. With many namespaces or connections these steps take tenths of a second.
// Light readings do not wait for them. Between the steps Read waits, so that the traffic gets the CPU; see breather.
func (m *Meter) Read() (Reading, error) {
	m.full.Lock()
	defer m.full.Unlock()
	r := Reading{Node: m.config.Node, CPUs: make(map[int]CPUTimes, len(m.config.CPUs))}
	err := m.readTimes(&r)
	if err != nil {
		return r, err
	}
	breathe := breather()
	if r.Guests, err = m.readGuests(); err != nil {
		return r, err
	}
	if r.Processes, err = m.processes.read(); err != nil {
		return r, err
	}
	breathe()
	if r.Groups, err = readGroups(m.config.Groups); err != nil {
		return r, err
	}
	if r.Throttled, err = m.readQuotas(); err != nil {
		return r, err
	}
	if r.Self, err = selfCPU(); err != nil {
		return r, err
	}
	if err := m.readSoftnet(&r); err != nil {
		return r, err
	}
	for _, n := range m.namespaces {
		breathe()
		nr, err := n.read(m.ports, &m.fullBuf, breathe)
		if err != nil {
			return r, err
		}
		r.Namespaces = append(r.Namespaces, nr)
	}
	return r, nil
}

// breather returns a function that a full reading calls after each step. It waits as long as the step took, at most 2 ms. The
// reading has the highest priority: without these waits, no traffic would run on the node's CPU from its start to its end.
func breather() func() {
	const most = 2 * time.Millisecond
	began := time.Now()
	return func() {
		time.Sleep(min(time.Since(began), most))
		began = time.Now()
	}
}

// readTimes sets the clocks and the CPU times of a full reading.
func (m *Meter) readTimes(r *Reading) (err error) {
	m.light.Lock()
	defer m.light.Unlock()
	if r.Mono, err = m.readCPUs(); err != nil {
		return err
	}
	r.Wall = m.wall
	for i, cpu := range m.config.CPUs {
		if m.seen[i] {
			r.CPUs[cpu] = m.times[i]
		}
	}
	return nil
}

// readCPUs fills times and seen, and returns when it did so.
func (m *Meter) readCPUs() (mono int64, err error) {
	// 10 counters of 20 digits and the CPU's name take at most 220 bytes a
	// line.
	highest := slices.Max(m.config.CPUs)
	text, err := m.stat.readStart(&m.buf, min((highest+2)*220, 1<<20))
	if err != nil {
		return 0, err
	}
	if mono, err = monotonic(); err != nil {
		return 0, err
	}
	if m.wall, err = readClock(unix.CLOCK_REALTIME, "CLOCK_REALTIME"); err != nil {
		return 0, err
	}
	clear(m.seen)
	// The last line may be incomplete.
	err = eachCPU(text[:bytes.LastIndexByte(text, '\n')+1], func(cpu int, t CPUTimes) {
		if i, ok := m.slot[cpu]; ok && !m.seen[i] {
			m.times[i], m.seen[i] = t, true
		}
	})
	if err != nil || m.timers == closed {
		return mono, err
	}
	return mono, m.readIdle(mono)
}

func (m *Meter) readIdle(mono int64) error {
	text, err := m.timers.read(&m.buf)
	if err != nil {
		return err
	}
	return eachIdleClock(text, func(cpu int, c idleClock) {
		if i, ok := m.slot[cpu]; ok && m.seen[i] {
			m.times[i].FineIdle = c.idleAt(mono, m.times[i])
		}
	})
}

// Now is the clock of the readings: CLOCK_MONOTONIC in nanoseconds.
func Now() (int64, error) { return monotonic() }

func monotonic() (int64, error) { return readClock(unix.CLOCK_MONOTONIC, "CLOCK_MONOTONIC") }

// selfCPU is the CPU time of this process, all threads, in nanoseconds.
func selfCPU() (int64, error) {
	return readClock(unix.CLOCK_PROCESS_CPUTIME_ID, "CLOCK_PROCESS_CPUTIME_ID")
}

func readClock(clock int32, name string) (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return ts.Nano(), nil
}

// readSoftnet reads how many buffers each of the node's CPUs processed in the
// receive path of all namespaces (softnet_seq_show, net/core/net-procfs.c). Kernels
// before 5.14 do not print the CPU number. The line number then replaces it, which
// is correct if every CPU is online.
func (m *Meter) readSoftnet(r *Reading) error {
	stats, err := m.proc.NetSoftnetStat()
	if err != nil {
		return fmt.Errorf("read packets by CPU: %w", err)
	}
	r.Softnet = make(map[int]uint64, len(m.config.CPUs))
	for _, s := range stats {
		if _, ok := m.slot[int(s.Index)]; ok {
			r.Softnet[int(s.Index)] = uint64(s.Processed)
		}
	}
	return nil
}
