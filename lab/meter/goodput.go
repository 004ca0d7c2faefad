package meter

// Lengths of headers in bytes.
const (
	EthernetHeader = 14
	IPv4Header     = 20
	IPv6Header     = 40
	TCPHeader      = 20
	TCPTimestamps  = 12 // RFC 7323, padded, on every segment of a Linux connection
	UDPHeader      = 8
)

// TCPHeaders is the length of all headers of a TCP data frame with
// timestamps, from Ethernet on; ipVersion is 4 or 6.
func TCPHeaders(ipVersion int) int {
	return EthernetHeader + ipHeader(ipVersion) + TCPHeader + TCPTimestamps
}

// UDPHeaders is the same of a datagram that is not fragmented.
func UDPHeaders(ipVersion int) int { return EthernetHeader + ipHeader(ipVersion) + UDPHeader }

func ipHeader(version int) int {
	if version == 6 {
		return IPv6Header
	}
	return IPv4Header
}

// GoodputFromCounters is the payload, in bytes, that a device's byte and packet
// counters stand for, where every packet has headers of headerBytes. The bytes
// must be counted with Ethernet headers (DeviceReading.ReceivedBytes).
//
// Pure acknowledgements in the same direction come out as nothing, exactly: a
// packet of headers only adds no payload. Selective acknowledgements make a
// header longer by 12 to 36 bytes, which is not accounted for.
//
// A superframe, handed over whole by a device that segments, is one packet
// with one set of headers in the counters as in its memory; on a wire it would
// be many. The arithmetic holds for either; the bytes on the wire differ.
func GoodputFromCounters(bytes, packets uint64, headerBytes int) uint64 {
	headers := packets * uint64(max(headerBytes, 0))
	if headers >= bytes {
		return 0
	}
	return bytes - headers
}
