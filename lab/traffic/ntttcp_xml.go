package traffic

import (
	"encoding/xml"
	"fmt"
	"os"
)

// ntttcpXML is NTttcp's XML document (version 5.40): the names and their order
// are NTttcp's. The root is ntttcps for a sender and ntttcpr for a receiver.
// MB and KB are binary, mbps is 10^6 bits per second, Bps bytes per second.
type ntttcpXML struct {
	XMLName    xml.Name
	Computer   string        `xml:"computername,attr"`
	Version    string        `xml:"version,attr"`
	Parameters xmlParameters `xml:"parameters"`
	Threads    []xmlThread   `xml:"thread"`
	Bytes      metric        `xml:"total_bytes"`
	RealTime   metric        `xml:"realtime"`
	PerCall    metric        `xml:"avg_bytes_per_compl"`
	PerThread  metric        `xml:"threads_avg_bytes_per_compl"`
	FrameSize  metric        `xml:"avg_frame_size"`
	Rates      []metric      `xml:"throughput"`
	Buffers    string        `xml:"total_buffers"`
	PerIntr    metric        `xml:"avg_packets_per_interrupt"`
	Interrupts metric        `xml:"interrupts"`
	DPCs       metric        `xml:"dpcs"`
	PerDPC     metric        `xml:"avg_packets_per_dpc"`
	Cycles     metric        `xml:"cycles"`
	Sent       uint64        `xml:"packets_sent"`
	Received   uint64        `xml:"packets_received"`
	Retrans    uint64        `xml:"packets_retransmitted"`
	Errors     uint64        `xml:"errors"`
	CPU        metric        `xml:"cpu"`
	Processors int           `xml:"num_processors"`
	Count      int64         `xml:"bufferCount"`
	Length     int           `xml:"bufferLen"`
	IO         int           `xml:"io"`
}

type metric struct {
	Metric string `xml:"metric,attr"`
	Value  string `xml:",chardata"`
}

type xmlThread struct {
	Index    int      `xml:"index,attr"`
	RealTime metric   `xml:"realtime"`
	Rates    []metric `xml:"throughput"`
	PerCall  metric   `xml:"avg_bytes_per_compl"`
}

// xmlParameters has every parameter of NTttcp. A parameter that does not exist here has the
// value that NTttcp prints if the parameter is not used. Times are in milliseconds.
type xmlParameters struct {
	SendBuffer    int     `xml:"send_socket_buff"`
	ReceiveBuffer int     `xml:"recv_socket_buff"`
	Port          int     `xml:"port"`
	SyncPort      boolean `xml:"sync_port"`
	NoSync        boolean `xml:"no_sync"`
	Wait          int64   `xml:"wait_timeout_milliseconds"`
	Async         boolean `xml:"async"`
	Verbose       boolean `xml:"verbose"`
	WSA           boolean `xml:"wsa"`
	IPv6          boolean `xml:"use_ipv6"`
	UDP           boolean `xml:"udp"`
	Unconnected   boolean `xml:"udp_unconnected"`
	Verify        boolean `xml:"verify_data"`
	WaitAll       boolean `xml:"wait_all"`
	RunTime       int64   `xml:"run_time"`
	Warmup        int64   `xml:"warmup_time"`
	Cooldown      int64   `xml:"cooldown_time"`
	NLimit        int64   `xml:"dash_n_timeout"`
	BindSender    boolean `xml:"bind_sender"`
	SenderName    string  `xml:"sender_name"`
	MaxThreads    int     `xml:"max_active_threads"`
	USO           int     `xml:"udp_uso_size"`
	URO           int     `xml:"udp_receive_coalescing"`
	TP            boolean `xml:"tp"`
	HyperV        boolean `xml:"use_hvsocket_flag"`
	NoStdioBuffer boolean `xml:"no_stdio_buffer"`
	Throttle      int64   `xml:"throughput_Bpms"`
	Burn          int     `xml:"cpu_burn"`
	Latency       boolean `xml:"latency_measurement"`
	Completion    boolean `xml:"use_io_compl_ports"`
	FromIdle      boolean `xml:"cpu_from_idle_flag"`
	EStats        boolean `xml:"get_estats"`
	QOS           boolean `xml:"qos_flag"`
	Jitter        boolean `xml:"jitter_measurement"`
	Spacing       int     `xml:"packet_spacing"`
}

// boolean prints True and False, as NTttcp does.
type boolean bool

// MarshalText implements encoding.TextMarshaler.
func (b boolean) MarshalText() ([]byte, error) {
	if b {
		return []byte("True"), nil
	}
	return []byte("False"), nil
}

func decimals(name string, value float64, places int) metric {
	return metric{name, fmt.Sprintf("%.*f", places, value)}
}

// document converts the account to NTttcp's XML.
func (a account) document() ntttcpXML {
	root := "ntttcpr"
	if a.options.sender {
		root = "ntttcps"
	}
	bytes, calls, interrupts := float64(a.bytes()), float64(a.calls()), float64(a.usage.interrupts)
	length := float64(a.options.length)
	d := ntttcpXML{
		XMLName: xml.Name{Local: root}, Computer: a.computer, Version: ntttcpVersion,
		Parameters: a.options.parameters(),
		Bytes:      decimals("MB", bytes/mib, 6),
		RealTime:   decimals("s", a.seconds, 6),
		PerCall:    decimals("B", ratio(bytes, calls), 3),
		FrameSize:  decimals("B", ratio(bytes, a.frames()), 3),
		Rates:      append(rates(a.rate())[1:], decimals("buffers/s", a.rate()/length, 3)),
		Buffers:    fmt.Sprintf("%.3f", bytes/length),
		PerIntr:    decimals("packets/interrupt", ratio(float64(a.usage.received), interrupts), 3),
		Interrupts: decimals("count/sec", ratio(interrupts, a.seconds), 3),
		DPCs:       decimals("count/sec", 0, 3),
		PerDPC:     decimals("packets/dpc", 0, 3),
		Cycles:     decimals("cycles/byte", a.cyclesPerByte(), 3),
		Sent:       a.usage.sent, Received: a.usage.received, Retrans: a.usage.retransmits, Errors: a.usage.errors,
		CPU:        decimals("%", a.usage.cpu(), 3),
		Processors: a.usage.processors,
		Count:      a.options.buffers, Length: a.options.length, IO: max(2, a.options.async),
	}
	var perThread float64
	for i, t := range a.threads {
		perCall := ratio(float64(t.bytes), float64(t.calls))
		perThread += perCall / float64(len(a.threads))
		if !a.options.hidden {
			d.Threads = append(d.Threads, xmlThread{i, decimals("s", t.seconds, 3), rates(ratio(float64(t.bytes), t.seconds)), decimals("B", perCall, 3)})
		}
	}
	d.PerThread = decimals("B", perThread, 3)
	return d
}

func rates(bytesPerSecond float64) []metric {
	return []metric{
		decimals("KB/s", bytesPerSecond/kib, 3), decimals("MB/s", bytesPerSecond/mib, 3),
		decimals("mbps", bytesPerSecond*8/1e6, 3), decimals("Bps", bytesPerSecond, 1),
	}
}

func (o options) parameters() xmlParameters {
	return xmlParameters{
		SendBuffer: o.send, ReceiveBuffer: o.receive, Port: o.port, NoSync: boolean(o.noSync),
		Wait: o.wait.Milliseconds(), Async: o.async > 0, Verbose: boolean(o.verbose), IPv6: boolean(o.ipv6),
		UDP: boolean(o.udp), WaitAll: boolean(o.waitAll), RunTime: o.runTime.Milliseconds(),
		Warmup: o.warmup.Milliseconds(), Cooldown: o.cooldown.Milliseconds(), NLimit: o.limit.Milliseconds(),
		BindSender: o.nic != "", SenderName: o.nic, MaxThreads: o.threads(), Throttle: o.pace * 1024 / 1000,
	}
}

// writeXML writes the document to the file of -xml. It replaces an existing file. NTttcp
// would append to it, which is not valid XML, because the file then has two roots.
func (a account) writeXML() error {
	text, err := xml.MarshalIndent(a.document(), "", "\t")
	if err == nil {
		err = os.WriteFile(a.options.xml, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the figures to -xml %s: %w", a.options.xml, err)
	}
	return nil
}
