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

// TCPHeaders is the length of all headers of a TCP data frame with timestamps,
// from Ethernet on. ipVersion is 4 or 6.
func TCPHeaders(ipVersion int) int {
	return EthernetHeader + ipHeader(ipVersion) + TCPHeader + TCPTimestamps
}

// UDPHeaders is the length of all headers of a datagram that is not fragmented.
func UDPHeaders(ipVersion int) int { return EthernetHeader + ipHeader(ipVersion) + UDPHeader }

func ipHeader(version int) int {
	if version == 6 {
		return IPv6Header
	}
	return IPv4Header
}

// GoodputFromCounters computes the payload, in bytes, from a device's byte and
// packet counters, if every packet has headers of headerBytes. The bytes must
// include Ethernet headers (DeviceReading.ReceivedBytes).
//
// A pure acknowledgement in the same direction adds exactly nothing: its packet
// has headers only. Selective acknowledgements make a header longer by 12 to 36
// bytes, which is ignored.
//
// A superframe of a device that segments counts as one packet with one set of
// headers. On a wire it would be many packets. The payload is right for both;
// the bytes on the wire differ.
func GoodputFromCounters(bytes, packets uint64, headerBytes int) uint64 {
	headers := packets * uint64(max(headerBytes, 0))
	if headers >= bytes {
		return 0
	}
	return bytes - headers
}
