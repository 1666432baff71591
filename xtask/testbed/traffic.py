"""The programs at the two ends: the pages, the upload, the call, and who answers them.

Each says "ready", reads the start from its standard input (nanoseconds of the monotonic clock, which is one for the
whole machine), and prints what it measured as JSON. Everything drawn at random comes from one fixed seed.

    traffic.py home | servers | call ADDRESS PEER
"""

import http.client
import http.server
import json
import math
import os
import queue
import random
import select
import socket
import struct
import sys
import threading
import time

PC, PHONE = "192.168.1.20", "192.168.1.21"
WEB, UPLOAD, NAMES, CALL = "203.0.113.10", "203.0.113.20", "203.0.113.53", "198.51.100.30"

SEED = 7
# Seconds after the start: four pages before the upload, five beside it, three after it.
PAGES = [0.5, 2.5, 4.5, 6.3, 9.5, 12.0, 15.0, 18.0, 21.0, 31.5, 33.5, 36.0]
UPLOAD_AT, UPLOAD_BYTES = 8.0, 4_400_000
CALL_PORT, CALL_SECONDS, CALL_GAP, CALL_PAYLOAD = 4000, 40, 0.020, 172
PARALLEL = 6


# -- what is asked for
# -----------------------------------------------------------------------------------------------


def plan():
    """The pages: the document first, then the objects. An object: bytes, bytes of cookie, seconds to think."""
    draw = random.Random(SEED)

    def item(size):
        return {"bytes": size, "cookie": draw.randint(180, 560), "think": draw.uniform(0.005, 0.050)}

    def object_size():
        # Log-normal: half are below 12 kB, one in thirty is above 120 kB.
        return min(200_000, max(1_000, round(draw.lognormvariate(math.log(12_000), 1.25))))

    for at in PAGES:
        document = item(draw.randint(20_000, 60_000))
        objects = [item(object_size()) for _ in range(draw.randint(6, 25))]
        yield {"at": at, "document": document, "objects": objects, "linger": draw.uniform(0.5, 2.5)}


# -- common
# ----------------------------------------------------------------------------------------------------------


def begin():
    """Waits for the word to start; seconds of the monotonic clock."""
    # Ahead of whatever else the machine does, behind the line itself.
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    print("ready", flush=True)
    return int(sys.stdin.readline()) / 1e9


def sleep_until(moment):
    time.sleep(max(0, moment - time.monotonic()))


def datagrams(address, port):
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    end.bind((address, port))
    return end


def use_cubic(end):
    """What Linux is delivered with, whatever this machine prefers. Before connecting: BBR would leave its pacing on."""
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")


# -- at home
# ---------------------------------------------------------------------------------------------------------


def home():
    start = begin()
    pages = [{**page, "number": number} for number, page in enumerate(plan())]
    upload = {}
    threads = [threading.Thread(target=open_page, args=(start, page)) for page in pages]
    threads.append(threading.Thread(target=send_file, args=(start, upload)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # What failed lacks its end: the one who asked for this recording looks for it.
    print(json.dumps({"pages": [page.get("result") for page in pages], "upload": upload}))


def open_page(start, page):
    """Looks the name up, fetches the document, then the objects over up to six connections."""
    sleep_until(start + page["at"])
    begun = time.monotonic()
    look_up(f"page-{page['number']}.example")
    first = connect(WEB)
    fetch(first, page["document"])
    waiting = queue.SimpleQueue()
    for item in page["objects"]:
        waiting.put(item)
    connections = [first] + [None] * (min(PARALLEL, len(page["objects"])) - 1)
    failed = []

    def work(slot):
        try:
            connections[slot] = connections[slot] or connect(WEB)
            while True:
                fetch(connections[slot], waiting.get_nowait())
        except queue.Empty:
            pass
        except (OSError, http.client.HTTPException) as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(slot,)) for slot in range(len(connections))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]
    completion = time.monotonic() - begun
    page["result"] = {
        "start_s": begun - start,
        "completion_s": completion,
        "objects": len(page["objects"]),
        "bytes": page["document"]["bytes"] + sum(item["bytes"] for item in page["objects"]),
    }
    time.sleep(page["linger"])
    for connection in connections:
        connection.close()


def connect(server):
    connection = http.client.HTTPConnection(server)
    end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    end.settimeout(60)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    use_cubic(end)
    end.bind((PC, 0))
    end.connect((server, 80))
    connection.sock = end
    return connection


def fetch(connection, item):
    wishes = {"X-Bytes": item["bytes"], "X-Think": f"{item['think']:.4f}", "Cookie": "c" * item["cookie"]}
    connection.request("GET", "/", headers=wishes)
    if len(connection.getresponse().read()) != item["bytes"]:
        raise OSError("an answer of the wrong length")


def look_up(name):
    """A question to the name server, again every two seconds until it is answered."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    question = struct.pack("!HHHHHH", 1, 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, 1, 1)
    with datagrams(PC, 0) as end:
        end.settimeout(2)
        for _ in range(5):
            end.sendto(question, (NAMES, 53))
            try:
                return end.recv(2048)
            except TimeoutError:
                pass
    raise OSError("no answer from the name server")


def send_file(start, result):
    sleep_until(start + UPLOAD_AT)
    begun = time.monotonic()
    connection = connect(UPLOAD)
    connection.request("PUT", "/", body=bytes(UPLOAD_BYTES))
    connection.getresponse().read()
    result.update(start_s=begun - start, duration_s=time.monotonic() - begun, bytes=UPLOAD_BYTES)
    connection.close()


# -- the servers
# -----------------------------------------------------------------------------------------------------


class Answers(http.server.BaseHTTPRequestHandler):
    """Sends as many bytes as were asked for, after thinking as long as was asked for; takes any file."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "example", ""
    # Header and body leave together, and nothing waits for an acknowledgement.
    wbufsize = 1 << 20
    disable_nagle_algorithm = True

    def do_GET(self):
        time.sleep(float(self.headers["X-Think"]))
        self.answer(200, bytes(int(self.headers["X-Bytes"])))

    def do_PUT(self):
        left = int(self.headers["Content-Length"])
        while left:
            left -= len(self.rfile.read(min(left, 65536)))
        self.answer(201, b"")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def server_bind(self):
        use_cubic(self.socket)  # connections inherit it
        super().server_bind()


def answer_names(end):
    while True:
        question, sender = end.recvfrom(2048)
        # Flags of an answer, one record: an address.
        answer = question[:2] + struct.pack("!HHHHH", 0x8180, 1, 1, 0, 0) + question[12:]
        record = struct.pack("!HHHIH", 0xC00C, 1, 1, 300, 4) + socket.inet_aton(WEB)
        end.sendto(answer + record, sender)


def servers():
    for address in (WEB, UPLOAD):
        threading.Thread(target=Server((address, 80), Answers).serve_forever, daemon=True).start()
    threading.Thread(target=answer_names, args=(datagrams(NAMES, 53),), daemon=True).start()
    begin()
    sys.stdin.read()  # until the recording is over
    print("{}")


# -- the call
# --------------------------------------------------------------------------------------------------------


def call(address, peer):
    """Sends a packet of speech every 20 ms and notes how long those of the other side were under way."""
    end = datagrams(address, CALL_PORT)
    end.setblocking(False)
    start = begin()
    packets = round(CALL_SECONDS / CALL_GAP)
    sent, received = 0, []
    # The last packets may stand in a full queue.
    close = start + CALL_SECONDS + 1.5
    while time.monotonic() < close:
        due = start + sent * CALL_GAP if sent < packets else close
        select.select([end], [], [], max(0, due - time.monotonic()))
        receive(end, received)
        if sent < packets and time.monotonic() >= due:
            # RTP, G.711 (payload type 0), then for the measurement: the moment of sending.
            header = struct.pack("!BBHII", 0x80, 0, sent, sent * 160, 0x61626364)
            now = struct.pack("!Q", time.monotonic_ns())
            end.sendto((header + now).ljust(CALL_PAYLOAD, b"\0"), (peer, CALL_PORT))
            sent += 1
    print(json.dumps({"sent": sent, "received": received}))


def receive(end, received):
    """Of each packet its number and its delay in milliseconds."""
    while True:
        try:
            packet = end.recv(2048)
        except BlockingIOError:
            return
        number, _, _, sent = struct.unpack_from("!HIIQ", packet, 2)
        received.append([number, (time.monotonic_ns() - sent) / 1e6])


if __name__ == "__main__":
    {"home": home, "servers": servers, "call": call}[sys.argv[1]](*sys.argv[2:])
