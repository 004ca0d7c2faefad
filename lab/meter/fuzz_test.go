package meter

import (
	"bytes"
	"testing"
)

func FuzzParseStat(f *testing.F) {
	f.Add(captured(f, "stat"))
	f.Add([]byte("cpu0 1 2 3 4\ncpu1 5 6 7 8 9\nintr"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cpus, err := ParseStat(text)
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

func FuzzParseSoftirqs(f *testing.F) {
	f.Add(captured(f, "softirqs"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if counts, err := ParseSoftirqs(text); err != nil && counts != nil {
			t.Error("counts beside an error")
		}
	})
}

func FuzzParseSoftnet(f *testing.F) {
	f.Add(captured(f, "softnet_stat"), 2)
	f.Add([]byte("1 2 3 4 5 6 7 8 9 a b\n"), 1)
	f.Fuzz(func(t *testing.T, text []byte, cpus int) {
		online := make([]int, max(0, min(cpus, 64)))
		counts, err := ParseSoftnet(text, online)
		if err == nil && len(counts) > bytes.Count(text, []byte("\n"))+1 {
			t.Errorf("%d CPUs from %q", len(counts), text)
		}
	})
}

func FuzzParseSNMP(f *testing.F) {
	f.Add(captured(f, "snmp"))
	f.Add(captured(f, "netstat"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := Counters{}
		if err := ParseSNMP("x", text, c, nil); err == nil {
			for name := range c {
				if !bytes.Contains([]byte(name), []byte(".")) {
					t.Errorf("counter %q has no protocol", name)
				}
			}
		}
	})
}

func FuzzParseSNMP6(f *testing.F) {
	f.Add(captured(f, "snmp6"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c := Counters{}
		if err := ParseSNMP6(text, c, nil); err == nil {
			if _, ok := c[""]; ok {
				t.Error("a counter without a name")
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

func FuzzProcStat(f *testing.F) {
	f.Add([]byte("42 (a) (b) S 7 42 42 0 -1 4194560 1 2 3 4 250 50 30 10 20 0 3 0 123456 1 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parseProcStat(text); err == nil && p.parent < 0 {
			t.Errorf("parent %d", p.parent)
		}
		if ran, err := parseSchedstat(text); err == nil && ran < 0 {
			t.Errorf("ran for %d", ran)
		}
		if pids, err := parseChildren(text); err == nil {
			for _, p := range pids {
				if p <= 0 {
					t.Errorf("process %d", p)
				}
			}
		}
	})
}

func FuzzSocket(f *testing.F) {
	f.Add(diagAnswer(true))
	f.Add(diagAnswer(false)[:80])
	f.Fuzz(func(t *testing.T, msg []byte) {
		if s, err := parseSocket(msg); err == nil && (!s.Local.Addr().IsValid() || s.RTT < 0) {
			t.Errorf("%+v", s)
		}
	})
}
