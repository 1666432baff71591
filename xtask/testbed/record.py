#!/usr/bin/env python3
"""Records examples/home-uplink.pcapng: pages, an upload and a call over real Linux TCP through a slow line.

Three network namespaces: the home, the access line, the servers. The line is a bridge (line.py) that holds every frame
for some milliseconds and sends it through the kernel's tbf. The programs at the ends are in traffic.py; tcpdump listens
at the home's interface, so before the uplink's queue. Beside the capture lies what the programs themselves measured.
Linux, as root; takes three quarters of a minute; replaces the files only if the recording is sound.

    cargo xtask record-example [--into FOLDER]
"""

import argparse
import fcntl
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import capture
import traffic

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "examples"
NAME = "home-uplink"

HOME, LINE, NET = "gw-home", "gw-line", "gw-net"
HOME_MAC, ROUTER_MAC, ROUTER = "02:00:00:00:00:20", "02:00:00:00:00:01", "192.168.1.1"

# Each way. The rates and limits count Ethernet frames without their checksum, as tbf does.
DELAY_MS = 15
UP_BPS, UP_LIMIT = 2_000_000, 150_000
DOWN_BPS, DOWN_LIMIT = 16_000_000, 250_000
BURST = 3028  # two full frames

SETTINGS = [
    # IPv6 would announce itself.
    "net.ipv6.conf.all.disable_ipv6=1",
    "net.ipv6.conf.default.disable_ipv6=1",
    # What Linux is delivered with: the buffers decide how far windows open. For cubic see traffic.py.
    "net.ipv4.tcp_rmem=4096 131072 6291456",
    "net.ipv4.tcp_wmem=4096 16384 4194304",
]

# Program: Debian's package.
NEEDED = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool", "tcpdump": "tcpdump", "sysctl": "procps"}


class Refused(Exception):
    """Why there is no recording, for the one who asked for it."""


# -- the network
# -----------------------------------------------------------------------------------------------------


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Refused(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def within(namespace, *words):
    return ["ip", "netns", "exec", namespace, *words]


def build():
    for namespace in (HOME, LINE, NET):
        run("ip", "netns", "add", namespace)
        run(*within(namespace, "sysctl", "-qw", *SETTINGS))
    pair((HOME, "lan0", HOME_MAC), (LINE, "lan", "02:00:00:00:00:a1"))
    pair((NET, "net0", ROUTER_MAC), (LINE, "wan", "02:00:00:00:00:a2"))
    for address in (f"{traffic.PC}/24", f"{traffic.PHONE}/24"):
        run("ip", "-n", HOME, "addr", "add", address, "dev", "lan0")
    for address in (f"{ROUTER}/24", *(f"{a}/32" for a in (traffic.WEB, traffic.UPLOAD, traffic.NAMES, traffic.CALL))):
        run("ip", "-n", NET, "addr", "add", address, "dev", "net0")
    run("ip", "-n", HOME, "route", "add", "default", "via", ROUTER)
    # A home's router answers ARP at once; this one would take the way through the line. So the neighbours are
    # known.
    neighbour(HOME, ROUTER, ROUTER_MAC, "lan0")
    for address in (traffic.PC, traffic.PHONE):
        neighbour(NET, address, HOME_MAC, "net0")
    shape("wan", UP_BPS, UP_LIMIT)
    shape("lan", DOWN_BPS, DOWN_LIMIT)


def pair(left, right):
    """Two joined devices (namespace, name, MAC) that cut, merge and checksum nothing behind the scenes."""
    ends = [["netns", space, "name", name, "address", mac, *ONE_QUEUE] for space, name, mac in (left, right)]
    run("ip", "link", "add", *ends[0], "type", "veth", "peer", *ends[1])
    for space, name, _ in (left, right):
        offloads = (word for feature in ("tso", "gso", "gro", "tx", "rx") for word in (feature, "off"))
        run(*within(space, "ethtool", "-K", name, *offloads))
        run("ip", "-n", space, "link", "set", name, "up")


ONE_QUEUE = ["numtxqueues", "1", "numrxqueues", "1"]


def neighbour(namespace, address, mac, device):
    run("ip", "-n", namespace, "neigh", "replace", address, "lladdr", mac, "dev", device, "nud", "permanent")


def shape(device, rate, limit):
    tbf = ["tbf", "rate", f"{rate}bit", "burst", str(BURST), "limit", str(limit)]
    try:
        run("tc", "-n", LINE, "qdisc", "replace", "dev", device, "root", *tbf)
    except Refused as why:
        raise Refused(f"this kernel has no queue discipline tbf (CONFIG_NET_SCH_TBF)?\n{why}") from why


def tear_down():
    """Also what an earlier run left that was killed."""
    there = {line.split()[0] for line in run("ip", "netns", "list").splitlines() if line.strip()}
    for namespace in sorted(there & {HOME, LINE, NET}):
        for process in run("ip", "netns", "pids", namespace).split():
            os.kill(int(process), signal.SIGKILL)
        run("ip", "netns", "delete", namespace)


# -- the recording
# ---------------------------------------------------------------------------------------------------


class Role:
    """A program in a namespace: prints "ready", reads a command, prints JSON."""

    def __init__(self, namespace, script, *arguments):
        command = within(namespace, sys.executable, "-B", str(HERE / script), *arguments)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        # A session of its own: Ctrl-C is for the one who tidies up.
        self.process = subprocess.Popen(command, start_new_session=True, **pipes)
        self.name = " ".join((script, *arguments))
        if self.process.stdout.readline() != "ready\n":
            raise Refused(f"{self.name} did not start")

    def tell(self, word):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def result(self):
        try:
            report, _ = self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            raise Refused(f"{self.name} did not end") from None
        if self.process.returncode:
            raise Refused(f"{self.name} failed: {self.process.returncode}")
        return json.loads(report)


def listen(path):
    """tcpdump at the home's interface; a frame's headers are at most 94 bytes."""
    options = ["-i", "lan0", "-w", path, "-s", "96", "--nano", "--immediate-mode", "-B", "65536", "-Z", "root"]
    command = within(HOME, "tcpdump", *options)
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    received = process.stderr.readline()
    while "listening" not in received:
        if not received:
            raise Refused("tcpdump did not start")
        received = process.stderr.readline()
    return process


def stop_listening(process):
    """How many packets tcpdump missed."""
    process.send_signal(signal.SIGINT)
    _, report = process.communicate(timeout=30)
    return sum(int(count) for count in re.findall(r"(\d+) packets? dropped", report))


def clock_offset():
    return time.time_ns() - time.monotonic_ns()


def record(raw):
    """Builds, lets all run, and returns what everyone measured."""
    build()
    # Frames that two processors hand on may overtake each other. So all of this runs on one, and has time to
    # spare.
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    line = Role(LINE, "line.py", "lan", "wan", str(DELAY_MS))
    servers = Role(NET, "traffic.py", "servers")
    far = Role(NET, "traffic.py", "call", traffic.CALL, traffic.PHONE)
    near = Role(HOME, "traffic.py", "call", traffic.PHONE, traffic.CALL)
    home = Role(HOME, "traffic.py", "home")
    tcpdump = listen(raw)
    offset = clock_offset()
    start = time.monotonic_ns() + 500_000_000
    for role in (servers, far, near, home):
        role.tell(start)
    measured = {"home": home.result(), "near": near.result(), "far": far.result()}
    time.sleep(0.5)  # the last acknowledgements
    measured["missed"] = stop_listening(tcpdump)
    measured["tbf"] = {way: drops(device) for way, device in (("up", "wan"), ("down", "lan"))}
    measured["line"] = line.result()
    servers.result()
    # The capture and the line keep the wall clock: it must not have been set meanwhile.
    measured["clock_step_ms"] = abs(clock_offset() - offset) / 1e6
    measured["start_unix_ns"] = start + offset
    return measured


def drops(device):
    return json.loads(run("tc", "-n", LINE, "-s", "-j", "qdisc", "show", "dev", device))[0]["drops"]


# -- what came of it
# -------------------------------------------------------------------------------------------------


def truth(measured, packets):
    """What goes beside the capture."""
    upload = measured["home"]["upload"]
    busy = (upload.get("start_s", 0), upload.get("start_s", 0) + upload.get("duration_s", 0))
    if upload:
        upload["goodput_bps"] = round(upload["bytes"] * 8 / upload["duration_s"])
    link = lambda rate, limit, way: {
        "rate_bps": rate,
        "limit_bytes": limit,
        "burst_bytes": BURST,
        "drops": measured["tbf"][way],
    }
    return rounded({
        "about": f"What the programs measured while {NAME}.pcapng was recorded; times in s count from start_unix_ns.",
        "start_unix_ns": measured["start_unix_ns"],
        "delay_ms_each_way": DELAY_MS,
        "queue": "tbf with a fifo",
        "congestion_control": "cubic",
        "up": link(UP_BPS, UP_LIMIT, "up"),
        "down": link(DOWN_BPS, DOWN_LIMIT, "down"),
        "packets": len(packets),
        "bytes_on_wire": sum(packet.length for packet in packets),
        "flows": len({capture.flow(packet) for packet in packets} - {None}),
        "pages": measured["home"]["pages"],
        "upload": upload,
        "call": {
            "up": speech(measured["near"]["sent"], measured["far"]["received"], busy),
            "down": speech(measured["far"]["sent"], measured["near"]["received"], busy),
        },
    })


def speech(sent, received, busy):
    """One direction of the call: all of it, and what was said during the upload."""
    first, last = (round(moment / traffic.CALL_GAP) for moment in busy)
    during = [delay for number, delay in received if first <= number < last]
    return {
        **delays(sent, [delay for _, delay in received]),
        "during_upload": delays(min(last, sent) - min(first, sent), during),
    }


def delays(sent, received):
    loss = 1 - len(received) / sent if sent else 0.0
    quantile = lambda share: sorted(received)[math.ceil(len(received) * share) - 1] if received else None
    return {"sent": sent, "loss": loss, "p50_ms": quantile(0.5), "p99_ms": quantile(0.99)}


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return round(value, 4) if isinstance(value, float) else value


def phases(report):
    """The pages before, beside and after the upload; one that is still loading as the other begins is beside it."""
    begun = report["upload"].get("start_s", 0)
    ended = begun + report["upload"].get("duration_s", 0)
    pages = [page for page in report["pages"] if page]
    before = [page for page in pages if page["start_s"] + page["completion_s"] <= begun]
    after = [page for page in pages if page["start_s"] >= ended]
    return {
        "before": before,
        "during": [page for page in pages if page not in before and page not in after],
        "after": after,
    }


def objections(report, opened, measured, packets, size):
    """All that speaks against keeping this recording."""
    upload = report["upload"]
    # The first connection of a page, opened while nothing else uses the line but the call.
    idle = idle_handshakes(report, opened)
    late = max(way["late_p99_ms"] for way in measured["line"].values())
    lost = sum(way["lost"] for way in measured["line"].values())
    # Tbf counts what it drops; the bridge counts each. If they differ, something else was dropped.
    refused = {way: counts["refused_by_tbf"] for way, counts in measured["line"].items()}
    checks = [
        (size < 3_000_000, f"the capture has {size} bytes, 3 MB or more"),
        (all(report["pages"]), "a page did not complete"),
        (bool(upload), "the upload did not complete"),
        (measured["missed"] == 0, f"tcpdump missed {measured['missed']} packets"),
        (lost == 0, f"the bridge lost {lost} frames"),
        (refused == measured["tbf"], f"the bridge saw other drops than tbf: {refused}, {measured['tbf']}"),
        (max(packet.length for packet in packets) <= 1514, "frames of more than 1514 bytes: offloads are on"),
        (0.8 <= upload.get("goodput_bps", 0) / UP_BPS <= 1, f"the upload got {upload.get('goodput_bps')} bit/s"),
        (idle and 30 <= min(idle) and max(idle) <= 34, f"round trips on the idle line: {idle} ms, not 30 to 34"),
        (late < 1, f"one frame in a hundred left the bridge {late:.1f} ms late: try when the machine is idle"),
        (measured["clock_step_ms"] < 1, f"the clock was set by {measured['clock_step_ms']:.1f} ms meanwhile"),
    ]
    return [why for holds, why in checks if not holds]


def idle_handshakes(report, opened):
    """Of each page before the upload the round trip of its first connection, in milliseconds."""
    starts = [report["start_unix_ns"] + page["start_s"] * 1e9 for page in phases(report)["before"]]
    firsts = (next((took / 1e6 for at, took in opened if at >= start), None) for start in starts)
    return [first for first in firsts if first is not None]


def summary(report, opened, measured, size):
    upload = report["upload"]
    yield "packets", f"{report['packets']} in {report['flows']} flows, {report['bytes_on_wire'] / 1e6:.1f} MB on the wire"
    yield "file", f"{size / 1e6:.2f} MB"
    yield "line", (
        f"up {UP_BPS / 1e6:g} Mbit/s, {UP_LIMIT // 1000} kB; down {DOWN_BPS / 1e6:g} Mbit/s, {DOWN_LIMIT // 1000} kB;"
        f" {DELAY_MS} ms each way; TCP: cubic, else as the kernel has it"
    )
    yield "drops of tbf", f"{report['up']['drops']} up, {report['down']['drops']} down"
    for way, counts in measured["line"].items():
        late = f"p99 {counts['late_p99_ms']:.3f} ms, at most {counts['late_max_ms']:.3f} ms"
        yield f"bridge {way}", f"{counts['frames']} frames, {counts['lost']} lost, late {late}"
    if upload:
        rate = upload["goodput_bps"] / 1e6
        yield "upload", f"{upload['bytes'] / 1e6:.1f} MB in {upload['duration_s']:.1f} s: {rate:.2f} Mbit/s"
    for phase, pages in phases(report).items():
        if pages:
            times = [page["completion_s"] for page in pages]
            spread = f"{min(times):.2f} to {max(times):.2f}"
            yield f"pages {phase}", f"{len(pages)}: median {statistics.median(times):.2f} s ({spread})"
    yield "idle round trips", ", ".join(f"{rtt:.2f}" for rtt in idle_handshakes(report, opened)) + " ms"
    yield "handshakes", f"{len(opened)}, the slowest {max((took for _, took in opened), default=0) / 1e6:.0f} ms"
    for way, received in report["call"].items():
        for when, part in (("", received), (", upload", received["during_upload"])):
            if part["p50_ms"] is not None:
                quantiles = f"p50 {part['p50_ms']:.1f} ms, p99 {part['p99_ms']:.1f} ms"
                yield f"call {way}{when}", f"{quantiles}, {part['loss']:.2%} of {part['sent']} lost"


def comment():
    return (
        "A home behind a slow line, recorded by `cargo xtask record-example` of Giveway: pages, an upload and a call"
        f" over Linux TCP (cubic) between network namespaces. The line: {UP_BPS / 1e6:g} Mbit/s up with a queue of"
        f" {UP_LIMIT // 1000} kB, {DOWN_BPS / 1e6:g} Mbit/s down with {DOWN_LIMIT // 1000} kB (tbf), {DELAY_MS} ms each"
        " way. Captured at the home's interface, before the uplink's queue. Headers and lengths are kept, payload is"
        " cut."
    )


# -- the program
# -----------------------------------------------------------------------------------------------------


def check_machine():
    if not sys.platform.startswith("linux"):
        raise Refused("record-example builds network namespaces: it needs Linux")
    if os.geteuid() != 0:
        raise Refused("record-example builds network namespaces: run it as root")
    for program, package in NEEDED.items():
        if not shutil.which(program):
            raise Refused(f"{program} is missing: install Debian's package {package}")


def only_one():
    """The names of the namespaces are fixed, so there is one recording at a time. The lock ends with the program."""
    lock = open("/run/giveway-record-example.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Refused("another recording is under way on this machine") from None
    return lock


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask record-example", description=__doc__.splitlines()[0])
    parser.add_argument("--into", type=Path, default=EXAMPLES, metavar="FOLDER", help="instead of examples/")
    into = parser.parse_args().into
    check_machine()
    lock = only_one()
    into.mkdir(parents=True, exist_ok=True)
    tear_down()
    print(f"recording for about {traffic.CALL_SECONDS + 2} s ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="giveway-") as folder:
        raw = os.path.join(folder, "raw.pcap")
        try:
            measured = record(raw)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            tear_down()
        # Arrivals are stamped a moment before they are noted, and a departure may come between.
        packets = sorted(capture.read(raw), key=lambda packet: packet.time)
    lock.close()
    report = truth(measured, packets)
    opened = list(capture.handshakes(packets))
    # Beside, then renamed: who reads the old ones meanwhile gets whole files.
    fresh = {ending: into / f".{NAME}.{ending}.new" for ending in ("pcapng", "json")}
    # Only the kernel's release: what comes after it names the machine.
    system = "Linux " + ".".join(os.uname().release.split(".")[:2])
    capture.write(fresh["pcapng"], packets, "lan0", system, "cargo xtask record-example", comment())
    fresh["json"].write_text(json.dumps(report, indent=1) + "\n")
    size = fresh["pcapng"].stat().st_size
    for name, value in summary(report, opened, measured, size):
        print(f"{name:<20} {value}")
    wrong = objections(report, opened, measured, packets, size)
    for ending, path in fresh.items():
        if wrong:
            path.unlink()
        else:
            path.replace(into / f"{NAME}.{ending}")
    if wrong:
        raise Refused("nothing was written:\n  " + "\n  ".join(wrong))
    print(f"wrote {into / NAME}.pcapng and .json")


def interrupted(*_):
    raise KeyboardInterrupt


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    try:
        main()
    except Refused as why:
        sys.exit(f"record-example: {why}")
    except KeyboardInterrupt:
        sys.exit("record-example: interrupted; the namespaces are removed")
