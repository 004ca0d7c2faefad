package traffic

import (
	"fmt"
	"io"
)

// account has the measurements of an NTttcp run, with NTttcp's meaning: a thread's bytes
// are counted in the window; retransmits, errors, interrupts and CPU are of the whole
// machine; packets are of the network namespace.
//
// NTttcp computes cycles/byte from the CPU percent and the nominal clock rate, without a
// counter, and so does this program. The value is 0 if the kernel does not report the clock
// rate. Deferred procedure calls exist on Windows only, so their columns are 0.
type account struct {
	options  options
	computer string
	seconds  float64 // realtime
	threads  []threadAccount
	usage    machineCounters // growth of the counters in the window
	mhz      float64
}

type threadAccount struct {
	seconds float64
	bytes   int64
	calls   int64
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

func (a account) bytes() (n int64) {
	for _, t := range a.threads {
		n += t.bytes
	}
	return n
}

func (a account) calls() (n int64) {
	for _, t := range a.threads {
		n += t.calls
	}
	return n
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func (a account) rate() float64 { return ratio(float64(a.bytes()), a.seconds) } // bytes per second

func (a account) frames() float64 {
	if a.options.sender {
		return float64(a.usage.sent)
	}
	return float64(a.usage.received)
}

func (a account) cyclesPerByte() float64 {
	return ratio(a.usage.cpu()/100*float64(a.usage.processors)*a.mhz*1e6, a.rate())
}

// printText prints the account in NTttcp's format.
func (a account) printText(out io.Writer) error {
	p := &printer{out: out}
	if !a.options.hidden {
		p.printf("\n\nThread  Time(s) Throughput(KB/s) Avg B / Compl\n")
		p.printf("======  ======= ================ =============\n")
		for i, t := range a.threads {
			p.printf("%6d %8.3f %16.3f %13.3f\n", i, t.seconds, ratio(float64(t.bytes), t.seconds)/kib, ratio(float64(t.bytes), float64(t.calls)))
		}
	}
	buffers := float64(a.bytes()) / float64(a.options.length)
	p.printf("\n\n#####  Totals:  #####\n")
	p.printf("\n\n   Bytes(MEG)    realtime(s) Avg Frame Size Throughput(MB/s)\n")
	p.printf("================ =========== ============== ================\n")
	p.printf("%16.6f %11.3f %14.3f %16.3f\n", float64(a.bytes())/mib, a.seconds, ratio(float64(a.bytes()), a.frames()), a.rate()/mib)
	p.printf("\n\nThroughput(Buffers/s) Cycles/Byte       Buffers\n")
	p.printf("===================== =========== =============\n")
	p.printf("%21.3f %11.3f %13.3f\n", ratio(buffers, a.seconds), a.cyclesPerByte(), buffers)
	p.printf("\n\nDPCs(count/s) Pkts(num/DPC)   Intr(count/s) Pkts(num/intr)\n")
	p.printf("============= ============= =============== ==============\n")
	interrupts := float64(a.usage.interrupts)
	p.printf("%13.3f %13.3f   %13.3f  %13.3f\n", 0.0, 0.0, ratio(interrupts, a.seconds), ratio(float64(a.usage.received), interrupts))
	p.printf("\n\nPackets Sent Packets Received Retransmits Errors Avg. CPU %%\n")
	p.printf("============ ================ =========== ====== ==========\n")
	p.printf("%12d %16d %11d %6d %10.3f\n", a.usage.sent, a.usage.received, a.usage.retransmits, a.usage.errors, a.usage.cpu())
	return p.err
}

// printer keeps the first error of writing.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// NTttcpResult has the figures of one end of an NTttcp run. The flag -json prints it.
type NTttcpResult struct {
	Bytes       int64   `json:"bytes"`           // payload of all threads
	Seconds     float64 `json:"seconds"`         // length of the measured time
	Retransmits uint64  `json:"retransmits"`     // TCP segments that the whole machine sent again; 0 with -u
	Errors      uint64  `json:"errors"`          // failed connects of the whole machine; with -u undeliverable datagrams
	FrameSize   float64 `json:"avg_frame_bytes"` // payload / packets of the data direction, as in "Avg Frame Size"
	CPU         float64 `json:"cpu_percent"`     // CPU use of the whole machine, in percent of all processors
}

func (a account) printJSON(out io.Writer) error {
	return printLine(out, NTttcpResult{
		Bytes: a.bytes(), Seconds: a.seconds, Retransmits: a.usage.retransmits, Errors: a.usage.errors, CPU: a.usage.cpu(),
		FrameSize: ratio(float64(a.bytes()), a.frames()),
	})
}
