package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"windtunnel/lab/child"
	"windtunnel/lab/units"
)

// VM is a running virtual machine.
type VM struct {
	Config         Config
	*child.Process // of QEMU
	paths          paths
	said           string // path of the file with QEMU's output

	mu    sync.Mutex
	vcpus []int // threads
}

// Start starts a VM, whose files are in folder. start starts the process in the node's
// namespace and on its CPUs. Start does not wait until the guest is up; Connect does.
func Start(c Config, folder string, start func(*exec.Cmd) error) (*VM, error) {
	if err := roomFor(c.Memory); err != nil {
		return nil, err
	}
	file := func(ending string) string { return filepath.Join(folder, "vm-"+c.Name+ending) }
	m := &VM{Config: c, paths: paths{file(".agent"), file(".qmp"), file("-console.log")}, said: file("-qemu.log")}
	for _, old := range []string{m.paths.agent, m.paths.qmp, m.paths.console} {
		if err := os.Remove(old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("make room for VM %s: %w", c.Name, err)
		}
	}
	log, err := os.Create(m.said)
	if err != nil {
		return nil, fmt.Errorf("make the log of VM %s: %w", c.Name, err)
	}
	defer log.Close()
	cmd := child.Command(context.Background(), argv(c, m.paths))
	cmd.Stdout, cmd.Stderr = log, log
	if m.Process, err = child.Start(cmd, start); err != nil {
		return nil, fmt.Errorf("start VM %s: %w", c.Name, err)
	}
	return m, nil
}

// Connect returns the connection to the guest's agent, which answers once the
// guest is up, and pins the virtual CPUs: each to a separate CPU if there are enough in
// cpus, else all to all of cpus.
func (m *VM) Connect(ctx context.Context, cpus []int) (net.Conn, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.Ended:
			cancel(errors.New("QEMU has ended"))
		case <-ctx.Done():
		}
	}()
	q, err := dialQMP(ctx, m.paths.qmp)
	if err != nil {
		return nil, m.Fail(ctx, err)
	}
	defer q.conn.Close()
	threads, err := q.vcpus()
	if err != nil {
		return nil, m.Fail(ctx, err)
	}
	if err := m.pin(threads, cpus); err != nil {
		return nil, m.Fail(ctx, err)
	}
	m.mu.Lock()
	m.vcpus = threads
	m.mu.Unlock()
	conn, err := dial(ctx, m.paths.agent)
	if err != nil {
		return nil, m.Fail(ctx, err)
	}
	return conn, nil
}

// Fail adds the reason for the VM's end, if it has ended, and the last lines of its
// console to an error.
func (m *VM) Fail(ctx context.Context, err error) error {
	select {
	case <-m.Ended:
		err = fmt.Errorf("%w; QEMU has ended (%v)", err, m.State())
	case <-time.After(2 * time.Second): // the connection breaks a little before the process has ended, on a busy machine more than 0.1 s
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("boot VM %s: %w%s", m.Config.Name, err, m.LastWords())
}

// LastWords returns QEMU's output and the last lines of the guest's console.
func (m *VM) LastWords() string {
	var b strings.Builder
	for _, log := range []struct{ who, path string }{{"QEMU said", m.said}, {"its console showed last", m.paths.console}} {
		if text := child.LastLines(log.path); text != "" {
			fmt.Fprintf(&b, "; %s:\n%s", log.who, text)
		}
	}
	if b.Len() == 0 {
		return "; it printed nothing"
	}
	return b.String()
}

// Threads returns the threads of the virtual CPUs, in their order; none before Connect.
func (m *VM) Threads() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]int(nil), m.vcpus...)
}

// pin gives each virtual CPU a separate CPU if there are enough. Further CPUs are for
// QEMU's other threads and for vhost, so that they do not take time
// from the guest.
func (m *VM) pin(vcpus, cpus []int) error {
	if len(vcpus) > len(cpus) {
		return nil // all threads share QEMU's CPUs
	}
	for i, thread := range vcpus {
		if err := pinTo(thread, cpus[i:i+1]); err != nil {
			return fmt.Errorf("pin virtual CPU %d to CPU %d: %w", i, cpus[i], err)
		}
	}
	rest := cpus[len(vcpus):]
	if len(rest) == 0 {
		return nil
	}
	others, err := m.otherThreads(vcpus)
	if err != nil {
		return err
	}
	for _, thread := range others {
		// A thread that just ended needs no CPU.
		if err := pinTo(thread, rest); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin thread %d of QEMU to CPUs %v: %w", thread, rest, err)
		}
	}
	return nil
}

func pinTo(thread int, cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	return unix.SchedSetaffinity(thread, &set)
}

// otherThreads lists QEMU's threads without the virtual CPUs. They include vhost's,
// which before Linux 6.4 are threads of the kernel with QEMU's number in their name.
func (m *VM) otherThreads(vcpus []int) ([]int, error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", m.PID()))
	if err != nil {
		return nil, err
	}
	kernel, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return nil, err
	}
	vhost := fmt.Sprintf("vhost-%d", m.PID())
	for _, path := range kernel {
		if name, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(name)) == vhost {
			paths = append(paths, path)
		}
	}
	var threads []int
	for _, path := range paths {
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, fmt.Errorf("list the threads of VM %s: %w", m.Config.Name, err)
		}
		if !slices.Contains(vcpus, id) {
			threads = append(threads, id)
		}
	}
	return threads, nil
}

// Stop ends the VM at once: it has no disk to write.
func (m *VM) Stop() error {
	if err := m.Process.Stop(0); err != nil {
		return fmt.Errorf("end VM %s: %w", m.Config.Name, err)
	}
	var errs []error
	for _, path := range []string{m.paths.agent, m.paths.qmp, m.paths.console, m.said} {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// reserve is the memory that QEMU and other programs need beside the VM, in bytes.
const reserve = 256 << 20

// roomFor returns an error if the machine has too little free memory for a VM.
func roomFor(memory int64) error {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return fmt.Errorf("read how much memory a VM may have: %w", err)
	}
	info, err := proc.Meminfo()
	if err != nil {
		return fmt.Errorf("read how much memory a VM may have: %w", err)
	}
	if a := info.MemAvailableBytes; a != nil && *a < uint64(memory+reserve) {
		return fmt.Errorf("a VM with %s of memory needs %s including QEMU, but %s are available: give the VM less memory, or end other programs", units.FormatBytes(memory), units.FormatBytes(memory+reserve), units.FormatBytes(int64(*a)))
	}
	return nil
}
