package traffic

import "io"

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
