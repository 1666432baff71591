#!/usr/bin/env python3
"""Makes the seeds of the fuzz target `capture`: seeds/capture/*.

Needs `giveway`, zstd, lz4 and Wireshark's tools (editcap, mergecap, tcpdump, tshark) in the path; the seeds are kept, so
that nobody else needs them. The packets are a simulation's, and some written here by hand for what a simulation does not
send. What no tool writes any more (big-endian files, old blocks) is written here as well.

    cargo build --release && PATH=$PWD/target/release:$PATH fuzz/seeds/capture.py
"""

import gzip
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = Path(__file__).parent / "capture"
LARGEST = 4000

SCENARIO = """
duration = "110 ms"
disciplines = ["fifo limit 2p"]
record = { port = ["home->isp", "isp->home"] }

[[link]]
from = "home"
to = "isp"
rate = "5 Mbit/s"
delay = "5 ms"
loss = "10 %"
qdisc = "compare"

[[traffic]]
kind = "bulk"
from = "home"
to = "isp"

[[traffic]]
kind = "audio"
from = "isp"
to = "home"
"""

# -- packets by hand --------------------------------------------------------------------------------


def ipv4(protocol, above, flags=0x4000, tos=0, options=b""):
    header = struct.pack(
        "!BBHHHBBH4s4s", 0x45 + len(options) // 4, tos, 20 + len(options) + len(above), 7, flags, 64, protocol, 0,
        bytes([10, 0, 0, 1]), bytes([10, 0, 1, 1]),
    ) + options
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + header[12:] + above


def ipv6(next_header, above, traffic_class=0):
    return struct.pack("!IHBB", 6 << 28 | traffic_class << 20, len(above), next_header, 64) + (
        bytes([0xFD] + [0] * 14 + [1]) + bytes([0xFD] + [0] * 14 + [2]) + above
    )


def udp(data):
    return struct.pack("!HHHH", 5000, 5004, 8 + len(data), 0) + data


def tcp(data, flags=0x10, options=b""):
    return struct.pack(
        "!HHIIBBHHH", 1024, 80, 4_000_000_000, 17, (20 + len(options)) * 4, flags, 65535, 0, 0
    ) + options + data


BY_HAND = [
    ipv4(6, tcp(b"data", 0xD2, bytes([2, 4, 5, 180, 1, 1, 4, 2]))),  # SYN, ECN set up, options
    ipv4(17, udp(b"datagram"), tos=1),
    ipv4(17, udp(b"with options"), options=bytes([7, 7, 4, 0, 0, 0, 0, 0])),
    ipv4(17, udp(b"a first fragment, 32 bytes of it"), flags=0x2000),
    ipv4(17, b"a later fragment", flags=0x0005),
    ipv4(1, bytes([8, 0, 0xF7, 0xFF, 0, 0, 0, 0])),  # ICMP
    ipv6(6, tcp(b"data"), traffic_class=3),
    ipv6(0, bytes([60, 0, 1, 4, 0, 0, 0, 0]) + bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp(b"options")),
    ipv6(43, bytes([6, 2, 4, 0, 0, 0, 0, 0]) + bytes(16) + tcp(b"routed")),
    ipv6(44, bytes([6, 0, 0, 1, 0, 0, 0, 9]) + tcp(b"a first fragment")),
    ipv6(44, bytes([17, 0, 0, 40, 0, 0, 0, 10]) + b"a later fragment"),
    ipv6(58, bytes([128, 0, 0, 0, 0, 1, 0, 1])),  # ICMPv6
]
MACS = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1])


def ether_type(packet):
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def family(packet, order):
    return struct.pack(order + "I", 2 if packet[0] >> 4 == 4 else 30)


LINKS = {
    "ethernet": (1, lambda p: MACS + ether_type(p) + p),
    "vlan": (1, lambda p: MACS + b"\x81\x00\x00\x05" + ether_type(p) + p),
    "qinq": (1, lambda p: MACS + b"\x88\xa8\x00\x05\x81\x00\x00\x06" + ether_type(p) + p),
    "pppoe": (1, lambda p: MACS + b"\x88\x64\x11\x00\x00\x01" + struct.pack("!H", len(p) + 2)
              + (b"\x00\x21" if p[0] >> 4 == 4 else b"\x00\x57") + p),
    "null": (0, lambda p: family(p, "<") + p),
    "loop": (108, lambda p: family(p, ">") + p),
    "raw": (101, lambda p: p),
    "cooked": (113, lambda p: b"\x00\x00\x00\x01\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00" + ether_type(p) + p),
    "cooked-2": (276, lambda p: ether_type(p) + b"\x00\x00\x00\x00\x00\x02\x00\x01\x00\x06\x02\x00\x00\x00\x00\x01\x00\x00" + p),
}


def pcap(link, frames, order="<", magic=0xA1B2C3D4, tick=1000):
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link)
    for number, frame in enumerate(frames):
        ns = number * 1_234_567
        out += struct.pack(order + "IIII", 1_600_000_000, ns // tick, len(frame), len(frame)) + frame
    return out


# -- blocks -----------------------------------------------------------------------------------------


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def section(order):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(order, link, resolution, snap=0):
    options = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    return block(order, 1, struct.pack(order + "HHI", link, 0, snap) + options)


def enhanced(order, number, ticks, frame):
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame))
    return block(order, 6, head + frame)


def old_blocks(order):
    """Interfaces with clocks of every kind, and packet blocks of every kind."""
    frame = LINKS["ethernet"][1](BY_HAND[0])
    second = 1_600_000_000
    return b"".join([
        section(order),
        interface(order, 1, 6),
        interface(order, 101, 9),
        interface(order, 1, 0x80 | 20),
        interface(order, 1, 3, snap=60),
        enhanced(order, 0, second * 10**6 + 1, frame),
        enhanced(order, 1, second * 10**9 + 2, BY_HAND[6]),
        enhanced(order, 2, (second << 20) + 3, frame),
        enhanced(order, 3, second * 10**3 + 4, frame),
        block(order, 2, struct.pack(order + "HHIIII", 0, 0xFFFF, *divmod(second * 10**6 + 5, 1 << 32), len(frame),
                                    len(frame)) + frame),
        block(order, 3, struct.pack(order + "I", len(frame)) + frame),
        block(order, 5, struct.pack(order + "III", 0, 0, 0)),
        block(order, 4, struct.pack(order + "HH", 0, 0)),
        block(order, 0xBAD, struct.pack(order + "I", 32473) + b"whatever"),
    ])


# -- files ------------------------------------------------------------------------------------------


def main():
    SEEDS.mkdir(exist_ok=True)
    for old in SEEDS.iterdir():
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(scratch))
    for seed in sorted(SEEDS.iterdir()):
        size = seed.stat().st_size
        print(f"{size:6} {seed.name}")
        if size > LARGEST:
            sys.exit(f"{seed.name} has {size} bytes: a seed has at most {LARGEST}")


def make(scratch):
    def tool(*command):
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, cwd=scratch)

    def seed(name):
        return SEEDS / name

    (scratch / "home.toml").write_text(SCENARIO)
    tool("giveway", "run", "home.toml", "--quiet", "--export", seed("simulated.pcapng"))
    simulated = seed("simulated.pcapng")

    tool("editcap", "-F", "pcapng", simulated, seed("editcap.pcapng"))
    tool("editcap", "-F", "pcap", simulated, seed("micro.pcap"))
    tool("editcap", "-F", "nsecpcap", simulated, seed("nano.pcap"))
    tool("editcap", "-F", "modpcap", simulated, seed("modified.pcap"))
    tool("editcap", "-F", "pcap", "-s", "38", simulated, seed("snap-38.pcap"))
    tool("tcpdump", "-r", seed("nano.pcap"), "-w", seed("tcpdump.pcap"), "tcp")
    tool("tshark", "-r", simulated, "-Y", "udp", "-w", seed("tshark.pcapng"))

    # Real ones: the beginning of the example, and a piece from beside its upload.
    example = SEEDS.parents[2] / "examples" / "home-uplink.pcapng"
    tool("editcap", "-r", example, seed("home-uplink.pcapng"), "1-12")
    tool("editcap", "-r", "-F", "pcap", example, seed("home-uplink-busy.pcap"), "4000-4016")

    for name, (link, wrap) in LINKS.items():
        seed(f"{name}.pcap").write_bytes(pcap(link, [wrap(packet) for packet in BY_HAND]))
    ethernet = [LINKS["ethernet"][1](packet) for packet in BY_HAND]
    seed("big-endian-micro.pcap").write_bytes(pcap(1, ethernet, ">"))
    seed("big-endian-nano.pcap").write_bytes(pcap(1, ethernet, ">", 0xA1B23C4D, 1))
    seed("blocks.pcapng").write_bytes(old_blocks("<"))
    seed("big-endian-blocks.pcapng").write_bytes(old_blocks(">"))

    tool("mergecap", "-w", seed("merged.pcapng"), seed("ethernet.pcap"), seed("cooked.pcap"), seed("null.pcap"))
    tool("editcap", "-F", "pcapng", "-s", "60", seed("vlan.pcap"), seed("snap-60.pcapng"))
    sections = seed("tshark.pcapng").read_bytes() + old_blocks(">") + seed("snap-60.pcapng").read_bytes()
    seed("sections.pcapng").write_bytes(sections)

    seed("micro.pcap.gz").write_bytes(gzip.compress(seed("micro.pcap").read_bytes(), mtime=0))
    seed("sections.pcapng.gz").write_bytes(
        gzip.compress(sections[:500], mtime=0) + gzip.compress(sections[500:], mtime=0))

    tool("zstd", "-q", "-19", "-f", seed("micro.pcap"), "-o", seed("micro.pcap.zst"))
    tool("lz4", "-q", "-f", seed("micro.pcap"), seed("micro.pcap.lz4"))

    # In the header of the sixth packet; in the tenth block.
    sixth = 24 + sum(16 + len(frame) for frame in ethernet[:5])
    seed("damaged.pcap").write_bytes(damaged(seed("ethernet.pcap").read_bytes(), sixth))
    blocks = simulated.read_bytes()
    tenth = 0
    for _ in range(9):
        tenth += struct.unpack_from("<I", blocks, tenth + 4)[0]
    seed("damaged.pcapng").write_bytes(damaged(blocks, tenth))


def damaged(content, at):
    return content[:at] + b"\xff" * 16 + content[at + 16:]


main()
