package meter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"

	"windtunnel/internal/must"
)

func captured(t testing.TB, name string) []byte {
	t.Helper()
	return must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
}

// parseStat parses the per-CPU lines of /proc/stat: CPU number → times.
func parseStat(text []byte) (map[int]CPUTimes, error) {
	cpus := map[int]CPUTimes{}
	err := eachCPU(text, func(cpu int, t CPUTimes) { cpus[cpu] = t })
	if err != nil {
		return nil, err
	}
	if len(cpus) == 0 {
		return nil, badLine(statFile, text, "a line for each CPU (cpu0 …)")
	}
	return cpus, nil
}

func TestStatOfACapturedMachine(t *testing.T) {
	got := must.Get(parseStat(captured(t, "stat")))(t)
	want := map[int]CPUTimes{
		0: {User: 40919, System: 14427, Idle: 275594, IOWait: 228, Softirq: 5272, Steal: 145},
		1: {User: 46932, System: 16427, Idle: 265780, IOWait: 1813, Softirq: 5899, Steal: 120},
	}
	must.Equal(t, want, got)
}

func TestStatOfOldKernelsHasFewerFields(t *testing.T) {
	got := must.Get(parseStat([]byte("cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 5\n")))(t)
	must.Equal(t, map[int]CPUTimes{0: {User: 1, Nice: 2, System: 3, Idle: 4}}, got)
	got = must.Get(parseStat([]byte("cpu0 1 2 3 4 5 6 7\n")))(t)
	must.Equal(t, map[int]CPUTimes{0: {User: 1, Nice: 2, System: 3, Idle: 4, IOWait: 5, IRQ: 6, Softirq: 7}}, got)
}

func TestStatLeavesOutOfflineCPUsAndReads128(t *testing.T) {
	var b strings.Builder
	b.WriteString("cpu  0 0 0 0 0 0 0 0 0 0\n")
	for c := range 128 {
		if c == 3 || c == 77 {
			continue
		}
		fmt.Fprintf(&b, "cpu%d %d 0 0 %d 0 0 0 0 0 0\n", c, c*10, c*100)
	}
	b.WriteString("intr 0\nctxt 0\n")
	got := must.Get(parseStat([]byte(b.String())))(t)
	if len(got) != 126 || got[127].User != 1270 || got[127].Idle != 12700 {
		t.Errorf("%d CPUs, the last %+v", len(got), got[127])
	}
	if _, ok := got[77]; ok {
		t.Error("an offline CPU is there")
	}
}

func TestStatDoesNotAddGuestTimeAgain(t *testing.T) {
	got := must.Get(parseStat([]byte("cpu0 100 0 0 50 0 0 0 0 100 0\n")))(t)
	if got[0].User != 100 || got[0].Nice != 0 {
		t.Errorf("the first CPU has %+v, want 100 ticks in user mode", got[0])
	}
}

func TestTheErrorOfABadStatFileHasTheLine(t *testing.T) {
	for _, text := range []string{"", "intr 1\n", "cpu0 1 2 3\n", "cpu0 1 2 x 4\n", "cpux 1 2 3 4\n", "cpu0 1 2 3 99999999999999999999999\n", "cpu99999999 1 2 3 4\n"} {
		if _, err := parseStat([]byte(text)); err == nil || !strings.HasPrefix(err.Error(), "read /proc/stat: line ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNetDevNeedsNoSpaceBetweenNameAndCounter(t *testing.T) {
	got := map[string]Traffic{}
	err := eachNetDev(captured(t, "net_dev"), func(name []byte, t Traffic) { got[string(name)] = t })
	must.Succeed(t, err)
	must.Equal(t, Traffic{597486349, 28325, 2019565, 21939}, got["eth0"])
	text := "a\nb\n  v.1@x:12345678901 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"
	err = eachNetDev([]byte(text), func(name []byte, tr Traffic) {
		if string(name) != "v.1@x" || tr != (Traffic{12345678901, 2, 3, 4}) {
			t.Errorf("the device %s has %+v, want v.1@x with 12345678901 bytes", name, tr)
		}
	})
	must.Succeed(t, err)
	if err := eachNetDev([]byte("a\nb\neth0: 1 2 3\n"), func([]byte, Traffic) {}); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestTimerListHasTheIdleTime(t *testing.T) {
	got := map[int]idleClock{}
	must.Succeed(t, eachIdleClock(captured(t, "timer_list"), func(cpu int, c idleClock) { got[cpu] = c }))
	want := map[int]idleClock{
		0: {Slept: 2755945979792 + 2285866624, Entry: 3391106494116},
		1: {Slept: 2657803979808 + 18132266258, Entry: 3391955426095},
	}
	must.Equal(t, want, got)
	stat := must.Get(parseStat(captured(t, "stat")))(t)
	for cpu, c := range got {
		ticks := float64(stat[cpu].Idle+stat[cpu].IOWait) / userHZ
		if exact := float64(c.Slept) / 1e9; exact < ticks-2 || exact > ticks+2 {
			t.Errorf("CPU %d: %.3f s by timer_list, %.2f s by stat, read within 2 s", cpu, exact, ticks)
		}
	}
}

func TestALastingSleepIsAddedIfTheTicksShowIt(t *testing.T) {
	const second = int64(1e9)
	c := idleClock{Slept: 10 * second, Entry: 100 * second}
	for _, x := range []struct {
		name string
		now  int64
		idle uint64 // ticks
		want int64
	}{
		{"awake for a second", 101 * second, 1000, 10 * second},
		{"asleep for a second", 101 * second, 1100, 11 * second},
		{"asleep for 1 ms: less than a tick, either will do", 100*second + 1e6, 1000, 10 * second},
		{"nothing fits: what timer_list says", 105 * second, 1250, 10 * second},
	} {
		if got := c.idleAt(x.now, CPUTimes{Idle: x.idle}); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
}

func TestSoftnetOfACapturedMachine(t *testing.T) {
	dir := t.TempDir()
	must.Succeed(t, os.Mkdir(filepath.Join(dir, "net"), 0o755))
	must.Succeed(t, os.WriteFile(filepath.Join(dir, "net/softnet_stat"), captured(t, "softnet_stat"), 0o644))
	proc := must.Get(procfs.NewFS(dir))(t)
	for _, x := range []struct {
		cpus []int
		want map[int]uint64
	}{
		{[]int{0, 1}, map[int]uint64{0: 0x00d1076a, 1: 0x01fe58e4}},
		{[]int{1}, map[int]uint64{1: 0x01fe58e4}},
	} {
		m := &Meter{proc: proc, config: Config{CPUs: x.cpus}, slot: map[int]int{}}
		for i, c := range x.cpus {
			m.slot[c] = i
		}
		var r Reading
		must.Succeed(t, m.readSoftnet(&r))
		if d := cmp.Diff(x.want, r.Softnet); d != "" {
			t.Errorf("CPUs %v: %s", x.cpus, d)
		}
	}
}

func TestSNMPOfACapturedMachine(t *testing.T) {
	c := Counters{}
	must.Succeed(t, ParseSNMP(captured(t, "snmp"), c))
	must.Succeed(t, parseSNMP6(captured(t, "snmp6"), c))
	if c[TCPOutSegs] != 21876 || len(c) != len(kept) {
		t.Errorf("OutSegs %d of %v", c[TCPOutSegs], c)
	}
	for name := range kept {
		if _, ok := c[name]; !ok {
			t.Errorf("the captured file lacks counter %s; check the name", name)
		}
	}
}

func TestSNMPNamesTheFileThatIsNotAsExpected(t *testing.T) {
	for _, text := range []string{"Tcp: A B\n", "Tcp: A B\nUdp: 1 2\n", "Tcp: A B\nTcp: 1\n", "Tcp: A\nTcp: 1 2\n", "Tcp: OutSegs\nTcp: x\n", "\n\n"} {
		if err := ParseSNMP([]byte(text), Counters{}); err == nil || !strings.HasPrefix(err.Error(), "read /proc/net/snmp: line ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := parseSNMP6([]byte("Ip6InReceives\n"), Counters{}); err == nil {
		t.Error("a name without a value was accepted")
	}
}
