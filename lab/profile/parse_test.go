package profile

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"windtunnel/internal/must"
	"windtunnel/lab/profile/category"
)

// rec makes a perf record of a kind; its size is filled in.
func rec(kind uint32, misc uint16, body ...any) []byte {
	b := native.AppendUint32(nil, kind)
	b = native.AppendUint16(b, misc)
	b = native.AppendUint16(b, 0)
	for _, x := range body {
		switch x := x.(type) {
		case uint32:
			b = native.AppendUint32(b, x)
		case uint64:
			b = native.AppendUint64(b, x)
		case string:
			b = append(append(b, x...), 0)
		}
	}
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	native.PutUint16(b[6:], uint16(len(b)))
	return b
}

func aSample() []byte {
	return rec(unix.PERF_RECORD_SAMPLE, 0, uint64(0xffffffff81000010), uint32(42), uint32(43), uint64(1e9), uint32(3), uint32(0),
		uint64(3), ^uint64(127), uint64(0xffffffff81000010), uint64(0xffffffff81000200))
}

func TestRecordsOfTheRingAreRead(t *testing.T) {
	r, err := parseRecord(aSample())
	must.Succeed(t, err)
	if r.pid != 42 || r.tid != 43 || r.time != 1e9 || len(r.chain) != 24 || native.Uint64(r.chain[8:]) != 0xffffffff81000010 {
		t.Errorf("sample: %+v", r)
	}
	r, err = parseRecord(rec(unix.PERF_RECORD_COMM, unix.PERF_RECORD_MISC_COMM_EXEC, uint32(7), uint32(7), "netperf"))
	if err != nil || r.pid != 7 || r.comm != "netperf" || r.misc&unix.PERF_RECORD_MISC_COMM_EXEC == 0 {
		t.Errorf("comm: %+v %v", r, err)
	}
	r, err = parseRecord(rec(unix.PERF_RECORD_FORK, 0, uint32(8), uint32(7), uint32(8), uint32(7), uint64(5)))
	if err != nil || r.pid != 8 || r.ppid != 7 {
		t.Errorf("fork: %+v %v", r, err)
	}
	r, err = parseRecord(rec(unix.PERF_RECORD_MMAP2, 0, uint32(7), uint32(7), uint64(0x1000), uint64(0x2000), uint64(0x3000), uint32(0), uint32(0), uint64(0), uint64(0), uint32(5), uint32(2), "/bin/x y"))
	if err != nil || r.mapped != (span{0x1000, 0x3000, 0x3000}) || r.file != "/bin/x y" {
		t.Errorf("mmap2: %+v %v", r, err)
	}
	r, err = parseRecord(rec(unix.PERF_RECORD_LOST, 0, uint64(1), uint64(12)))
	if err != nil || r.count != 12 {
		t.Errorf("lost: %+v %v", r, err)
	}
	cut := aSample()
	native.PutUint64(cut[headerSize+32:], 1<<60)
	for name, b := range map[string][]byte{"nothing": nil, "chain beyond": cut, "size beyond": aSample()[:40], "short": rec(unix.PERF_RECORD_FORK, 0, uint32(8))} {
		if _, err := parseRecord(b); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(aSample())
	f.Add(rec(unix.PERF_RECORD_COMM, 0, uint32(7), uint32(7), "x"))
	f.Add(rec(unix.PERF_RECORD_MMAP2, 0, uint64(1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err == nil && len(r.chain)%8 != 0 {
			t.Errorf("a chain of %d bytes", len(r.chain))
		}
	})
}

const someSymbols = `ffffffff81000000 T _stext
ffffffff81000000 T __pfx_do_one
ffffffff81000010 T do_one
ffffffff81000100 t two.isra.0
ffffffff81000180 d not_code
ffffffffc0001000 t veth_xmit	[veth]
ffffffffc0002000 t bpf_prog_808d6e06d03b4584_find_head	[bpf]
ffffffffc0003000 t bpf_prog_808d6e06d03b4585	[bpf]
ffffffffc0004000 t bpf_trampoline_6442536467	[bpf]
`

func TestKernelAddressesAreNamedByTheFunctionThatHoldsThem(t *testing.T) {
	k, err := parseKallsyms([]byte(someSymbols))
	must.Succeed(t, err)
	for address, want := range map[uint64]string{
		0xffffffff81000010: "do_one", 0xffffffff810000ff: "do_one", 0xffffffff81000190: "two.isra.0",
		0xffffffffc0001044: "veth_xmit", 0xffffffffc0002001: "bpf:find_head", 0xffffffffc0003001: "bpf:808d6e06d03b4585",
		0xffffffffc0004001: "bpf_trampoline_6442536467", 0x1000: "0x1000",
	} {
		if got := kernelFunction(k, address); got != want {
			t.Errorf("%#x: %q, want %q", address, got, want)
		}
	}
	_, err = parseKallsyms([]byte("0000000000000000 T _text\n0000000000000000 T do_one\n"))
	if !errors.Is(err, errHidden) || !strings.Contains(err.Error(), "kptr_restrict") {
		t.Errorf("zeros: %v", err)
	}
	for text, want := range map[string]string{"": "no code", "zz T x": "line 1: address", "ffff T a\nhello": "line 2"} {
		_, err := parseKallsyms([]byte(text))
		must.Fail(t, err, want)
	}
}

func FuzzParseKallsyms(f *testing.F) {
	f.Add([]byte(someSymbols))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parseKallsyms(text)
		if err == nil && len(k) == 0 {
			t.Error("symbols without any")
		}
	})
}

func TestMapsOfAProcessHaveItsProgram(t *testing.T) {
	self := must.Get(procfs.Self())(t)
	program := must.Get(os.Executable())(t)
	here := uint64(reflect.ValueOf(TestMapsOfAProcessHaveItsProgram).Pointer())
	p := process{mapped: codeOf(self)}
	if m, ok := p.find(here); !ok || m.file != program {
		t.Errorf("this test's code at %#x is in the mapping %+v, want a mapping of %s", here, m, program)
	}
}

// A tool's children are the tool's; what a shell next to it starts is not.
func TestRolesFollowAncestry(t *testing.T) {
	ps := processes{
		100: {parent: 1, visited: true}, 101: {parent: 100, visited: true}, 102: {parent: 101, visited: true},
		200: {parent: 1, visited: true}, 300: {parent: 2, kernel: true, visited: true},
	}
	cast := Cast{Tools: []int{101}, Observers: []int{100}}
	for pid, want := range map[uint32]category.Role{
		102: category.RoleTool, 101: category.RoleTool, 100: category.RoleObserver, 200: category.RoleForeign, 300: category.RoleKernel,
	} {
		if got := ps.role(pid, cast); got != want {
			t.Errorf("process %d: %s, want %s", pid, got, want)
		}
	}
}

func TestSharesAddUpToTheWindow(t *testing.T) {
	var samples []sample
	for i := range 100 {
		samples = append(samples, sample{time: uint64(i+1) * 1e6})
	}
	w := Window{From: 10e6, To: 60e6}
	check := func(name string, samples []sample, rate int, lost uint64, n int, rest uint64) {
		t.Helper()
		s, err := weigh(samples, w, rate, lost)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if s.end-s.first != n || s.rest != rest || uint64(n)*s.each+s.rest != 50e6 {
			t.Errorf("%s: %+v, want %d samples and %d ns without", name, s, n, rest)
		}
	}
	check("every sample is there", samples, 1000, 0, 50, 0)
	check("an idle CPU gave none", append(samples[:20:20], samples[50:]...), 1000, 0, 20, 30e6)
	check("no sample at all", nil, 1000, 0, 0, 50e6)
	check("half were lost", samples[:50:50], 1000, 50, 40, 0)
	if _, err := weigh(nil, w, 1000, 5); err == nil {
		t.Error("a CPU whose samples were all lost has a profile")
	}
}

func TestMarksFindTheirSamples(t *testing.T) {
	samples := []sample{{time: 1_000_000}, {time: 2_000_000}, {time: 3_000_000}, {time: 4_000_000}}
	m := &marker{marks: map[int][]uint64{3: {4_001_000, 1_999_000, 9_000_000, 3_500_000}}}
	m.mark(3, samples)
	for i, want := range []bool{false, true, false, true} {
		if samples[i].wire != want {
			t.Errorf("sample %d: %v", i, samples[i].wire)
		}
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	for want, c := range map[string]Config{"no CPUs": {}, "a rate of -1": {CPUs: []int{0}, Rate: -1}, "a rate of 1000000": {CPUs: []int{0}, Rate: 1e6}} {
		_, err := Start(c)
		must.Fail(t, err, want)
	}
	if err := explain(unix.EACCES, 0, 997); !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "perf_event_paranoid") {
		t.Errorf("a refusal: %v", err)
	}
}
