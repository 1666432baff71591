"""Ctrl-C during runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import CAPTURE, QUICKSTART, environment

import giveway

#: The program prints "begun" when this share of its work is done, and then waits for SIGINT.
PROGRAM = """
import json, sys, time, giveway

begun = False
def progress(share):
    global begun
    if share > {share} and not begun:
        begun = True
        print("begun", flush=True)

class Slow:
    def __init__(self):
        self.queue = []
    def enqueue(self, packet, cx):
        self.queue.append(packet)
    def dequeue(self, cx):
        return self.queue.pop(0) if self.queue else None

try:
    {call}
except giveway.Interrupted as stopped:
    at = time.monotonic()
    run = stopped.run
    print(json.dumps({{
        "at": at, "cause": type(stopped.__cause__).__name__, "text": str(stopped),
        "runs": len(run.summary) if run else 0, "complete": run.complete if run else None,
        "flows": len(run.flows) if run and len(run.summary) else 0,
    }}))
"""


def interrupted(call: str, share: float = 0.0) -> tuple[float, dict]:
    """The time from SIGINT until the exception, seconds, and what the program saw."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(call=call, share=share)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.3)
    at = time.monotonic()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    seen = json.loads(output)
    # All processes of a machine have the same monotonic clock.
    return seen["at"] - at, seen


def report(what: str, took: float, capsys, most: float = 1.0) -> None:
    with capsys.disabled():
        print(f" [{what}: {took * 1e3:.0f} ms after SIGINT, load {os.getloadavg()[0]:.1f}]", end="")
    # 100 ms on an idle machine. A busy machine may not have run the process at all for a while.
    assert took < most


def test_ctrl_c_stops_runs_and_keeps_those_that_had_finished(capsys):
    call = f"giveway.run({str(QUICKSTART)!r}, ['fifo limit 300p', 'efd'], seeds=5000, progress=progress)"
    took, seen = interrupted(call)
    assert seen["cause"] == "KeyboardInterrupt"
    assert 0 < seen["runs"] < 10_000
    assert seen["complete"] is False
    assert seen["flows"] > 0
    assert "runs had finished" in seen["text"]
    report("runs", took, capsys)


def test_ctrl_c_stops_one_long_run(capsys):
    call = f"giveway.run({str(QUICKSTART)!r}, ['efd'], seeds=1, changes={{'duration': '20 h'}}, progress=progress)"
    took, seen = interrupted(call)
    assert seen["runs"] == 0
    report("one long run", took, capsys)


def test_ctrl_c_stops_a_comparison_of_a_capture(capsys):
    took, seen = interrupted(f"giveway.compare({str(CAPTURE)!r}, rate='2mbit', seeds=500, progress=progress)")
    assert seen["cause"] == "KeyboardInterrupt"
    assert seen["complete"] is not True
    report("capture", took, capsys)


def test_ctrl_c_does_not_wait_for_the_tables_of_a_folder(capsys, tmp_path):
    out = tmp_path / "kept"
    arguments = f"{str(QUICKSTART)!r}, ['fifo limit 300p', 'efd'], seeds=600, progress=progress, out={str(out)!r}"
    took, seen = interrupted(f"giveway.run({arguments})")
    assert seen["cause"] == "KeyboardInterrupt"
    assert 0 < seen["runs"] < 1_200
    assert seen["complete"] is False
    report("into a folder", took, capsys)
    assert len(giveway.open(out).summary) == seen["runs"]


def test_a_program_that_ends_completes_the_folder(python, tmp_path):
    out = tmp_path / "kept"
    program = (
        "import giveway\n"
        "def stop(share):\n"
        "    if share > 0.1:\n"
        "        raise KeyboardInterrupt\n"
        "try:\n"
        f"    giveway.run({str(QUICKSTART)!r}, ['efd'], seeds=200, progress=stop, out={str(out)!r})\n"
        "except giveway.Interrupted:\n"
        "    print('interrupted')\n"
    )
    assert python("-c", program).stdout == "interrupted\n"
    assert 10 < len(giveway.open(out).summary) < 200
    assert (out / "report.html").exists()


def test_an_interrupted_folder_can_be_opened_at_once(tmp_path):
    out = tmp_path / "kept"

    def stop(share):
        if share > 0.1:
            raise KeyboardInterrupt

    with pytest.raises(giveway.Interrupted):
        giveway.run(QUICKSTART, ["efd"], seeds=50, out=out, progress=stop)
    kept = giveway.open(out)
    assert 0 < len(kept.summary) < 50
    assert giveway.run(QUICKSTART, ["efd"], seeds=50, out=out).complete


def test_a_folder_without_a_finished_run_says_how_to_continue(tmp_path):
    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(giveway.Interrupted) as stopped:
        giveway.run(QUICKSTART, ["efd"], seeds=1, changes={"duration": "20 h"}, out=tmp_path / "kept", progress=stop)
    assert stopped.value.run is None
    with pytest.raises(giveway.GivewayError, match='none of its 1 trials is finished.*Call it again with out="'):
        giveway.open(tmp_path / "kept")


def test_ctrl_c_stops_a_paper(capsys):
    took, seen = interrupted("giveway.reproduce('efd', progress=progress)")
    assert seen["cause"] == "KeyboardInterrupt"
    report("paper", took, capsys)


def test_ctrl_c_stops_a_discipline_in_python(capsys):
    call = f"giveway.run({str(QUICKSTART)!r}, ['efd', Slow], seeds=200, progress=progress)"
    took, seen = interrupted(call, share=0.25)
    assert 0 < seen["runs"] < 400
    assert seen["complete"] is False
    report("discipline in Python", took, capsys)


def test_python_handles_signals_after_an_interruption(python):
    # On a busy machine it takes a second until the runs begin, and a signal before that is Python's.
    program = (
        "import giveway, os, signal, threading\n"
        "for _ in range(3):\n"
        "    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    try:\n"
        f"        giveway.run({str(QUICKSTART)!r}, ['efd'], seeds=5000)\n"
        "    except KeyboardInterrupt as stopped:\n"
        "        print(type(stopped).__name__)\n"
        "print(giveway.run(" + repr(str(QUICKSTART)) + ", ['efd'], short=True).complete)\n"
    )
    done = python("-c", program)
    assert done.stdout.split() == ["Interrupted"] * 3 + ["True"], done.stderr
