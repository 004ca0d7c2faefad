package meter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func captured(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestStatOfACapturedMachine(t *testing.T) {
	got, err := ParseStat(captured(t, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]CPUTimes{
		0: {User: 40919, System: 14427, Idle: 275594, IOWait: 228, Softirq: 5272, Steal: 145},
		1: {User: 46932, System: 16427, Idle: 265780, IOWait: 1813, Softirq: 5899, Steal: 120},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestStatOfOldKernelsHasFewerFields(t *testing.T) {
	got, err := ParseStat([]byte("cpu  1 2 3 4\ncpu0 1 2 3 4\nintr 5\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]CPUTimes{0: {User: 1, Nice: 2, System: 3, Idle: 4}}, got); d != "" {
		t.Error(d)
	}
	got, err = ParseStat([]byte("cpu0 1 2 3 4 5 6 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]CPUTimes{0: {User: 1, Nice: 2, System: 3, Idle: 4, IOWait: 5, IRQ: 6, Softirq: 7}}, got); d != "" {
		t.Error(d)
	}
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
	got, err := ParseStat([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 126 || got[127].User != 1270 || got[127].Idle != 12700 {
		t.Errorf("%d CPUs, the last %+v", len(got), got[127])
	}
	if _, ok := got[77]; ok {
		t.Error("an offline CPU is there")
	}
}

func TestStatDoesNotAddGuestTimeAgain(t *testing.T) {
	got, err := ParseStat([]byte("cpu0 100 0 0 50 0 0 0 0 100 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got[0].User != 100 || got[0].Nice != 0 {
		t.Errorf("%+v", got[0])
	}
}

func TestGarbageInStatIsNamed(t *testing.T) {
	for _, text := range []string{"", "intr 1\n", "cpu0 1 2 3\n", "cpu0 1 2 x 4\n", "cpux 1 2 3 4\n", "cpu0 1 2 3 99999999999999999999999\n", "cpu99999999 1 2 3 4\n"} {
		var bad *ParseError
		if _, err := ParseStat([]byte(text)); !errors.As(err, &bad) || bad.File != "/proc/stat" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestSoftirqsAreReadByColumn(t *testing.T) {
	got, err := ParseSoftirqs([]byte("           CPU0       CPU2\n HI: 1 2\n NET_TX: 3 4\n NET_RX: 5 6\n"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]Softirqs{0: {3, 5}, 2: {4, 6}}, got); d != "" {
		t.Error(d)
	}
	if got, err := ParseSoftirqs(captured(t, "softirqs")); err != nil || len(got) != 2 || got[1].NetRX == 0 {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "CPU0 FOO\n", "CPU0 CPU1\nNET_RX: 5\n"} {
		if _, err := ParseSoftirqs([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestSoftnetOfACapturedMachine(t *testing.T) {
	got, err := ParseSoftnet(captured(t, "softnet_stat"), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]Softnet{
		0: {Processed: 0x00d1076a, TimeSqueeze: 2, ReceivedRPS: 0x57764},
		1: {Processed: 0x01fe58e4, TimeSqueeze: 3, ReceivedRPS: 0xfac2b},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// Kernels before 5.14 print 11 columns or fewer and leave out offline CPUs.
func TestSoftnetWithoutCPUNumbersTakesThoseOnline(t *testing.T) {
	text := []byte("00000001 00000002 00000003 0 0 0 0 0 0 00000004 00000005\n0000000a 0 0 0 0 0 0 0 0 0 0\n")
	got, err := ParseSoftnet(text, []int{0, 2})
	if err != nil {
		t.Fatal(err)
	}
	want := map[int]Softnet{0: {Processed: 1, Dropped: 2, TimeSqueeze: 3, ReceivedRPS: 4, FlowLimit: 5}, 2: {Processed: 10}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := ParseSoftnet(text, []int{0}); err == nil {
		t.Error("more lines than CPUs were accepted")
	}
}

func TestSNMPOfACapturedMachine(t *testing.T) {
	c := Counters{}
	if err := ParseSNMP("snmp", captured(t, "snmp"), c, nil); err != nil {
		t.Fatal(err)
	}
	if err := ParseSNMP("netstat", captured(t, "netstat"), c, nil); err != nil {
		t.Fatal(err)
	}
	if err := ParseSNMP6(captured(t, "snmp6"), c, nil); err != nil {
		t.Fatal(err)
	}
	if c[TCPInSegs] != 28182 || c[TCPOutSegs] != 21876 || c["Tcp.OutRsts"] != 6 {
		t.Errorf("InSegs %d, OutSegs %d, OutRsts %d", c[TCPInSegs], c[TCPOutSegs], c["Tcp.OutRsts"])
	}
	if _, ok := c["Tcp.MaxConn"]; ok {
		t.Error("MaxConn is −1 and no counter")
	}
	for name := range kept {
		if _, ok := c[name]; !ok {
			t.Errorf("%s is not printed by the captured kernel: is the name right?", name)
		}
	}
}

func TestSNMPNamesTheFileThatIsNotAsExpected(t *testing.T) {
	for _, text := range []string{"Tcp: A B\n", "Tcp: A B\nUdp: 1 2\n", "Tcp: A B\nTcp: 1\n", "Tcp: A\nTcp: 1 2\n", "Tcp: A\nTcp: x\n", "\n\n"} {
		var bad *ParseError
		if err := ParseSNMP("/proc/net/snmp", []byte(text), Counters{}, nil); !errors.As(err, &bad) || bad.File != "/proc/net/snmp" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := ParseSNMP6([]byte("Ip6InReceives\n"), Counters{}, nil); err == nil {
		t.Error("a name without a value was accepted")
	}
}

func TestNetDevAlsoWhereTheCounterTouchesTheName(t *testing.T) {
	got := map[string]Traffic{}
	err := eachNetDev(captured(t, "net_dev"), func(name []byte, t Traffic) { got[string(name)] = t })
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Traffic{597486349, 28325, 2019565, 21939}, got["eth0"]); d != "" {
		t.Error(d)
	}
	text := "a\nb\n  v.1@x:12345678901 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n"
	err = eachNetDev([]byte(text), func(name []byte, tr Traffic) {
		if string(name) != "v.1@x" || tr != (Traffic{12345678901, 2, 3, 4}) {
			t.Errorf("%s: %+v", name, tr)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := eachNetDev([]byte("a\nb\neth0: 1 2 3\n"), func([]byte, Traffic) {}); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestTimerListTellsIdleTime(t *testing.T) {
	got := map[int]idleClock{}
	if err := eachIdleClock(captured(t, "timer_list"), func(cpu int, c idleClock) { got[cpu] = c }); err != nil {
		t.Fatal(err)
	}
	want := map[int]idleClock{
		0: {Slept: 2755945979792 + 2285866624, Entry: 3391106494116},
		1: {Slept: 2657803979808 + 18132266258, Entry: 3391955426095},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	stat, err := ParseStat(captured(t, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	for cpu, c := range got {
		ticks := float64(stat[cpu].Idle+stat[cpu].IOWait) / userHZ
		if exact := float64(c.Slept) / 1e9; exact < ticks-2 || exact > ticks+2 {
			t.Errorf("CPU %d: %.3f s by timer_list, %.2f s by stat, read within 2 s", cpu, exact, ticks)
		}
	}
}

func TestASleepThatLastsIsAddedWhereTheTicksSayIt(t *testing.T) {
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

func TestProcessStatWithParenthesesInTheName(t *testing.T) {
	text := "42 (a) (b\n) c) S 7 42 42 0 -1 4194560 1 2 3 4 250 50 30 10 20 0 3 0 123456 1 1\n"
	got, err := parseProcStat([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := procStat{name: "a) (b\n) c", parent: 7, utime: 250, stime: 50, cutime: 30, cstime: 10, start: 123456}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(procStat{})); d != "" {
		t.Error(d)
	}
	for _, text := range []string{"", "42 a S 7", "42 (a) S 7 8", "42 )a( S 7"} {
		if _, err := parseProcStat([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestSchedstatAndChildren(t *testing.T) {
	if ran, err := parseSchedstat(captured(t, "schedstat")); err != nil || ran <= 0 {
		t.Errorf("%d, %v", ran, err)
	}
	if _, err := parseSchedstat([]byte("x 1 2\n")); err == nil {
		t.Error("garbage was accepted")
	}
	got, err := parseChildren([]byte("12 34 "))
	if d := cmp.Diff([]int{12, 34}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if _, err := parseChildren([]byte("12 0")); err == nil {
		t.Error("process 0 was accepted")
	}
}
