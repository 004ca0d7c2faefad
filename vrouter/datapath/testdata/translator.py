"""A translator made of Scapy, written from docs/datapath.md#translation and RFC 7915. It plays
a node without an agent: it prints the packets that arrive in its locator, and answers pings,
datagrams and TCP segments in them.

translator.py DEVICE OWN_LOCATOR FAR_LOCATOR NETWORK PREFIX6

DEVICE -: read frames from stdin, and print the answers.
"""
import ipaddress
import json
import os
import signal
import sys

from scapy.all import TCP, UDP, Ether, ICMPv6EchoReply, ICMPv6EchoRequest, IPv6, IPv6ExtHdrFragment, Raw, conf, defragment6, fragment6, raw
from scapy.layers.inet6 import in6_chksum

device, own, far, network, prefix6 = sys.argv[1:]
own, far = ipaddress.ip_network(own), ipaddress.ip_network(far)
network, prefix6 = int(network), ipaddress.ip_network(prefix6)
conf.verb = 0


def words(data):
    return [data[i] << 8 | data[i + 1] for i in range(0, len(data), 2)]


def total(numbers):
    """The one's complement sum; 0 and 0xffff are one number, returned as 0."""
    return sum(numbers) % 0xFFFF


def places():
    """Of the own and the far address: where the network stands, and who has adjustments.
    Returns {locator: (offset of the network, offset of the adjustment)}; None: it has none."""
    if own.prefixlen == far.prefixlen == 64:
        return {own: (10, 8), far: (10, 8)}
    if own.prefixlen == 64:
        return {own: (10, 8), far: (10, None)}
    if far.prefixlen == 64:
        return {own: (10, None), far: (10, 8)}
    lesser = min(own, far)
    return {n: (None, 10) if n == lesser else (10, None) for n in (own, far)}


def inner_address(a, v6):
    """The workload's address in an address of the underlay."""
    last = int(a) & 0xFFFFFFFF
    return ipaddress.ip_address(int(prefix6.network_address) | last) if v6 else ipaddress.IPv4Address(last)


def neutral(pairs, v6):
    """Whether the sums of the addresses are equal to those of the workloads' addresses."""
    want = words(prefix6.network_address.packed[:12]) if v6 else [0]
    one = [total(words(a.packed[:12])) for a in pairs]
    if own.prefixlen == far.prefixlen == 64:
        return all(s == total(want) for s in one)
    return total(one) == total(want + want)


def outer_addresses(ends):
    """The underlay's addresses of (locator, workload's address) pairs."""
    v6 = ends[0][1].version == 6
    want = words(prefix6.network_address.packed[:12]) if v6 else [0]
    out = []
    for locator, a in ends:
        b = bytearray(locator.network_address.packed)
        b[12:] = a.packed[-4:]
        at, _ = places()[locator]
        if at:
            b[at : at + 2] = (network | (0x8000 if v6 else 0)).to_bytes(2, "big")
        out.append(b)

    def adjust(b, at, others, count):
        missing = (total(want * count) - total(words(bytes(b[:12])) + others)) % 0xFFFF
        b[at : at + 2] = (missing or 0xFFFF).to_bytes(2, "big")

    adjusted = [(b, places()[locator][1]) for b, (locator, _) in zip(out, ends)]
    if all(at for _, at in adjusted):
        for b, at in adjusted:
            adjust(b, at, [], 1)
    else:
        for i, (b, at) in enumerate(adjusted):
            if at:
                adjust(b, at, words(bytes(out[1 - i][:12])), 2)
    return [str(ipaddress.IPv6Address(bytes(b))) for b in out]


def networks(frame):
    """The fields with the network, and the family: True for IPv6."""
    found = set()
    for a in (frame.src, frame.dst):
        a = ipaddress.ip_address(a)
        at, _ = places()[own if a in own else far]
        if at:
            found.add(int.from_bytes(a.packed[at : at + 2], "big"))
    return found


def checksum_is_right(ip, source, target):
    """Whether the checksum of an IPv6 packet's transport is right for two IPv6 addresses."""
    copy = IPv6(src=str(source), dst=str(target), nh=ip.nh, plen=ip.plen)
    return in6_chksum(ip.nh, copy, raw(ip.payload)) == 0


def inner_checksum_is_right(ip, v6, source, target):
    """The same for the workloads' addresses, with ICMP of IPv4 recomputed by its receiver."""
    if v6:
        return checksum_is_right(ip, source, target)
    if ip.nh == 58:
        return True
    # The pseudo-header of IPv4 has the same sum as one of IPv6 with only the last 32 bits.
    return checksum_is_right(ip, ipaddress.IPv6Address(int(source)), ipaddress.IPv6Address(int(target)))


def answer(ip, source, target):
    """The packet of this node's workload that answers a packet; its checksum is for the
    workloads' addresses if they are IPv6, else for the underlay's."""
    v6 = source.version == 6
    near, away = outer_addresses([(own, target), (far, source)])
    if TCP in ip:
        body = TCP(sport=ip[TCP].dport, dport=ip[TCP].sport, seq=ip[TCP].ack, ack=ip[TCP].seq, flags="A") / raw(ip[TCP].payload)
    elif UDP in ip:
        body = UDP(sport=ip[UDP].dport, dport=ip[UDP].sport) / raw(ip[UDP].payload)
    elif ICMPv6EchoRequest in ip:
        request = ip[ICMPv6EchoRequest]
        body = ICMPv6EchoReply(id=request.id, seq=request.seq, data=request.data)
    else:
        return None
    if v6:  # compute the checksum for the workloads, then change nothing but the addresses
        reply = IPv6(raw(IPv6(src=str(target), dst=str(source), hlim=60) / body))
        reply.src, reply.dst = near, away
        return reply
    return IPv6(raw(IPv6(src=near, dst=away, hlim=60) / body))


signal.signal(signal.SIGINT, lambda *_: os._exit(0))
fragments = {}


def handle(frame):
    """What arrived in a frame, and the frames that answer it; None: nothing in the locator."""
    ip = frame[IPv6]
    target, source = ipaddress.ip_address(ip.dst), ipaddress.ip_address(ip.src)
    if source not in far or target not in own or target == own.network_address + 1:
        return None
    if IPv6ExtHdrFragment in ip:
        parts = fragments.setdefault(ip[IPv6ExtHdrFragment].id, [])
        parts.append(ip)
        if ip[IPv6ExtHdrFragment].m:
            return None
        ip = IPv6(raw(defragment6(parts)))
    else:
        parts = [ip]
        ip = IPv6(raw(ip)[: 40 + ip.plen])
    found = networks(ip)
    v6 = bool(max(found) & 0x8000)
    inner = [inner_address(a, v6) for a in (source, target)]
    seen = {
        "version": 6 if v6 else 4, "protocol": ip.nh, "fragments": len(parts), "length": len(raw(ip)),
        "network": max(found) & 0xFFF if len(found) == 1 else -1,
        "from": str(inner[0]), "to": str(inner[1]),
        "neutral": neutral((source, target), v6),
        "same_as_built": [ip.src, ip.dst] == outer_addresses([(far, inner[0]), (own, inner[1])]),
        "outer_checksum": checksum_is_right(ip, source, target),
        "inner_checksum": inner_checksum_is_right(ip, v6, *inner),
    }
    reply = answer(ip, *inner)
    out = [] if reply is None else [reply]
    if out and len(raw(reply)) > 1400:
        first, rest = IPv6(raw(reply)[:40]), raw(reply)[40:]
        head = IPv6(src=reply.src, dst=reply.dst, hlim=60)
        out = fragment6(head / IPv6ExtHdrFragment(id=parts[0][IPv6ExtHdrFragment].id, nh=first.nh) / Raw(rest), 1400)
    return seen, [Ether(src=frame[Ether].dst, dst=frame[Ether].src) / p for p in out]


def frames():
    """Frames of the device, or of stdin: one a line, in hexadecimal digits."""
    if device == "-":
        yield from (Ether(bytes.fromhex(line)) for line in sys.stdin)
    else:
        socket = conf.L2socket(iface=device)
        send.append(socket.send)
        print("ready", flush=True)
        yield from iter(socket.recv, 0)


send = []
for frame in frames():
    if frame is None or IPv6 not in frame:
        continue
    found = handle(frame)
    if found is None:
        continue
    seen, answers = found
    if not send:
        seen["answers"] = [raw(f).hex() for f in answers]
    print(json.dumps(seen), flush=True)
    for f in answers:
        if send:
            send[0](f)
