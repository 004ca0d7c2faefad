package traffic

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// machine is what NTttcp reads of the whole machine: processor time of all
// CPUs, and the packet counters of the network namespace.
type machine struct {
	busy, total float64 // jiffies of all CPUs together; busy leaves out idle, iowait and steal
	processors  int
	interrupts  uint64
	sent        uint64 // TCP segments or UDP datagrams, IPv4 and IPv6
	received    uint64
	retransmits uint64
	errors      uint64 // failed connects (TCP) or receive errors (UDP), as NTttcp counts them
}

// readMachine reads /proc/stat and this namespace's /proc/net/snmp and snmp6.
func readMachine(udp bool) (m machine, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, fmt.Errorf("read the machine's CPU time: %w", err)
	}
	if err := m.parseStat(string(stat)); err != nil {
		return m, err
	}
	snmp, err := os.ReadFile("/proc/thread-self/net/snmp")
	if err != nil {
		return m, fmt.Errorf("read the namespace's packet counters: %w", err)
	}
	if err := m.parseSNMP(string(snmp), udp); err != nil {
		return m, err
	}
	if udp {
		// Tcp counts both IP versions; Udp does not.
		if snmp6, err := os.ReadFile("/proc/thread-self/net/snmp6"); err == nil {
			m.parseSNMP6(string(snmp6))
		}
	}
	return m, nil
}

// parseStat reads the first line (all CPUs), the CPU lines and intr.
func (m *machine) parseStat(text string) error {
	found := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 8 && f[0] == "cpu":
			if err := m.parseCPU(f[1:]); err != nil {
				return err
			}
			found = true
		case len(f) > 0 && strings.HasPrefix(f[0], "cpu"):
			m.processors++
		case len(f) > 1 && f[0] == "intr":
			n, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				return fmt.Errorf("read /proc/stat: intr is %q", f[1])
			}
			m.interrupts = n
		}
	}
	if !found || m.processors == 0 {
		return fmt.Errorf("read /proc/stat: it has no line of all CPUs")
	}
	return nil
}

// parseCPU reads user nice system idle iowait irq softirq steal. Guest time is
// in user already.
func (m *machine) parseCPU(fields []string) error {
	for i, text := range fields[:min(8, len(fields))] {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("read /proc/stat: %q is no time", text)
		}
		m.total += v
		if i != 3 && i != 4 && i != 7 {
			m.busy += v
		}
	}
	return nil
}

// parseSNMP reads the header and value lines of Tcp or Udp.
func (m *machine) parseSNMP(text string, udp bool) error {
	protocol, names := "Tcp:", []string{"OutSegs", "InSegs", "RetransSegs", "AttemptFails"}
	if udp {
		protocol, names = "Udp:", []string{"OutDatagrams", "InDatagrams", "", "InErrors"}
	}
	var header []string
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != protocol {
			continue
		}
		if header == nil {
			header = f
			continue
		}
		for i, to := range []*uint64{&m.sent, &m.received, &m.retransmits, &m.errors} {
			if names[i] == "" {
				continue
			}
			at := index(header, names[i])
			if at < 0 || at >= len(f) {
				return fmt.Errorf("read /proc/net/snmp: %s has no %s", protocol, names[i])
			}
			v, err := strconv.ParseUint(f[at], 10, 64)
			if err != nil {
				return fmt.Errorf("read /proc/net/snmp: %s is %q", names[i], f[at])
			}
			*to = v
		}
		return nil
	}
	return fmt.Errorf("read /proc/net/snmp: it has no %s lines", protocol)
}

func (m *machine) parseSNMP6(text string) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 2 {
			continue
		}
		v, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			continue
		}
		switch f[0] {
		case "Udp6OutDatagrams":
			m.sent += v
		case "Udp6InDatagrams":
			m.received += v
		case "Udp6InErrors":
			m.errors += v
		}
	}
}

func index(list []string, s string) int {
	for i, v := range list {
		if v == s {
			return i
		}
	}
	return -1
}

// usage is what the machine did between two readings.
type usage struct {
	cpu         float64 // percent of all CPUs
	processors  int
	interrupts  uint64
	sent        uint64
	received    uint64
	retransmits uint64
	errors      uint64
}

func (m machine) since(before machine) usage {
	u := usage{
		processors:  m.processors,
		interrupts:  m.interrupts - before.interrupts,
		sent:        m.sent - before.sent,
		received:    m.received - before.received,
		retransmits: m.retransmits - before.retransmits,
		errors:      m.errors - before.errors,
	}
	if total := m.total - before.total; total > 0 {
		u.cpu = 100 * (m.busy - before.busy) / total
	}
	return u
}

// megahertz reads the first CPU's clock; 0 where the kernel does not tell.
func megahertz() float64 {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return 0
	}
	return parseMegahertz(string(text))
}

func parseMegahertz(cpuinfo string) float64 {
	for line := range strings.Lines(cpuinfo) {
		name, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(name) == "cpu MHz" {
			if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return v
			}
		}
	}
	return 0
}
