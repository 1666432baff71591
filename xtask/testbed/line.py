"""The access line, run inside the middle namespace: frames go both ways, each some milliseconds late.

A transparent bridge over packet sockets. It holds every frame for the same time from the kernel's receive stamp and
hands it to the other device, whose egress qdisc is the kernel's tbf: so the queue and its drops are the kernel's own.
Says "ready", works until its standard input ends, then prints what it counted as JSON.

    line.py DEVICE DEVICE DELAY_MS
"""

import collections
import gc
import json
import os
import select
import socket
import struct
import sys
import time

# From Linux's headers; Python has no names for them.
ETH_P_ALL = 3
SOL_PACKET, PACKET_STATISTICS, PACKET_IGNORE_OUTGOING = 263, 6, 23
SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_TIMESTAMPNS = 32, 33, 35

# Frames waiting in tbf count as unsent, with up to a kilobyte of overhead each: this must never be what is
# full.
BUFFER = 64 << 20


def packet_socket(device):
    """All frames that arrive at a device, and a way out of it through its qdisc."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    port.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    port.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    port.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
    port.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    port.bind((device, 0))
    port.setblocking(False)
    return port


class Direction:
    """From one device to the other. Times in nanoseconds since 1970, as the kernel stamps frames."""

    def __init__(self, source, sink, delay):
        self.source = source
        self.sink = sink
        self.delay = delay
        self.held = collections.deque()
        self.refused = 0  # by tbf, whose queue was full
        self.failed = 0  # for any other reason: there should be none
        self.late = []

    def receive(self):
        while True:
            try:
                frame, notes, _, _ = self.source.recvmsg(65536, 64)
            except BlockingIOError:
                return
            seconds, nanos = struct.unpack("qq", notes[0][2])
            self.held.append((seconds * 1_000_000_000 + nanos + self.delay, frame))

    def send(self, now):
        while self.held and self.held[0][0] <= now:
            due, frame = self.held.popleft()
            try:
                self.sink.send(frame)
            except OSError as error:
                if error.errno == 105:  # ENOBUFS: what a qdisc's drop looks like from here
                    self.refused += 1
                else:
                    self.failed += 1
            self.late.append(now - due)

    def counts(self):
        late = sorted(self.late) or [0]
        _, lost = struct.unpack("II", self.source.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return {
            "frames": len(self.late),
            "lost": lost + self.failed,
            "refused_by_tbf": self.refused,
            "late_p99_ms": late[len(late) * 99 // 100] / 1e6,
            "late_max_ms": late[-1] / 1e6,
        }


def main():
    lan, wan = packet_socket(sys.argv[1]), packet_socket(sys.argv[2])
    delay = int(float(sys.argv[3]) * 1e6)
    up, down = Direction(lan, wan, delay), Direction(wan, lan, delay)
    # Above everything else: a line does not wait for a processor. Asleep it costs nothing.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    gc.disable()
    print("ready", flush=True)
    while True:
        now = time.time_ns()
        due = min((way.held[0][0] for way in (up, down) if way.held), default=now + 1_000_000_000)
        ready, _, _ = select.select([lan, wan, sys.stdin], [], [], max(0, due - now) / 1e9)
        for way in (up, down):
            if way.source in ready:
                way.receive()
            way.send(time.time_ns())
        if sys.stdin in ready and not os.read(0, 4096):
            break
    print(json.dumps({"up": up.counts(), "down": down.counts()}))


main()
