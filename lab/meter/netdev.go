package meter

import "bytes"

// Traffic has the received and sent bytes and packets of a device since it was
// made.
type Traffic struct {
	RxBytes   uint64 `json:"rx_bytes"`
	RxPackets uint64 `json:"rx_packets"`
	TxBytes   uint64 `json:"tx_bytes"`
	TxPackets uint64 `json:"tx_packets"`
}

const netDevFile = "/proc/net/dev"

// eachNetDev visits the devices of /proc/net/dev. The name is valid only during
// the visit.
func eachNetDev(text []byte, visit func(name []byte, t Traffic)) error {
	s := scanner{text}
	for row := 0; ; row++ {
		line, ok := s.line()
		if !ok {
			return nil
		}
		if row < 2 {
			continue // two lines of headings
		}
		// A device name contains no colon, space or slash (dev_valid_name,
		// net/core/dev.c). The counters may follow the colon without a space.
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if name = bytes.TrimLeft(name, " "); !ok || len(name) == 0 {
			return badLine(netDevFile, line, "a device name and a colon")
		}
		t, ok := traffic(scanner{rest})
		if !ok {
			return badLine(netDevFile, line, "16 decimal counters")
		}
		visit(name, t)
	}
}

func traffic(fields scanner) (t Traffic, ok bool) {
	to := [16]*uint64{0: &t.RxBytes, 1: &t.RxPackets, 8: &t.TxBytes, 9: &t.TxPackets}
	for i := range to {
		n, ok := decimal(fields.field())
		if !ok {
			return t, false
		}
		if to[i] != nil {
			*to[i] = n
		}
	}
	return t, true
}
