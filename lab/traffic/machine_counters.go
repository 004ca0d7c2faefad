package traffic

import (
	"fmt"
	"math"

	"github.com/prometheus/procfs"
)

// machineCounters has the counters that NTttcp reads of the whole machine: the time of all CPUs,
// and the packet counters of the network namespace.
type machineCounters struct {
	at          int64   // now() after the reading
	busy, total float64 // seconds, sums of all CPUs; busy is without idle, iowait and steal
	processors  int
	interrupts  uint64
	sent        uint64 // TCP segments or UDP datagrams, IPv4 and IPv6
	received    uint64 // the same; a buffer into which the kernel merged packets (GRO) counts as its packets
	retransmits uint64
	errors      uint64 // failed connects (TCP) or receive errors (UDP), as NTttcp counts them
}

// readMachine reads CPU times, and the packet counters of this process's
// namespace.
func readMachine(proc procfs.FS, udp bool) (m machineCounters, err error) {
	stat, err := proc.Stat()
	if err != nil {
		return m, fmt.Errorf("read the machine's CPU time: %w", err)
	}
	c := stat.CPUTotal
	m.busy = c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ // user contains guest time
	m.total = m.busy + c.Idle + c.Iowait + c.Steal
	m.processors, m.interrupts = len(stat.CPU), stat.IRQTotal
	if m.total == 0 || m.processors == 0 {
		return m, fmt.Errorf("read the machine's CPU time: /proc/stat lists no CPU")
	}
	if err := m.readPackets(proc, udp); err != nil {
		return m, fmt.Errorf("read the namespace's packet counters: %w", err)
	}
	return m, nil
}

func (m *machineCounters) readPackets(proc procfs.FS, udp bool) error {
	self, err := proc.Self()
	if err != nil {
		return err
	}
	snmp, err := self.Snmp()
	if err != nil {
		return err
	}
	if !udp { // Tcp counts both IP versions; Udp does not
		t := snmp.Tcp
		m.sent, err = total(err, t.OutSegs)
		m.received, err = total(err, t.InSegs)
		if err == nil {
			err = m.addMerged(self, snmp)
		}
		m.retransmits, err = total(err, t.RetransSegs)
		m.errors, err = total(err, t.AttemptFails)
		return err
	}
	snmp6, err := self.Snmp6()
	if err != nil {
		return err
	}
	u, u6 := snmp.Udp, snmp6.Udp6
	m.sent, err = total(err, u.OutDatagrams, u6.OutDatagrams)
	m.received, err = total(err, u.InDatagrams, u6.InDatagrams)
	m.errors, err = total(err, u.InErrors, u6.InErrors)
	return err
}

// addMerged adds the segments that Tcp.InSegs leaves out because it counts merged
// buffers. IP counts both: InReceives has buffers, and the four ECN counters have
// packets (ip_rcv_core, net/ipv4/ip_input.c).
func (m *machineCounters) addMerged(self procfs.Proc, snmp procfs.ProcSnmp) error {
	netstat, err := self.Netstat()
	if err != nil {
		return err
	}
	snmp6, err := self.Snmp6()
	if err != nil {
		return err
	}
	ip, ip6 := netstat.IpExt, snmp6.Ip6
	packets := sum(ip.InNoECTPkts, ip.InECT0Pkts, ip.InECT1Pkts, ip.InCEPkts, ip6.InNoECTPkts, ip6.InECT0Pkts, ip6.InECT1Pkts, ip6.InCEPkts)
	if buffers := sum(snmp.Ip.InReceives, ip6.InReceives); packets > buffers {
		m.received += packets - buffers
	}
	return nil
}

// total adds counters. first must not be nil; the others can be, if the kernel lacks
// them. earlier is an error from an earlier step, which total returns with the sum.
func total(earlier error, first *float64, more ...*float64) (uint64, error) {
	if first == nil {
		return 0, fmt.Errorf("read packet counters: /proc/net/snmp lacks a counter of TCP or UDP")
	}
	return uint64(*first) + sum(more...), earlier
}

// sum adds the counters that the kernel has.
func sum(counters ...*float64) (n uint64) {
	for _, c := range counters {
		if c != nil {
			n += uint64(*c)
		}
	}
	return n
}

// since returns the growth of the counters since an earlier reading, in a window of that many
// seconds. Readings take time, so the time between them can differ from the window.
func (m machineCounters) since(before machineCounters, window float64) machineCounters {
	share := ratio(window*1e9, float64(m.at-before.at))
	grown := func(now, then uint64) uint64 { return uint64(math.Round(share * float64(now-then))) }
	return machineCounters{
		at:          m.at,
		busy:        share * (m.busy - before.busy),
		total:       share * (m.total - before.total),
		processors:  m.processors,
		interrupts:  grown(m.interrupts, before.interrupts),
		sent:        grown(m.sent, before.sent),
		received:    grown(m.received, before.received),
		retransmits: grown(m.retransmits, before.retransmits),
		errors:      grown(m.errors, before.errors),
	}
}

// cpu returns the CPU use in percent of all CPUs.
func (m machineCounters) cpu() float64 { return 100 * ratio(m.busy, m.total) }

// megahertz returns the clock rate of the first CPU; 0 if the kernel does not report
// it.
func megahertz(proc procfs.FS) float64 {
	cpus, err := proc.CPUInfo()
	if err != nil || len(cpus) == 0 {
		return 0
	}
	return cpus[0].CPUMHz
}
