package meter

import "strings"

// Counters are a namespace's protocol counters by the kernel's names, such as
// "Tcp.RetransSegs", "TcpExt.TCPTimeouts" or "Ip6InReceives". A counter that
// the kernel lacks is absent.
type Counters map[string]uint64

// The protocol counters that the lab's figures use.
const (
	TCPInSegs      = "Tcp.InSegs"      // buffers received: a merged one counts once (tcp_v4_rcv, net/ipv4/tcp_ipv4.c)
	TCPOutSegs     = "Tcp.OutSegs"     // segments sent, without retransmissions
	TCPRetransSegs = "Tcp.RetransSegs" // segments retransmitted
	TCPTimeouts    = "TcpExt.TCPTimeouts"
	IPInReceives   = "Ip.InReceives" // buffers handed to IPv4: a merged one counts once
	IP6InReceives  = "Ip6InReceives" // the same for IPv6
)

// kept are the counters in a reading. The others (some 400) are not used.
var kept = keep(
	IPInReceives, "Ip.InDelivers", "Ip.OutRequests", "Ip.InDiscards", "Ip.OutDiscards", "Ip.OutNoRoutes",
	"Ip.ForwDatagrams", "Ip.ReasmReqds", "Ip.ReasmFails", "Ip.FragOKs", "Ip.FragFails", "Ip.FragCreates",
	TCPInSegs, TCPOutSegs, TCPRetransSegs, "Tcp.InErrs", "Tcp.InCsumErrors", "Tcp.OutRsts",
	"Tcp.ActiveOpens", "Tcp.PassiveOpens", "Tcp.AttemptFails", "Tcp.EstabResets",
	"Udp.InDatagrams", "Udp.OutDatagrams", "Udp.NoPorts", "Udp.InErrors", "Udp.RcvbufErrors", "Udp.SndbufErrors", "Udp.InCsumErrors", "Udp.MemErrors",
	TCPTimeouts, "TcpExt.TCPLossProbes", "TcpExt.TCPLostRetransmit", "TcpExt.TCPFastRetrans", "TcpExt.TCPSlowStartRetrans",
	"TcpExt.TCPSackRecovery", "TcpExt.TCPSpuriousRTOs", "TcpExt.TCPSynRetrans", "TcpExt.TCPRetransFail", "TcpExt.TCPDSACKRecv",
	"TcpExt.TCPBacklogDrop", "TcpExt.TCPRcvQDrop", "TcpExt.TCPOFOQueue", "TcpExt.TCPRcvCoalesce", "TcpExt.TCPBacklogCoalesce",
	"TcpExt.PruneCalled", "TcpExt.RcvPruned", "TcpExt.TCPRcvCollapsed", "TcpExt.TCPToZeroWindowAdv", "TcpExt.TCPZeroWindowDrop",
	"TcpExt.ListenOverflows", "TcpExt.ListenDrops", "TcpExt.TCPReqQFullDrop", "TcpExt.TCPOrigDataSent", "TcpExt.TCPDelivered",
	"IpExt.InOctets", "IpExt.OutOctets", "IpExt.InCsumErrors",
	IP6InReceives, "Ip6InDelivers", "Ip6OutRequests", "Ip6InDiscards", "Ip6OutDiscards", "Ip6InTooBigErrors",
	"Ip6ReasmReqds", "Ip6ReasmFails", "Ip6FragOKs", "Ip6FragFails", "Ip6FragCreates",
	"Udp6InDatagrams", "Udp6OutDatagrams", "Udp6NoPorts", "Udp6InErrors", "Udp6RcvbufErrors", "Udp6SndbufErrors", "Udp6MemErrors",
)

func keep(names ...string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// ParseSNMP adds the counters of a text to c. The text has the form of
// /proc/net/snmp and /proc/net/netstat: pairs of lines, names and then values,
// each line beginning with its protocol. want selects names such as
// "Tcp.OutSegs"; nil selects all. Negative values (Tcp.MaxConn) are not
// counters and are left out.
func ParseSNMP(file string, text []byte, c Counters, want func(name string) bool) error {
	s := scanner{text}
	for {
		names, ok := s.line()
		if !ok {
			return nil
		}
		values, ok := s.line()
		if !ok {
			return badLine(file, names, "a line of values after it")
		}
		if err := snmpPair(file, names, values, c, want); err != nil {
			return err
		}
	}
}

func snmpPair(file string, names, values []byte, c Counters, want func(string) bool) error {
	n, v := scanner{names}, scanner{values}
	head, again := n.field(), v.field()
	if len(head) < 2 || head[len(head)-1] != ':' || string(head) != string(again) {
		return badLine(file, values, "values headed as the names before them")
	}
	protocol := string(head[:len(head)-1])
	for {
		name, value := n.field(), v.field()
		if len(name) == 0 && len(value) == 0 {
			return nil
		}
		if len(name) == 0 || len(value) == 0 {
			return badLine(file, values, "as many values as names")
		}
		if value[0] == '-' {
			continue
		}
		x, ok := decimal(value)
		if !ok {
			return badLine(file, values, "decimal counters")
		}
		if full := protocol + "." + string(name); want == nil || want(full) {
			c[full] = x
		}
	}
}

// ParseSNMP6 adds the counters of a text in the form of /proc/net/snmp6 to c: a
// name and a value on each line.
func ParseSNMP6(text []byte, c Counters, want func(name string) bool) error {
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
		if want == nil || want(name) {
			c[name] = x
		}
	}
}
