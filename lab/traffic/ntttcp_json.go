package traffic

import "io"

// NTttcpResult is what one end of an NTttcp run measured, as -json prints it.
type NTttcpResult struct {
	Bytes       int64   `json:"bytes"`       // payload of all threads
	Seconds     float64 `json:"seconds"`     // of the measured time
	Retransmits uint64  `json:"retransmits"` // the machine's: TCP segments; 0 with -u
	Errors      uint64  `json:"errors"`      // the machine's: failed connects, or undeliverable datagrams with -u
	CPU         float64 `json:"cpu_percent"` // the machine's, of all processors
}

func (a account) printJSON(out io.Writer) error {
	return printLine(out, NTttcpResult{
		Bytes: a.bytes(), Seconds: a.seconds, Retransmits: a.usage.retransmits, Errors: a.usage.errors, CPU: a.usage.cpu,
	})
}
