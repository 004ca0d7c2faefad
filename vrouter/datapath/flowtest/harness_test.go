package flowtest

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/vrouter/layout"
)

// harness is the programs and the maps that they use, private to one test.
type harness struct {
	t           testing.TB
	Admit       *ebpf.Program `ebpf:"run_admit"`
	Choose      *ebpf.Program `ebpf:"run_choose_member"`
	Vifs        *ebpf.Map     `ebpf:"vifs"`
	Policies    *ebpf.Map     `ebpf:"policies"`
	Generations *ebpf.Map     `ebpf:"policy_generations"`
	Flows       *ebpf.Map     `ebpf:"flows"`
	Fragments   *ebpf.Map     `ebpf:"fragments"`
	Members     *ebpf.Map     `ebpf:"members"`
	Drops       *ebpf.Map     `ebpf:"drops"`
	Traces      *ebpf.Map     `ebpf:"traces"`
}

// direction of a packet, as the vif sees it.
type direction uint32

const (
	fromWorkload direction = 0
	toWorkload   direction = 1
)

// The vif that tests use, and its key in vifs.
const (
	vifKey = 11
	vifID  = 3
)

// leastHZ is the least number of ticks (jiffies) in a second that a kernel can have.
const leastHZ = 100

const (
	idleSeconds       = 100
	unansweredSeconds = 30
	closedSeconds     = 10
)

// Verdicts of admit.
const (
	admitted    = 0
	denied      = -int32(bpfDropReasonDROP_POLICY)
	full        = -int32(bpfDropReasonDROP_FLOW_TABLE_FULL)
	overQuota   = -int32(bpfDropReasonDROP_FLOW_QUOTA)
	malformed   = -int32(bpfDropReasonDROP_MALFORMED)
	withoutHead = -int32(bpfDropReasonDROP_FRAGMENT_WITHOUT_HEAD)
	noVif       = -int32(bpfDropReasonDROP_NO_VIF)
)

// enum flow_action and flow.tcp: macros and unused enums do not show in the object's types.
const (
	flowForward, flowDrop = 0, 1

	tcpSyn, tcpEstablished, tcpFinOut, tcpFinIn, tcpRst = 1, 2, 4, 8, 16

	fragmentHeads = 16
)

// load loads the programs, with a policed vif and timeouts, after change has
// had its way with what is loaded.
func load(t testing.TB, change ...func(*ebpf.CollectionSpec)) *harness {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading eBPF programs needs root")
	}
	must.Succeed(t, rlimit.RemoveMemlock())
	spec := must.Get(loadBpf())(t)
	flowTimes(idleSeconds, unansweredSeconds, closedSeconds)(spec)
	for _, c := range change {
		c(spec)
	}
	h := &harness{t: t}
	options := &ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}}
	if err := spec.LoadAndAssign(h, options); err != nil {
		var verifier *ebpf.VerifierError
		if errors.As(err, &verifier) {
			t.Fatalf("%+v", verifier)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{h.Admit, h.Choose, h.Vifs, h.Policies, h.Generations,
			h.Flows, h.Fragments, h.Members, h.Drops, h.Traces} {
			c.Close()
		}
	})
	h.put(h.Vifs, uint32(vifKey), layout.Vif{ID: vifID, VRF: 7, Flags: layout.VifPolicy})
	return h
}

// flowTimes sets the times after which flows expire, in seconds.
func flowTimes(idle, unanswered, closed uint32) func(*ebpf.CollectionSpec) {
	return func(s *ebpf.CollectionSpec) {
		for name, n := range map[string]uint32{"flow_idle": idle, "flow_unanswered": unanswered, "flow_closed": closed} {
			if err := s.Variables[name].Set(n); err != nil {
				panic(err)
			}
		}
	}
}

func flowLimit(n uint32) func(*ebpf.CollectionSpec) {
	return func(s *ebpf.CollectionSpec) { s.Maps["flows"].MaxEntries = n }
}

// quotas lets the programs enforce quotas in a flow table of n entries.
func quotas(n uint32) func(*ebpf.CollectionSpec) {
	return func(s *ebpf.CollectionSpec) {
		s.Maps["flows"].MaxEntries = n
		if err := s.Variables["flow_limit"].Set(n); err != nil {
			panic(err)
		}
	}
}

func traced(s *ebpf.CollectionSpec) {
	if err := s.Variables["tracing"].Set(uint32(1)); err != nil {
		panic(err)
	}
}

func (h *harness) put(m *ebpf.Map, key, value any) {
	h.t.Helper()
	if err := m.Put(key, value); err != nil {
		h.t.Fatalf("write %v of %v: %v", key, m, err)
	}
}

// skbContext is struct __sk_buff of linux/bpf.h.
type skbContext struct {
	_        [2]uint32
	Mark     uint32
	_        [9]uint32
	CB       [5]uint32
	_        [18]uint32
	_        uint32
	_        uint64
	_        uint64
	_        uint32
	GsoSegs  uint32
	_        uint64
	GsoSize  uint32
	_        uint32
	Hwtstamp uint64
}

func (h *harness) run(p *ebpf.Program, c skbContext, frame []byte) int32 {
	h.t.Helper()
	result, err := p.Run(&ebpf.RunOptions{Data: frame, Context: c})
	if err != nil {
		h.t.Fatalf("run %v on %d bytes: %v", p, len(frame), err)
	}
	return int32(result)
}

// admit hands the frame to the vif's judge and returns its verdict.
func (h *harness) admit(d direction, frame []byte) int32 {
	h.t.Helper()
	return h.admitAt(vifKey, d, frame)
}

// admitAt does the same at the vif that has this key in the map vifs.
func (h *harness) admitAt(key uint32, d direction, frame []byte) int32 {
	h.t.Helper()
	return h.run(h.Admit, skbContext{Mark: key, CB: [5]uint32{uint32(d)}}, frame)
}

func (h *harness) expect(what string, want int32, d direction, frame []byte) {
	h.t.Helper()
	if got := h.admit(d, frame); got != want {
		h.t.Errorf("%s: verdict %d, want %d", what, got, want)
	}
}

// flowKey is the key of a flow between the workload's and the other end.
func flowKey(protocol uint8, local, remote netip.AddrPort) layout.FlowKey {
	return layout.FlowKey{
		Vif: vifID, Protocol: protocol,
		Local:      layout.Address{Bytes: local.Addr().As16()},
		Remote:     layout.Address{Bytes: remote.Addr().As16()},
		LocalPort:  bigEndian(local.Port()),
		RemotePort: bigEndian(remote.Port()),
	}
}

// flow returns the entry, which must exist.
func (h *harness) flow(k layout.FlowKey) layout.Flow {
	h.t.Helper()
	var f layout.Flow
	if err := h.Flows.Lookup(k, &f); err != nil {
		h.t.Fatalf("flow %+v: %v", k, err)
	}
	return f
}

func (h *harness) count(m *ebpf.Map) int {
	h.t.Helper()
	return len(h.keys(m))
}

// heads returns the number of first fragments that were stored for a vif and a direction.
func (h *harness) heads(vif uint32, d direction) uint32 {
	h.t.Helper()
	var f bpfFragmentHeads
	must.Succeed(h.t, h.Fragments.Lookup(vif*2+uint32(d), &f))
	return f.Begun
}

// keys are those of all entries, as the kernel gives them.
func (h *harness) keys(m *ebpf.Map) (all [][]byte) {
	h.t.Helper()
	var key, value []byte
	entries := m.Iterate()
	for entries.Next(&key, &value) {
		all = append(all, append([]byte(nil), key...))
	}
	must.Succeed(h.t, entries.Err())
	return all
}

// forget empties the flow table.
func (h *harness) forget() {
	h.t.Helper()
	for _, k := range h.keys(h.Flows) {
		must.Succeed(h.t, h.Flows.Delete(k))
	}
}

// age moves an entry's last packet into the past.
func (h *harness) age(k layout.FlowKey, seconds int) {
	h.t.Helper()
	f := h.flow(k)
	f.SeenNs, f.SeenTick = monotonic(h.t)-uint64(seconds)*1e9, f.SeenTick-uint32(seconds)*leastHZ
	h.put(h.Flows, k, f)
}

// monotonic is the clock of bpf_ktime_get_ns.
func monotonic(t testing.TB) uint64 {
	var now unix.Timespec
	must.Succeed(t, unix.ClockGettime(unix.CLOCK_MONOTONIC, &now))
	return uint64(now.Nano())
}
