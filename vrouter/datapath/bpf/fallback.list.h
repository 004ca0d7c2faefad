/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Every reason why direct cannot carry a packet, once: the enum, the names and the counters
 * come from here. FALLBACK(NAME, text): operators read the text. Add new reasons at the end. */
FALLBACK(NONE, "direct carries the packet")
FALLBACK(IP_OPTIONS, "IPv4 header with options")
FALLBACK(FRAGMENT, "IPv4 fragment")
FALLBACK(LOW_TTL, "TTL or hop limit below 32")
FALLBACK(WITHOUT_DF, "IPv4 packet of more than 1260 bytes without DF")
FALLBACK(NO_CHECKSUM, "UDP over IPv4 without a checksum")
FALLBACK(UDP_SEGMENTS, "IPv4 superpacket of several datagrams")
FALLBACK(ICMP, "ICMP message other than an echo")
FALLBACK(PROTOCOL, "IPv4 protocol other than TCP, UDP and ICMP")
FALLBACK(EXTENSION_HEADER, "IPv6 hop-by-hop or destination options, or a routing header")
FALLBACK(PREFIX, "IPv6 address outside the first 96 bits of the network's first IPv6 subnet")
FALLBACK(NOT_IP, "bridged frame that is not IP")
FALLBACK(FLOODED, "copy of a broadcast or multicast frame")
FALLBACK(SOURCE, "bridged frame whose source address is not an address of its port")
FALLBACK(DESTINATION, "bridged frame whose destination address is not an address of the port with its destination MAC")
