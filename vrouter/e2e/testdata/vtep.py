"""A tunnel endpoint made of Scapy: prints what overlay packets come in, and
answers the pings in them. It knows nothing of the program under test.

vtep.py DEVICE ENCAP LABEL LOCAL REMOTE REMOTE_MAC
"""
import json
import os
import signal
import sys

from scapy.all import GRE, ICMP, IP, UDP, Ether, IPv6, conf
from scapy.contrib.mpls import MPLS
from scapy.layers.inet6 import in6_chksum
from scapy.layers.vxlan import VXLAN

device, encap, label, local, remote, remote_mac = sys.argv[1:]
label = int(label)
conf.verb = 0
socket = conf.L2socket(iface=device)


def unwrap(frame):
    """The overlay packet in a frame, or None."""
    outer = frame.getlayer(IPv6 if ":" in local else IP)
    if outer is None or outer.dst != local:
        return None
    v6 = ":" in local
    seen = {
        "tos": outer.tc if v6 else outer.tos,
        "ttl": outer.hlim if v6 else outer.ttl,
        "df": True if v6 else bool(outer.flags.DF),
    }
    if encap == "mpls-gre":
        shim = outer.getlayer(GRE)
        if shim is None:
            return None
        seen["gre"] = [shim.chksum_present, shim.key_present, shim.seqnum_present, shim.version, shim.proto]
    else:
        shim = outer.getlayer(UDP)
        if shim is None or shim.dport not in (6635, 4789):
            return None
        seen.update(sport=shim.sport, dport=shim.dport, checksum=shim.chksum)
        if v6:
            data = bytes(shim)
            seen.update(right_checksum=in6_chksum(17, outer, data[:6] + b"\0\0" + data[8:]))
    # Scapy takes the payload apart by the UDP port; the bytes say the same.
    payload = bytes(shim.payload)
    if encap == "vxlan":
        shim = VXLAN(payload)
        seen.update(label=shim.vni, flags=int(shim.flags))
        inner = shim.getlayer(IP)
        seen.update(inner_dmac=shim.getlayer(Ether).dst, inner_smac=shim.getlayer(Ether).src)
    else:
        shim = MPLS(payload)
        seen.update(label=shim.label, exp=shim.cos, bottom=shim.s, label_ttl=shim.ttl)
        inner = IP(bytes(shim)[4:])
    if inner is None:
        return None
    seen.update(inner_src=inner.src, inner_dst=inner.dst, inner_tos=inner.tos, inner_ttl=inner.ttl, inner_protocol=inner.proto)
    return seen, inner


def wrap(inner, label=label, source=local):
    """A frame for the program under test; Scapy fills in lengths and checksums."""
    ip = IPv6(src=source, dst=remote) if ":" in source else IP(src=source, dst=remote, flags="DF")
    shim = {
        "mpls-gre": GRE(proto=0x8847) / MPLS(label=label, s=1, ttl=64),
        "mpls-udp": UDP(sport=50001, dport=6635) / MPLS(label=label, s=1, ttl=64),
        "vxlan": UDP(sport=50001, dport=4789) / VXLAN(vni=label, flags="Instance") / Ether(src="02:00:00:00:00:99", dst="00:00:5e:00:01:00"),
    }[encap]
    return Ether(dst=remote_mac) / ip / shim / inner


signal.signal(signal.SIGINT, lambda *_: os._exit(0))
print("ready", flush=True)
for frame in iter(socket.recv, 0):
    if frame is None:
        continue
    found = unwrap(frame)
    if found is None:
        continue
    seen, inner = found
    print(json.dumps(seen), flush=True)
    if inner.proto == 1 and inner[ICMP].type == 8:
        answer = IP(src=inner.dst, dst=inner.src, tos=inner.tos, ttl=63) / ICMP(type=0, id=inner[ICMP].id, seq=inner[ICMP].seq) / inner[ICMP].payload
        socket.send(wrap(answer))
        # What is not for the program, or not from whom it may come.
        socket.send(wrap(answer, label=777777))
        if ":" not in local:
            socket.send(wrap(answer, source="172.30.0.99"))
