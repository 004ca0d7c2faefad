package profile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// marker finds the samples that belong to the testbed's wire. The wire uses the same kernel
// functions as other devices, so a stack does not show it. But the wire has a clock: a BPF
// map with the time that each CPU spends on the wire, which the meter subtracts from the
// node's figures. At every sample a BPF program reads this clock, and stores the time if
// the clock runs.
type marker struct {
	program *ebpf.Program
	ring    *ebpf.Map
	reader  *ringbuf.Reader
	clocks  []*ebpf.Map
	marks   map[int][]uint64 // by CPU: CLOCK_MONOTONIC, ns, in order
}

// The wire's clock: a map of this name with one of this structure for each CPU.
const (
	clockMap    = "clocks"
	clockStruct = "clock"
	maxClocks   = 8 // testbeds that stand at the same time and are looked at
)

// newMarker attaches the program to the events. It returns nil if no testbed has a wire.
func newMarker(events []*event) (*marker, error) {
	clocks, layout, err := findClocks()
	if err != nil || len(clocks) == 0 {
		return nil, err
	}
	m := &marker{clocks: clocks, marks: map[int][]uint64{}}
	if err := m.attach(events, layout); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// clockLayout has the offsets of a clock's fields, in bytes.
type clockLayout struct{ receiving, transmitting, ours int16 }

func findClocks() ([]*ebpf.Map, clockLayout, error) {
	var found []*ebpf.Map
	var layout clockLayout
	for id := ebpf.MapID(0); len(found) < maxClocks; {
		next, err := ebpf.MapGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			return found, layout, fmt.Errorf("look for the wire's clock among the BPF maps (needs CAP_SYS_ADMIN): %w", err)
		}
		id = next
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // gone meanwhile
		}
		l, ok := clockOf(m)
		if !ok || len(found) > 0 && l != layout {
			m.Close()
			continue
		}
		found, layout = append(found, m), l
	}
	return found, layout, nil
}

// clockOf recognises a wire's clock by its name and its fields.
func clockOf(m *ebpf.Map) (l clockLayout, ok bool) {
	info, err := m.Info()
	if err != nil || info.Name != clockMap || info.Type != ebpf.PerCPUArray {
		return l, false
	}
	id, ok := info.BTFID()
	if !ok {
		return l, false
	}
	handle, err := btf.NewHandleFromID(id)
	if err != nil {
		return l, false
	}
	defer handle.Close()
	spec, err := handle.Spec(nil)
	if err != nil {
		return l, false
	}
	var clock *btf.Struct
	if err := spec.TypeByName(clockStruct, &clock); err != nil {
		return l, false
	}
	offsets := map[string]*int16{"rx_started": &l.receiving, "tx_started": &l.transmitting, "tx_ours": &l.ours}
	for _, member := range clock.Members {
		if p := offsets[member.Name]; p != nil {
			*p = int16(member.Offset.Bytes())
			delete(offsets, member.Name)
		}
	}
	return l, len(offsets) == 0
}

// markSize is the size of a mark: 8 bytes of time, 4 of the CPU's number, 4 unused.
const markSize = 16

func (m *marker) attach(events []*event, l clockLayout) error {
	var err error
	m.ring, err = ebpf.NewMap(&ebpf.MapSpec{Name: "wt_marks", Type: ebpf.RingBuf, MaxEntries: 1 << 20})
	if err != nil {
		return fmt.Errorf("make a ring for the marks (Linux 5.8): %w", err)
	}
	if m.reader, err = ringbuf.NewReader(m.ring); err != nil {
		return fmt.Errorf("read the marks: %w", err)
	}
	m.program, err = ebpf.NewProgram(&ebpf.ProgramSpec{Name: "wt_mark", Type: ebpf.PerfEvent, License: "GPL", Instructions: m.instructions(l)})
	if err != nil {
		return fmt.Errorf("load the program that looks at the wire's clock: %w", err)
	}
	for _, e := range events {
		if err := unix.IoctlSetInt(e.fd, unix.PERF_EVENT_IOC_SET_BPF, m.program.FD()); err != nil {
			return fmt.Errorf("attach the program that looks at the wire's clock to CPU %d: %w", e.cpu, err)
		}
	}
	return nil
}

// instructions: if any clock has begun to receive, or to transmit for a port,
// note time and CPU; the sample is taken in any case.
func (m *marker) instructions(l clockLayout) asm.Instructions {
	var code asm.Instructions
	for i, clock := range m.clocks {
		next := fmt.Sprintf("clock%d", i+1)
		code = append(code,
			asm.StoreImm(asm.RFP, -4, 0, asm.Word).WithSymbol(fmt.Sprintf("clock%d", i)),
			asm.LoadMapPtr(asm.R1, clock.FD()),
			asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4),
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, next),
			asm.LoadMem(asm.R1, asm.R0, l.receiving, asm.DWord),
			asm.JNE.Imm(asm.R1, 0, "note"),
			asm.LoadMem(asm.R1, asm.R0, l.transmitting, asm.DWord),
			asm.JEq.Imm(asm.R1, 0, next),
			asm.LoadMem(asm.R1, asm.R0, l.ours, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "note"),
		)
	}
	return append(code,
		asm.Ja.Label("take").WithSymbol(fmt.Sprintf("clock%d", len(m.clocks))),
		asm.FnKtimeGetNs.Call().WithSymbol("note"),
		asm.StoreMem(asm.RFP, -16, asm.R0, asm.DWord),
		asm.FnGetSmpProcessorId.Call(),
		asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord),
		asm.LoadMapPtr(asm.R1, m.ring.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16),
		asm.Mov.Imm(asm.R3, markSize),
		asm.Mov.Imm(asm.R4, unix.BPF_RB_NO_WAKEUP),
		asm.FnRingbufOutput.Call(),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("take"),
		asm.Return(),
	)
}

// drain reads the present marks. A nil marker has none.
func (m *marker) drain() error {
	if m == nil {
		return nil
	}
	m.reader.SetDeadline(time.Unix(1, 0)) // do not wait
	var r ringbuf.Record
	for {
		err := m.reader.ReadInto(&r)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the marks of the wire's work: %w", err)
		}
		if len(r.RawSample) < markSize {
			return fmt.Errorf("read the marks of the wire's work: one has %d bytes", len(r.RawSample))
		}
		cpu := int(native.Uint32(r.RawSample[8:]))
		m.marks[cpu] = append(m.marks[cpu], native.Uint64(r.RawSample))
	}
}

// mark marks the samples of a CPU: a mark belongs to the sample that is taken
// at the same moment. Which of the two times comes first depends on the kernel.
func (m *marker) mark(cpu int, samples []sample) {
	if m == nil {
		return
	}
	const soon = 200_000 // ns; a virtual machine may stand still in between
	marks := m.marks[cpu]
	slices.Sort(marks)
	i := 0
	for _, t := range marks {
		for i+1 < len(samples) && apart(samples[i+1].time, t) <= apart(samples[i].time, t) {
			i++
		}
		if i < len(samples) && apart(samples[i].time, t) < soon {
			samples[i].wire = true
		}
	}
}

func apart(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return b - a
}

func (m *marker) close() error {
	if m == nil {
		return nil
	}
	var errs []error
	if m.reader != nil {
		errs = append(errs, m.reader.Close())
	}
	for _, c := range append([]*ebpf.Map{m.ring}, m.clocks...) {
		if c != nil {
			errs = append(errs, c.Close())
		}
	}
	if m.program != nil {
		errs = append(errs, m.program.Close())
	}
	return errors.Join(errs...)
}
