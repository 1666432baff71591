"""What a recording rests on: cutting captures, the plan of the pages, what is refused. Needs no network and no root."""

import copy
import os
import struct
import sys
import tempfile
import unittest

import capture
import traffic

MACS = bytes.fromhex("020000000001 020000000020")
HOME, WEB = bytes([192, 168, 1, 20]), bytes([203, 0, 113, 10])


def ip(protocol, source, destination, rest, options=b""):
    header = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0, 20 + len(options) + len(rest), 0, 0, 64, protocol, 0)
    return MACS + b"\x08\x00" + header + source + destination + options + rest


def tcp(source, destination, ports, flags, options=b"", payload=b""):
    header = struct.pack("!HHIIBBHHH", *ports, 0, 0, (20 + len(options)) * 4, flags, 0, 0, 0)
    return ip(6, source, destination, header + options + payload)


def udp(payload):
    return ip(17, HOME, WEB, struct.pack("!HHHH", 5000, 53, 8 + len(payload), 0) + payload)


def kept(frame):
    return frame[: capture.header_length(frame)]


class Cutting(unittest.TestCase):
    def test_what_tcp_and_udp_carry_is_gone(self):
        frame = udp(b"secret")
        self.assertEqual(kept(frame), frame[:-6])
        frame = tcp(HOME, WEB, (4000, 80), 0x18, payload=b"secret")
        self.assertEqual(kept(frame), frame[:-6])

    def test_options_of_ip_and_tcp_are_headers(self):
        frame = tcp(HOME, WEB, (4000, 80), 0x02, options=b"\2\4\5\xb4" + b"\1" * 36)
        self.assertEqual(kept(frame), frame)
        frame = ip(17, HOME, WEB, struct.pack("!HHHH", 1, 2, 14, 0) + b"secret", options=b"\1" * 40)
        self.assertEqual(kept(frame), frame[:-6])

    def test_arp_is_all_header(self):
        frame = MACS + b"\x08\x06" + bytes(28)
        self.assertEqual(kept(frame), frame)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "capture")

    def test_a_recording_of_tcpdump_is_read_with_its_lengths_on_the_wire(self):
        frame = tcp(HOME, WEB, (4000, 80), 0x10, payload=bytes(1460))
        with open(self.path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1))
            file.write(struct.pack("<IIII", 5, 7, 96, len(frame)) + frame[:96])
        self.assertEqual(list(capture.read(self.path)), [(5_000_000_007, 1514, frame[:54])])

    def test_another_kind_of_file_is_refused(self):
        with open(self.path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 96, 1))
        with self.assertRaisesRegex(ValueError, "not a little-endian pcap file with nanoseconds"):
            list(capture.read(self.path))

    def test_what_is_written_is_pcapng(self):
        frame = kept(udp(b"secret"))
        capture.write(self.path, [capture.Packet(5_000_000_007, 48, frame)], "lan0", "Linux", "test", "A remark.")
        with open(self.path, "rb") as file:
            data = file.read()
        blocks, at = [], 0
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            self.assertEqual(length % 4, 0)
            self.assertEqual(struct.unpack_from("<I", data, at + length - 4), (length,))
            blocks.append((kind, data[at + 8 : at + length - 4]))
            at += length
        self.assertEqual([kind for kind, _ in blocks], [0x0A0D0D0A, 1, 6])
        # Byte order, version 1.0, length of the section unknown; then the remark, option 1.
        self.assertEqual(blocks[0][1][:16], struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
        self.assertEqual(blocks[0][1][16:29], struct.pack("<HH", 1, 9) + b"A remark.")
        # Ethernet; its name, option 2; nanoseconds, option 9; the end of the options.
        options = struct.pack("<HH4sHHB3xHH", 2, 4, b"lan0", 9, 1, 9, 0, 0)
        self.assertEqual(blocks[1][1], struct.pack("<HHI", 1, 0, 0) + options)
        self.assertEqual(blocks[2][1], struct.pack("<IIIII", 0, 1, 705_032_711, 42, 48) + frame + b"\0\0")


class Handshakes(unittest.TestCase):
    def seen(self, *frames):
        return list(capture.handshakes(capture.Packet(time, len(frame), frame) for time, frame in frames))

    def test_a_handshake_takes_from_syn_to_syn_ack(self):
        syn = tcp(HOME, WEB, (4000, 80), 0x02)
        other = tcp(WEB, HOME, (80, 4001), 0x12)
        answer = tcp(WEB, HOME, (80, 4000), 0x12)
        self.assertEqual(self.seen((10, syn), (20, other), (40, answer)), [(10, 30)])

    def test_one_that_asked_twice_does_not_count(self):
        syn, answer = tcp(HOME, WEB, (4000, 80), 0x02), tcp(WEB, HOME, (80, 4000), 0x12)
        self.assertEqual(self.seen((10, syn), (20, syn), (40, answer)), [])


class Plan(unittest.TestCase):
    def test_the_same_pages_every_time(self):
        self.assertEqual(list(traffic.plan()), list(traffic.plan()))

    def test_pages_are_what_the_readme_says(self):
        pages = list(traffic.plan())
        self.assertEqual(len(pages), 12)
        for page in pages:
            self.assertTrue(20_000 <= page["document"]["bytes"] <= 60_000)
            self.assertTrue(6 <= len(page["objects"]) <= 25)
            self.assertTrue(all(1_000 <= item["bytes"] <= 200_000 for item in page["objects"]))


@unittest.skipUnless(sys.platform.startswith("linux"), "recordings are made on Linux")
class Objections(unittest.TestCase):
    """A recording of one page and an upload, sound but for what a test changes."""

    def setUp(self):
        way = {"lost": 0, "refused_by_tbf": 3, "late_p99_ms": 0.2}
        call = {"sent": 2000, "received": [[number, 15.0] for number in range(2000)]}
        self.measured = {
            "home": {
                "pages": [{"start_s": 0.5, "completion_s": 0.3, "objects": 6, "bytes": 90_000}],
                "upload": {"start_s": 8.0, "duration_s": 20.0, "bytes": 4_400_000},
            },
            "near": call,
            "far": call,
            "line": {"up": way, "down": {**way, "refused_by_tbf": 0}},
            "tbf": {"up": 3, "down": 0},
            "missed": 0,
            "clock_step_ms": 0.01,
            "start_unix_ns": 1_000_000_000,
        }
        self.opened = [(1_530_000_000, 30_200_000), (9_000_000_000, 300_000_000)]
        self.packets = [capture.Packet(1_000_000_000, 214, udp(b""))]

    def objections(self, size=1_500_000):
        import record

        measured = copy.deepcopy(self.measured)
        report = record.truth(measured, self.packets)
        return record.objections(report, self.opened, measured, self.packets, size)

    def test_a_sound_recording_has_none(self):
        self.assertEqual(self.objections(), [])

    def test_what_was_lost_on_the_way_into_the_file(self):
        self.measured["missed"] = 2
        self.measured["line"]["up"]["lost"] = 1
        self.assertEqual(self.objections(), ["tcpdump missed 2 packets", "the bridge lost 1 frames"])

    def test_a_drop_that_tbf_does_not_know(self):
        self.measured["tbf"]["up"] = 2
        self.assertEqual(len(self.objections()), 1)
        self.assertIn("other drops than tbf", self.objections()[0])

    def test_a_page_or_an_upload_that_did_not_complete(self):
        self.measured["home"]["pages"].append(None)
        self.assertEqual(self.objections(), ["a page did not complete"])
        self.measured["home"]["upload"] = {}
        self.assertIn("the upload did not complete", self.objections())

    def test_a_line_that_was_late(self):
        self.opened[0] = (1_530_000_000, 35_000_000)
        self.assertEqual(self.objections(), ["round trips on the idle line: [35.0] ms, not 30 to 34"])

    def test_frames_that_were_merged_and_a_file_that_is_too_large(self):
        self.packets.append(capture.Packet(1_000_000_001, 2962, udp(b"")))
        self.assertEqual(
            self.objections(3_000_000),
            ["the capture has 3000000 bytes, 3 MB or more", "frames of more than 1514 bytes: offloads are on"],
        )

    def test_losses_and_delays_of_the_call(self):
        import record

        self.assertEqual(
            record.delays(4, [1.0, 3.0, 2.0]), {"sent": 4, "loss": 0.25, "p50_ms": 2.0, "p99_ms": 3.0}
        )


if __name__ == "__main__":
    unittest.main()
