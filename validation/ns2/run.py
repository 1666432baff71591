#!/usr/bin/env python3
"""Runs the same networks in ns-2 and in Giveway, and prints a table of their metrics in Markdown.

ns-2 (Debian's package ns2) runs as a separate program with the Tcl scripts in this folder. This script needs only the
standard library of Python. The exit code is 0 if every row is within its tolerance or differs with an explanation.

    python3 validation/ns2/run.py [--seeds 10] [--giveway PROGRAM] [--only CASE]
"""

import argparse
import concurrent.futures
import csv
import itertools
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MSS = 1460

# Student's t for 95 %, two-sided, by degrees of freedom.
STUDENT = [math.nan, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26]


# -- the networks --------------------------------------------------------------------------------------------


class Case:
    """One network. Both simulators get the same numbers; a metric has a tolerance, or a reason for a difference."""

    def __init__(self, name, script, ns2, giveway, metrics, transfers=None):
        self.name = name
        self.script = script
        self.ns2 = ns2
        self.giveway = giveway
        self.metrics = metrics
        self.transfers = transfers


def cases():
    single = lambda **sets: {f"link.0.{key}": value for key, value in sets.items()}
    yield Case(
        "one flow, window 20 packets",
        "single",
        {"window": 20},
        {"tcp.receive_window": f"{20 * MSS}b"},
        {"goodput_bps": 0.001, "drops": 0.0},
    )
    yield Case(
        "one flow, buffer 50 packets (1.2 BDP)",
        "single",
        {"limit": 50},
        single(qdisc="fifo limit 50p"),
        {"goodput_bps": 0.001, "backlog_mean_packets": 0.03, "drops": 0.05},
    )
    yield Case(
        "one flow, buffer 15 packets (0.4 BDP)",
        "single",
        {"limit": 15},
        single(qdisc="fifo limit 15p"),
        {"goodput_bps": 0.01, "backlog_mean_packets": 0.03, "drops": 0.05},
    )
    for rtt_ms, loss in itertools.product((20, 50, 100), (0.001, 0.01, 0.03)):
        yield Case(
            f"one flow, RTT {rtt_ms} ms, loss {100 * loss:g} %",
            "single",
            # At 100 Mbit/s the loss limits the rate, not the link.
            {"rate_bit": "100e6", "limit": 1000, "delay_s": rtt_ms / 2000, "loss": loss, "warmup_s": 50, "duration_s": 1050},
            single(rate="100mbit", qdisc="fifo limit 1000p", delay=f"{rtt_ms / 2}ms", loss=f"{100 * loss:g}%")
            | {"warmup": "50s", "duration": "1050s"},
            {"goodput_bps": 0.05},
        )
    shared = {"goodput_bps": 0.005, "backlog_mean_packets": 0.03, "drops": 0.05, "jain": 0.05}
    yield Case("ten flows, drop-tail 42 packets (1 BDP)", "dumbbell", {"limit": 42}, single(qdisc="fifo limit 42p"), shared)
    red = {"queue": "red", "limit": 100, "red_min": 10, "red_max": 30, "red_weight": 0.002, "red_probability": 0.1}
    spec = "red limit 100p min 10p max 30p weight 0.002 probability 0.1 avpkt 1500b gentle wait"
    yield Case(
        "ten flows, RED 10 to 30 packets",
        "dumbbell",
        red,
        single(qdisc=spec),
        shared,
    )
    times = [f"fct_{which}_{how}_s" for which in ("", "le15kB", "le150kB", "gt150kB") for how in ("mean", "p50", "p95")]
    times = [name.replace("fct__", "fct_") for name in times]
    few = {name: 0.05 for name in times} | {"backlog_mean_packets": 0.04, "utilization": 0.005}
    few |= {name: SACK1 for name in ("fct_le150kB_mean_s", "fct_le150kB_p95_s", "drops")}
    for window, limit, metrics in (
        (20, 150, few),
        (100_000, 42, {name: SACK1 for name in [*times, "backlog_mean_packets", "drops", "utilization"]}),
    ):
        most = f"window {window} packets, " if window < 1000 else ""
        yield Case(
            f"5,000 transfers, {most}buffer {limit} packets",
            "transfers",
            {"window": window, "limit": limit},
            {"tcp.receive_window": f"{window * MSS}b", "link.1.qdisc": f"fifo limit {limit}p"},
            metrics,
            transfers=lambda seed: poisson(seed, 5000),
        )
    for packets, reason in ((100, None), (200, SACK1), (1000, SACK1)):
        yield Case(
            f"one transfer of {packets} packets, buffer 42 packets",
            "transfers",
            {"limit": 42},
            {"link.1.qdisc": "fifo limit 42p"},
            {"fct_mean_s": reason or 0.001, "drops": 0.0},
            transfers=lambda seed, packets=packets: [(1.0, packets)],
        )


SACK1 = "1"

REASONS = {
    SACK1: """\
The Sack1 of ns-2 is the algorithm of 1996. It counts a lost packet as in flight until its retransmission is \
acknowledged. So after the loss of a large part of a window it cannot send, often until a timeout. At a timeout it \
discards the SACK information and retransmits packets that have arrived. RFC 6675 (2012), which Giveway follows, does \
not count lost packets as in flight. Without loss the times agree, and both simulators lose the same packets first. If \
the receiver's window is full, the rescue retransmission of RFC 6675 sends one unnecessary packet in each recovery, \
which adds to Giveway's drops.""",
}


def poisson(seed, count, load=0.8, rate_bit=10e6, largest=1000):
    """Poisson arrivals of transfers with Zipf sizes: (start in seconds, packets)."""
    draw = random.Random(seed)
    sizes = range(1, largest + 1)
    weights = list(itertools.accumulate(1 / size for size in sizes))
    mean_packets = largest / weights[-1]
    per_second = load * rate_bit / 8 / (mean_packets * (MSS + 40))
    now = 0.0
    for _ in range(count):
        now += draw.expovariate(per_second)
        yield now, draw.choices(sizes, cum_weights=weights)[0]


# -- both simulators -----------------------------------------------------------------------------------------


def run_ns2(case, seed, folder):
    """Metrics of one run in ns-2."""
    arguments = dict(case.ns2, seed=seed)
    if case.transfers:
        listing = write_list(case, seed, folder)
        out = folder / f"{listing.stem}.out"
        arguments |= {"list": listing, "out": out, "duration_s": last_start(listing) + 60}
    words = [str(word) for pair in arguments.items() for word in pair]
    text = call([shutil.which("ns"), f"{case.script}.tcl", *words])
    found = {key: float(value) for key, value in (line.split() for line in text.splitlines())}
    if case.transfers:
        found |= completion_times(out)
    return found


def completion_times(path):
    with path.open() as file:
        rows = [(int(row["size_bytes"]), float(row["fct_s"])) for row in csv.DictReader(file)]
    found = {}
    for name, lowest, highest in (
        ("fct", 0, math.inf),
        ("fct_le15kB", 0, 15_000),
        ("fct_le150kB", 15_001, 150_000),
        ("fct_gt150kB", 150_001, math.inf),
    ):
        times = sorted(time for size, time in rows if lowest <= size <= highest)
        if times:
            found |= {f"{name}_mean_s": statistics.fmean(times)}
            found |= {f"{name}_{how}_s": quantile(times, share) for how, share in (("p50", 0.5), ("p95", 0.95))}
    return found


def run_giveway(program, case, seed, folder):
    """Metrics of one run in Giveway."""
    sets = dict(case.giveway, seeds=f"[{seed}]")
    if case.transfers:
        listing = write_list(case, seed, folder)
        sets |= {"traffic.0.file": listing, "duration": f"{last_start(listing) + 60}s"}
    flags = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    result = json.loads(call([program, "run", f"{case.script}.toml", "--json", "--quiet", "--jobs", "1", *flags]))
    metrics = result["results"][0]["metrics"]
    return {name: values["mean"] for name, values in metrics.items() if values["mean"] is not None}


def write_list(case, seed, folder):
    name = "".join(c if c.isalnum() else "-" for c in case.name)
    path = folder / f"{name}-{seed}.csv"
    rows = [f"{start:.6f},client,server,{packets * MSS}\n" for start, packets in case.transfers(seed)]
    # Both simulators may request the file at the same time, so it is written under another name and renamed.
    part = path.with_suffix(f".part{random.random()}")
    part.write_text("start_s,src,dst,size_bytes\n" + "".join(rows))
    part.replace(path)
    return path


def last_start(path):
    return math.ceil(float(path.read_text().splitlines()[-1].split(",")[0]))


def call(command):
    done = subprocess.run([str(word) for word in command], cwd=HERE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


# -- the table -----------------------------------------------------------------------------------------------


def quantile(ordered, share):
    """The smallest value that this share of the values does not exceed."""
    return ordered[max(math.ceil(share * len(ordered)), 1) - 1]


def interval(values):
    """Half the width of the 95 % interval of the mean."""
    if len(values) < 2 or max(values) == min(values):
        return 0.0
    t = STUDENT[len(values) - 1] if len(values) <= len(STUDENT) else 1.96 + 2.6 / (len(values) - 1)
    return t * statistics.stdev(values) / math.sqrt(len(values))


def verdict(ns2, giveway, tolerance):
    """(difference in words, verdict, whether the verdict is the expected one)."""
    left, right = statistics.fmean(ns2), statistics.fmean(giveway)
    if left == right:
        return "0", "agrees", True
    difference = right / left - 1 if left else math.inf
    shown = f"{100 * difference:+.2g} %" if left else f"{right - left:+.3g}"
    if isinstance(tolerance, str) and abs(difference) <= 0.05:
        return shown, "agrees within 5 %", True
    if isinstance(tolerance, str):
        return shown, f"differs [{tolerance}]", True
    # A difference within the uncertainty of the seeds is not a disagreement. Runs are compared in pairs: with
    # lists they have the same arrivals.
    unsure = interval([theirs - ours for theirs, ours in zip(ns2, giveway)]) / abs(left) if left else 0.0
    within = f"{100 * tolerance:g} %"
    if abs(difference) <= tolerance:
        return shown, f"agrees within {within}", True
    if abs(difference) <= tolerance + unsure:
        return shown, f"agrees within {within} and chance", True
    return shown, f"**outside {within}**", False


def number(values):
    mean, half = statistics.fmean(values), interval(values)
    if abs(mean) >= 1e5:
        return f"{mean / 1e6:.4g}M" + (f" ± {half / 1e6:.2g}M" if half else "")
    return f"{mean:.4g}" + (f" ± {half:.2g}" if half else "")


def rows_of(case, ns2, giveway):
    for name, tolerance in case.metrics.items():
        left, right = [run.get(name) for run in ns2], [run.get(name) for run in giveway]
        if None in left or None in right:
            yield [case.name, name, "-", "-", "-", "**missing**"], False
            continue
        shown, words, expected = verdict(left, right, tolerance)
        yield [case.name, f"`{name}`", number(left), number(right), shown, words], expected


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each network that has something random (10)")
    parser.add_argument("--giveway", help="the program; built in release when it is not given")
    parser.add_argument("--only", default="", help="only networks whose name has this in it")
    options = parser.parse_args()
    if not is_ns2(shutil.which("ns")):
        print("skipped: ns-2 is not installed here (on Debian: apt-get install ns2)")
        return 0
    program = options.giveway or build()
    chosen = [case for case in cases() if options.only in case.name]
    print("| network | metric | ns-2 | Giveway | difference | verdict |\n| --- | --- | --- | --- | --- | --- |")
    ok = True
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(folder)
        for case in chosen:
            seeds = range(1, options.seeds + 1) if is_random(case) else [1]
            ns2 = pool.map(lambda seed: run_ns2(case, seed, folder), seeds)
            giveway = pool.map(lambda seed: run_giveway(program, case, seed, folder), seeds)
            for row, expected in rows_of(case, list(ns2), list(giveway)):
                print("| " + " | ".join(row) + " |", flush=True)
                ok = ok and expected
    notes = [f"[{key}] {reason}" for key, reason in REASONS.items()]
    print("\n" + "\n\n".join(notes))
    return 0 if ok else 1


def is_random(case):
    """One flow without random loss, and one transfer, are the same with every seed."""
    return "loss" in case.ns2 or case.script == "dumbbell" or "5,000" in case.name


def is_ns2(program):
    """True if ns-2 is installed; other programs have the same short name."""
    if program is None:
        return False
    asked = subprocess.run([program, "-"], input="puts [ns-version]; exit 0", capture_output=True, text=True)
    return asked.returncode == 0 and asked.stdout.strip().startswith("2.")


def build():
    subprocess.run(["cargo", "build", "--release", "--package", "giveway-cli"], cwd=ROOT, check=True)
    text = subprocess.run(["cargo", "metadata", "--no-deps", "--format-version", "1"], cwd=ROOT, check=True, capture_output=True)
    return Path(json.loads(text.stdout)["target_directory"]) / "release" / "giveway"


if __name__ == "__main__":
    sys.exit(main())
