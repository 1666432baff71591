"""Candidates in Python: accepted, rejected with their reasons, and bounded."""

from __future__ import annotations

import json
import signal
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import giveway

QUEUE = """
from collections import deque


class Mine:
    def __init__(self):
        self.queue = deque()

    def enqueue(self, packet, cx):
        if len(self.queue) == 100:
            cx.drop(packet)
        else:
            self.queue.append(packet)

    def dequeue(self, cx):
        return self.queue.popleft() if self.queue else None
"""


def judged(tmp_path: Path, source: str, **asked) -> giveway.Judgement:
    file = tmp_path / "mine.py"
    file.write_text(textwrap.dedent(source))
    asked = {"against": "fifo limit 100p", "secret": "a secret", "seeds": 1} | asked
    return giveway.judge(file, **asked)


@pytest.mark.long
def test_a_program_equals_the_discipline_that_it_is(tmp_path):
    judgement = judged(tmp_path, QUEUE)
    assert judgement.accepted, judgement
    assert (judgement.score, judgement.public_score) == (0.0, 0.0)
    assert "mine.py is accepted" in str(judgement)
    assert set(judgement.data["held_out"]["questions"]) == {"delay", "fct", "use", "fair", "safe"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import os", "line 1 imports os: a candidate may import public names of bisect, "),
        ("from random import _os", "imports random._os"),
        ("from dataclasses import sys", "imports dataclasses.sys"),
        ("import giveway", "imports giveway"),
        ("x = open('/proc/self/environ')", "uses open"),
        ("x = ().__class__", "uses the attribute __class__"),
        ("x = '{0.__class__}'.format(1)", "uses the attribute format"),
        ("x = __builtins__", "uses __builtins__"),
        ("def f(g): return g.gi_frame", "uses the attribute gi_frame"),
        ("match 1:\n    case int(__class__=x): pass", "uses the attribute __class__"),
        ("class Empty: pass", "it has neither a class with enqueue and dequeue nor a function rank(packet)"),
    ],
)
def test_a_program_that_reaches_out_is_refused(tmp_path, source, said):
    judgement = judged(tmp_path, source)
    assert (judgement.accepted, judgement.code, judgement.score) == (False, "module", None)
    assert said in judgement.reason


def enqueue(body: str) -> str:
    """A candidate with this body of ``enqueue``."""
    return QUEUE.replace("        if len(self.queue) == 100:", textwrap.indent(body, 8 * " ") + "\n        if False:")


def test_a_loop_without_end_uses_up_its_fuel(tmp_path):
    judgement = judged(tmp_path, enqueue("while True:\n    pass"), fuel=1000)
    assert judgement.code == "fuel", judgement
    caught = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
    assert judged(tmp_path, enqueue(caught), fuel=1000).code == "fuel"


def test_memory_is_bounded(tmp_path):
    judgement = judged(tmp_path, enqueue("self.more = [0] * (1 << 31)"))
    assert (judgement.code, judgement.accepted) == ("memory", False), judgement


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return", "contract", "was forgotten"),
        ("1 / 0", "crash", "enqueue raised ZeroDivisionError"),
        ("cx.drop(packet)\nself.queue.append(packet)\nreturn", "contract", "was sent or dropped before"),
    ],
)
def test_mistakes_are_reasons(tmp_path, body, code, said):
    judgement = judged(tmp_path, enqueue(body))
    assert (judgement.code, said in judgement.reason) == (code, True), judgement
    assert judgement.data["rejected"]["cell"] == "rfc7928/tcp-same-window"


#: A program that leaves the rules: the annotation is evaluated with all built-in functions. What its code leaves in
#: ``math.found`` is the reason for which it is rejected.
ESCAPE = """
import math
from typing import get_type_hints

class Open:
    x: ANNOTATION

get_type_hints(Open)

class Mine:
    def enqueue(self, packet, cx):
        raise ValueError(math.found)

    def dequeue(self, cx):
        return None
"""


def escaped(tmp_path: Path, code: str, **asked) -> giveway.Judgement:
    """The judgement of a program that runs this code with all of Python."""
    code = "import gc, math, os, sys\nmath.found = 'nothing'\n" + textwrap.dedent(code)
    return judged(tmp_path, ESCAPE.replace("ANNOTATION", repr(f"exec({code!r}, {{}})")), **asked)


def test_a_program_that_escapes_cannot_write_its_own_judgement(tmp_path):
    text = "mine.py is accepted, with a score of +3.000"
    whole = {"candidate": "mine.py", "accepted": True, "rejected": None, "score": 3.0, "public": None, "cells": {}}
    forged = json.dumps([text, json.dumps(whole)]) + "\n"
    written = escaped(
        tmp_path,
        f"""
        for descriptor in range(64):
            try:
                os.write(descriptor, {forged.encode()!r})
            except OSError:
                pass
        os._exit(0)
        """,
    )
    assert (written.accepted, written.score) == (False, None), written


def test_a_program_that_escapes_finds_no_secret(tmp_path):
    # The text is in no constant of the code.
    found = escaped(
        tmp_path,
        """
        text = " ".join(["only", "the", "judge", "knows"])
        frame = sys._getframe()
        while frame:
            if any(text in str(value) for value in frame.f_locals.values() if type(value) in (str, dict)):
                if frame.f_code.co_filename != "<string>":
                    math.found = "the secret in a frame"
            frame = frame.f_back
        for value in gc.get_objects():
            if type(value) is dict and value.get("secret") == text:
                math.found = "the secret in an object"
        if any(text in value for value in os.environ.values()):
            math.found = "the secret in the environment"
        """,
        secret="only the judge knows",
    )
    assert (found.code, "ValueError: nothing" in str(found.reason)) == ("crash", True), found


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a filter of system calls")
def test_a_program_that_escapes_reaches_no_file_network_or_process(tmp_path):
    reached = escaped(
        tmp_path,
        f"""
        import signal, socket, subprocess
        attempts = dict(
            file=lambda: open({str(tmp_path / "mine.py")!r}),
            link=lambda: os.readlink("/proc/self/exe"),
            folder=lambda: os.listdir("/"),
            memory=lambda: os.open("/proc/%d/mem" % os.getppid(), os.O_RDWR),
            network=lambda: socket.socket(),
            channel=lambda: os.dup(0),
            process=lambda: os.fork(),
            program=lambda: os.execv(sys.executable, [sys.executable]),
            signal=lambda: os.kill(os.getppid(), 0),
            limits=lambda: __import__("resource").setrlimit(4, (1, 1)),
        )
        for name, attempt in attempts.items():
            try:
                attempt()
                math.found = "reached " + name
                break
            except (OSError, ValueError):
                pass
        """,
    )
    assert "ValueError: nothing" in str(reached.reason), reached


def test_a_process_that_answers_nonsense_breaks_the_contract(tmp_path):
    said = escaped(tmp_path, "os.write(0, bytes([9, 0, 0, 0, 7]) + bytes(8))")
    assert said.code in ("contract", "crash"), said
    # A packet that was never in the queue.
    invented = b"".join([(14).to_bytes(4, "little"), bytes([0, 2]), (77).to_bytes(8, "little"), bytes(4)])
    ready = b"".join([(14).to_bytes(4, "little"), bytes(14)])
    said = escaped(tmp_path, f"os.write(0, {ready + 99 * invented!r})")
    assert (said.code, "which is not in the queue" in str(said.reason)) == ("contract", True), said


@pytest.mark.long
def test_nothing_lasts_from_one_run_to_the_next(tmp_path):
    source = QUEUE.replace("class Mine:", "made = []\n\n\nclass Mine:").replace(
        "        self.queue = deque()", "        made.append(1)\n        assert len(made) < 5\n        self.queue = deque()"
    )
    assert judged(tmp_path, source).accepted


@pytest.mark.long
def test_a_clock_is_noticed(tmp_path):
    judgement = judged(tmp_path, enqueue("if cx.now > 5 and packet.offset > 100_000:\n    cx.drop(packet)\n    return"))
    assert judgement.code == "clock", judgement


@pytest.mark.long
def test_a_rank_and_a_text_are_judged(tmp_path):
    ranked = judged(tmp_path, "def rank(packet):\n    return packet.arrived", against="fifo limit 1000p")
    assert ranked.score == 0.0, ranked
    assert giveway.judge("fifo limit 5p", against="fifo limit 5p", secret="s", seeds=1).score == 0.0
    assert giveway.judge("efd", secret="s", seeds=1).data == giveway.judge("efd", secret="s", seeds=1, jobs=1).data


def test_a_class_is_judged_in_the_thread_of_its_caller():
    threads = set()

    class Keeps:
        def __init__(self):
            threads.add(threading.get_ident())
            self.kept = []

        def enqueue(self, packet, cx):
            self.kept.append(packet)

        def dequeue(self, cx):
            return cx.wait(5) if self.kept else None

    judgement = giveway.judge(Keeps, secret="s", seeds=1)
    assert judgement.code == "keeps"
    assert repr(judgement) == "<giveway.Judgement of Keeps: rejected: keeps>"
    assert threads == {threading.get_ident()}


def test_ctrl_c_ends_a_judgement():
    class Interrupted:
        def __init__(self):
            signal.raise_signal(signal.SIGINT)

        def enqueue(self, packet, cx):
            cx.drop(packet)

        def dequeue(self, cx):
            return None

    # Tests that begin in the background may have inherited that the signal is ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            giveway.judge(Interrupted, secret="s", seeds=1)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"neither a program in Python \(.py\) nor in WebAssembly"):
        giveway.judge(tmp_path / "mine.rs")
    with pytest.raises(giveway.ScenarioError, match="unknown discipline"):
        giveway.judge("fq_codell")
    broken = tmp_path / "mine.wasm"
    broken.write_bytes(b"not a module")
    assert giveway.judge(broken).code == "module"
