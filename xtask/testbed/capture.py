"""Captures: reads tcpdump's file, keeps the headers, writes pcapng.

- draft-ietf-opsawg-pcap, with nanoseconds (magic 0xa1b23c4d); draft-ietf-opsawg-pcapng.
- The lengths in the headers, of the frames and of IP, stay those of the wire: only what was carried is gone.
"""

import collections
import struct

ETHERNET, IPV4, TCP, UDP = 14, 0x0800, 6, 17
SYN, ACK = 0x02, 0x10

# What pcapng calls its blocks and options.
SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
COMMENT, HARDWARE_OR_NAME, SYSTEM, PROGRAM, RESOLUTION = 1, 2, 3, 4, 9

# time: nanoseconds since 1970; length: on the wire; kept: the headers.
Packet = collections.namedtuple("Packet", "time length kept")


def read(path):
    """The packets of a pcap file with nanoseconds, cut after their headers."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:4] != struct.pack("<I", 0xA1B23C4D):
        raise ValueError(f"{path} is not a little-endian pcap file with nanoseconds")
    at = 24
    while at < len(data):
        seconds, nanos, captured, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + captured]
        yield Packet(seconds * 1_000_000_000 + nanos, length, frame[: header_length(frame)])
        at += 16 + captured


def header_length(frame):
    """Bytes of link, IP and transport header. The frame may be cut behind them."""
    if struct.unpack_from("!H", frame, 12)[0] != IPV4:
        return len(frame)  # ARP: all header
    transport = ETHERNET + (frame[14] & 15) * 4
    if frame[23] == TCP:
        return transport + (frame[transport + 12] >> 4) * 4
    return transport + 8  # UDP, and ICMP without what it quotes


def write(path, packets, interface, system, program, comment):
    """A pcapng file of one section and one interface, with nanoseconds."""
    about = [(COMMENT, comment), (SYSTEM, system), (PROGRAM, program)]
    about = options([(code, text.encode()) for code, text in about])
    named = options([(HARDWARE_OR_NAME, interface.encode()), (RESOLUTION, bytes([9]))])
    with open(path, "wb") as file:
        file.write(block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + about))
        # Link type 1 is Ethernet; a snap length of 0 says that it is not what cut the packets.
        file.write(block(INTERFACE, struct.pack("<HHI", 1, 0, 0) + named))
        for packet in packets:
            high, low = packet.time >> 32, packet.time & 0xFFFFFFFF
            fixed = struct.pack("<IIIII", 0, high, low, len(packet.kept), packet.length)
            file.write(block(PACKET, fixed + padded(packet.kept)))


def block(kind, body):
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def options(pairs):
    listed = (struct.pack("<HH", code, len(value)) + padded(value) for code, value in pairs)
    return b"".join(listed) + struct.pack("<HH", 0, 0)


def padded(value):
    return value + bytes(-len(value) % 4)


def flow(packet):
    """Protocol, source, its port, destination, its port; None where there are no ports."""
    frame = packet.kept
    if struct.unpack_from("!H", frame, 12)[0] != IPV4 or frame[23] not in (TCP, UDP):
        return None
    ports = struct.unpack_from("!HH", frame, ETHERNET + (frame[14] & 15) * 4)
    address = lambda at: ".".join(map(str, frame[at : at + 4]))
    return frame[23], address(26), ports[0], address(30), ports[1]


def handshakes(packets):
    """Per TCP connection when its SYN went out and how long the SYN-ACK took, in nanoseconds.

    Connections that sent their SYN twice are left out: which of the two was answered is unknown.
    """
    asked = collections.defaultdict(list)
    answered = {}
    for packet in packets:
        key = flow(packet)
        if key is None or key[0] != TCP:
            continue
        flags = packet.kept[ETHERNET + (packet.kept[14] & 15) * 4 + 13]
        if flags & SYN and flags & ACK:
            answered.setdefault((key[0], key[3], key[4], key[1], key[2]), packet.time)
        elif flags & SYN:
            asked[key].append(packet.time)
    for key, times in asked.items():
        if len(times) == 1 and key in answered:
            yield times[0], answered[key] - times[0]
