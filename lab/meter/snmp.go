package meter

import "strings"

// Counters are a namespace's protocol counters by the kernel's names, such as
// "Tcp.RetransSegs" or "Ip6InReceives". A counter that the kernel lacks is
// absent.
type Counters map[string]uint64

// The protocol counters that the lab's figures use.
const (
	TCPOutSegs     = "Tcp.OutSegs"     // segments sent, without retransmissions
	TCPRetransSegs = "Tcp.RetransSegs" // segments retransmitted
	IPOutRequests  = "Ip.OutRequests"  // buffers that IPv4 sent; superframes count once
	IP6OutRequests = "Ip6OutRequests"  // the same for IPv6
	IPInReceives   = "Ip.InReceives"   // buffers that IPv4 received; GRO's merged buffers count once
	IP6InReceives  = "Ip6InReceives"   // the same for IPv6

	udpInDatagrams   = "Udp.InDatagrams"
	udp6InDatagrams  = "Udp6InDatagrams"
	udpRcvbufErrors  = "Udp.RcvbufErrors"
	udp6RcvbufErrors = "Udp6RcvbufErrors"
	udpMemErrors     = "Udp.MemErrors"
	udp6MemErrors    = "Udp6MemErrors"
)

// kept lists the counters that a reading keeps.
var kept = map[string]bool{
	TCPOutSegs: true, TCPRetransSegs: true, IPInReceives: true, IP6InReceives: true, IPOutRequests: true, IP6OutRequests: true,
	udpInDatagrams: true, udp6InDatagrams: true, udpRcvbufErrors: true, udp6RcvbufErrors: true,
	udpMemErrors: true, udp6MemErrors: true,
}

const snmpFile = "/proc/net/snmp"

// ParseSNMP parses /proc/net/snmp and adds the counters that figures use to c. The
// text has pairs of lines: names, then values. Each line begins with its protocol.
//
// prometheus/procfs is not used here. It reads this file only through a process, but
// a container can be without processes. It also converts counters to floating point.
func ParseSNMP(text []byte, c Counters) error {
	s := scanner{text}
	for {
		names, ok := s.line()
		if !ok {
			return nil
		}
		values, ok := s.line()
		if !ok {
			return badLine(snmpFile, names, "a line of values after it")
		}
		if err := snmpPair(names, values, c); err != nil {
			return err
		}
	}
}

func snmpPair(names, values []byte, c Counters) error {
	n, v := scanner{names}, scanner{values}
	head, again := n.field(), v.field()
	if len(head) < 2 || head[len(head)-1] != ':' || string(head) != string(again) {
		return badLine(snmpFile, values, "values headed as the names before them")
	}
	protocol := string(head[:len(head)-1])
	for {
		name, value := n.field(), v.field()
		if len(name) == 0 && len(value) == 0 {
			return nil
		}
		if len(name) == 0 || len(value) == 0 {
			return badLine(snmpFile, values, "as many values as names")
		}
		full := protocol + "." + string(name)
		if !kept[full] {
			continue
		}
		x, ok := decimal(value)
		if !ok {
			return badLine(snmpFile, values, "decimal counters")
		}
		c[full] = x
	}
}

// parseSNMP6 parses /proc/net/snmp6, which has a name and a value on each line, as
// ParseSNMP does.
func parseSNMP6(text []byte, c Counters) error {
	const file = "/proc/net/snmp6"
	s := scanner{text}
	for {
		line, ok := s.line()
		if !ok {
			return nil
		}
		fields := scanner{line}
		name := strings.TrimSpace(string(fields.field()))
		x, ok := decimal(fields.field())
		if name == "" || !ok {
			return badLine(file, line, "a name and a decimal counter")
		}
		if kept[name] {
			c[name] = x
		}
	}
}
