package meter

import (
	"testing"
)

func FuzzParseStat(f *testing.F) {
	f.Add(captured(f, "stat"))
	f.Add([]byte("cpu0 1 2 3 4\ncpu1 5 6 7 8 9\nintr"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cpus, err := parseStat(text)
		if err == nil && len(cpus) == 0 {
			t.Error("no CPU and no error")
		}
		for c := range cpus {
			if c < 0 || c > maxCPU {
				t.Errorf("CPU %d", c)
			}
		}
	})
}

func FuzzNetDev(f *testing.F) {
	f.Add(captured(f, "net_dev"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = eachNetDev(text, func(name []byte, _ Traffic) {
			if len(name) == 0 {
				t.Error("a device without a name")
			}
		})
	})
}

func FuzzTimerList(f *testing.F) {
	f.Add(captured(f, "timer_list"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = eachIdleClock(text, func(cpu int, _ idleClock) {
			if cpu < 0 || cpu > maxCPU {
				t.Errorf("CPU %d", cpu)
			}
		})
	})
}

func FuzzSocket(f *testing.F) {
	f.Add(diagAnswer(true))
	f.Add(diagAnswer(false)[:80])
	f.Fuzz(func(t *testing.T, msg []byte) {
		if s, err := parseSocket(msg); err == nil && (!s.Local.Addr().IsValid() || s.RTT < 0) {
			t.Errorf("the socket %+v has no valid address, or a negative round trip", s)
		}
	})
}

func FuzzParseSNMP(f *testing.F) {
	f.Add(captured(f, "snmp"))
	f.Add(captured(f, "snmp6"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, parse := range []func([]byte, Counters) error{ParseSNMP, parseSNMP6} {
			c := Counters{}
			_ = parse(text, c)
			for name := range c {
				if !kept[name] {
					t.Errorf("the parser kept counter %q, which no figure uses", name)
				}
			}
		}
	})
}
