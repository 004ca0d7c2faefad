package tool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf16"
)

// The generator prints and writes the same text and XML as Microsoft's NTttcp. The
// lab's tools read neither. The parsers in the tests check them as programs would
// that read NTttcp's output.

// NTttcpReport is what one end of Microsoft's NTttcp says of a run, in SI
// units. Packets, retransmits, errors, interrupts and CPU are the machine's, not
// the run's alone, within the measured time.
type NTttcpReport struct {
	Side    Side   // from the XML's root; empty where text was read, which does not say
	Version string // such as "5.40"
	// UDP and Processors are told in XML only.
	UDP        bool
	Processors int

	Threads    []NTttcpThread // empty with -hpt
	Bytes      float64        // payload; exact to half a byte
	Seconds    float64        // measured time
	Throughput float64        // payload, bits per second
	FrameSize  float64        // payload bytes for each packet the machine sent (sender) or received (receiver)
	Buffers    float64        // of the length -l

	CyclesPerByte       float64 // CPU % times the processors' nominal clock, no counter; 0 where CPU is nil
	InterruptsPerSecond float64
	DPCsPerSecond       float64 // deferred procedure calls

	PacketsSent     int64 // TCP segments, or datagrams with -u
	PacketsReceived int64
	Retransmits     int64 // TCP segments; 0 with -u
	Errors          int64 // failed connection attempts (TCP), undeliverable datagrams (UDP)
	// CPU is busy time in percent of all processors; nil where NTttcp had none:
	// in too short a run it computes less than 0.
	CPU *float64

	Warnings []string // doubts that do not make the figures wrong
}

// NTttcpThread is one connection's row. In text its throughput is over the
// thread's own time, in XML over the whole run's; NTttcp 5.40 has been seen to
// print 0 for both time and throughput where the totals were right.
type NTttcpThread struct {
	Index         int
	Seconds       float64
	Throughput    float64 // bits per second
	PerCompletion float64 // bytes
}

// NTttcp's units. MEG, MB and KB are binary whatever the column; only mbps is
// decimal. So text's MB/s times 8 is Mibit/s: whoever calls that Mbit/s is
// 4.6 % too low. This is the one place where its megabytes become bits.
const (
	ntttcpKB = 1 << 10 // bytes
	ntttcpMB = 1 << 20 // bytes
)

// ParseNTttcpReport reads what NTttcp 5.28 to 5.40 printed (as one of its
// endpoints' consoles shows it, also saved by PowerShell as UTF-16), or the
// file that its -xml wrote. Of several runs, as -xml appends them to one file,
// the last is read and a warning says so.
//
// NTttcp exits with 0 when its work failed, so output without totals, of which
// nothing was carried, or whose figures contradict each other, is an error.
func ParseNTttcpReport(text string) (NTttcpReport, error) {
	text = plainText(text)
	read := readNTttcpConsole
	if strings.HasPrefix(strings.TrimSpace(text), "<") {
		read = readNTttcpFile
	}
	r, err := read(text)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return NTttcpReport{}, err
	}
	return r, nil
}

// plainText undoes what Windows does to a text: UTF-16 with a byte order mark,
// and carriage returns.
func plainText(text string) string {
	raw := []byte(text)
	if little := bytes.HasPrefix(raw, []byte{0xff, 0xfe}); little || bytes.HasPrefix(raw, []byte{0xfe, 0xff}) {
		var order binary.ByteOrder = binary.BigEndian
		if little {
			order = binary.LittleEndian
		}
		units := make([]uint16, 0, len(raw)/2)
		for raw = raw[2:]; len(raw) >= 2; raw = raw[2:] {
			units = append(units, order.Uint16(raw))
		}
		text = string(utf16.Decode(units))
	}
	text = strings.TrimPrefix(text, "\ufeff")
	return strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\r", "")
}

// check refuses what cannot be. Bytes over time and throughput are one figure
// told twice; they part where the document is not NTttcp's.
func (r NTttcpReport) check() error {
	if r.Bytes <= 0 || r.Throughput <= 0 {
		return errors.New("it carried nothing")
	}
	if r.Seconds <= 0 {
		return errors.New("the test took no time")
	}
	const rounding, halfDigit, megabyteDigit = 0.01, 0.0005, 8 * ntttcpMB * 0.001 // time and MB/s have three digits after the point
	again := r.Bytes * 8 / r.Seconds
	if math.Abs(again-r.Throughput) > (rounding+halfDigit/r.Seconds)*max(again, r.Throughput)+megabyteDigit {
		return fmt.Errorf("the totals contradict each other: %.0f bytes in %.3f s are %.0f bit/s, and the throughput is %.0f; "+
			"if ntttcp-for-linux wrote it, whose megabytes are 10^6 bytes, read it as tool %s's", r.Bytes, r.Seconds, again, r.Throughput, NTttcp{}.Name())
	}
	return nil
}

// setCPU sets CPU unless NTttcp had none.
func (r *NTttcpReport) setCPU(text string) error {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "-") {
		r.Warnings = append(r.Warnings, fmt.Sprintf("NTttcp's CPU of %s %% cannot be: its run was too short for its clock", text))
		return nil
	}
	v, err := figure("Avg. CPU %", text)
	if err != nil {
		return err
	}
	r.CPU = &v
	return nil
}
