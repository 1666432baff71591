"""The process of a candidate in Python, and the process that starts it.

``python -m giveway._candidate DESCRIPTOR`` reads the program and its limits from the standard input. Then it gets, over
the socket of that descriptor, the end of a channel for each run, and starts a process for it: a copy of itself that
has not seen the program. That one loses its files, its network and its limits, runs the program, and answers what the
judge asks for each packet. It has no secret, and its answers are no verdict: ``crates/judge/src/process.rs`` has the
reasons.
"""

from __future__ import annotations

import importlib
import json
import opcode
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from . import _giveway
from ._discipline import Own, Packet, Rank, own, rank
from ._policy import MODULES, PolicyError, checked

#: Memory of the interpreter beyond what it has when the program starts, bytes.
_SPARE = 64 << 20
#: The memory of the interpreter, bytes, where the system does not tell.
_BASE = 1 << 30
#: A call may use the fuel of this many calls.
_SAVED = 200
#: The number of exceptions that a candidate may catch.
_CHANCES = 100
#: The processor time of a run, seconds, beside its fuel.
_SECONDS = 300
#: Descriptors of a candidate: the channel as standard input, output and errors that nobody reads, and the two ends with
#: which the module in Rust reads and writes. No further one can be opened.
_DESCRIPTORS = 5

#: Instructions that jump back.
_BACK = frozenset(number for name, number in opcode.opmap.items() if "BACKWARD" in name)

#: What functions of the allowed modules import when they are first called: a candidate has no files.
_LATER = ("copy", "inspect", "keyword", "linecache", "reprlib", "traceback", "types", "warnings", "weakref")
class FuelError(BaseException):
    """A call of the candidate has run too many lines and jumps."""


class _Fuel:
    """Counts the lines and jumps of a candidate. A call earns ``fuel`` lines, and may use what earlier calls left."""

    def __init__(self, fuel: int, ended: Callable[[str], None]) -> None:
        self._ended = ended
        """Ends the process: a candidate may catch every exception."""
        self.fuel = fuel
        self.left = fuel * _SAVED
        self.in_thread: Callable[[], None] = lambda: None
        """Begins to count in the calling thread."""
        self._codes: frozenset[CodeType] = frozenset()

    def __call__(self, *_: Any) -> None:
        self.left -= 1
        if self.left < 0:
            sentence = f"it has run more than {self.fuel} lines a call, and {self.fuel * _SAVED} in one"
            # A function that traces is removed when it raises an exception, so there is one chance only.
            if self.left < -_CHANCES or not hasattr(sys, "monitoring"):
                self._ended(sentence)
            raise FuelError(sentence)

    def called(self) -> None:
        self.left = min(self.left + self.fuel, self.fuel * _SAVED)

    def watch(self, names: dict[str, Any]) -> None:
        """Counts lines of all functions that the candidate defines."""
        self._codes = frozenset(_codes(names))
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            # Before Python 3.12 a thread traces its calls.
            self.in_thread = lambda: sys.settrace(self._traced)
            return
        monitoring.use_tool_id(monitoring.PROFILER_ID, "giveway")
        events = monitoring.events.LINE | monitoring.events.JUMP
        for event in (monitoring.events.LINE, monitoring.events.JUMP):
            monitoring.register_callback(monitoring.PROFILER_ID, event, self)
        for code in self._codes:
            monitoring.set_local_events(monitoring.PROFILER_ID, code, events)

    def _traced(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code not in self._codes:
            return None
        # A loop within a line has no events of lines.
        frame.f_trace_opcodes = True
        if event == "line" or (event == "opcode" and frame.f_code.co_code[frame.f_lasti] in _BACK):
            self()
        return self._traced


def _codes(names: dict[str, Any]) -> list[CodeType]:
    """The code of all functions and methods among the names, with what is defined within them."""
    found: list[CodeType] = []

    def add(code: CodeType) -> None:
        found.append(code)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                add(constant)

    for value in names.values():
        members = vars(value).values() if isinstance(value, type) else [value]
        for member in members:
            if isinstance(member, FunctionType) and member.__module__ == "candidate":
                add(member.__code__)
    return found


def discipline_of(names: dict[str, Any]) -> Any:
    """The discipline of a candidate: its last class with ``enqueue`` and ``dequeue``, or its function ``rank``."""
    own_names = [value for name, value in names.items() if name != "__builtins__"]
    classes = [value for value in own_names if isinstance(value, type) and hasattr(value, "enqueue")]
    if classes:
        return classes[-1]
    function: Callable[[Packet], float] | None = names.get("rank")
    if callable(function):
        return rank(function, name="rank")
    raise PolicyError("it has neither a class with enqueue and dequeue nor a function rank(packet)")


def main(descriptor: int) -> None:
    """Starts a process for each end of a channel that arrives at the socket of a descriptor, until it is closed."""
    request: dict[str, Any] = json.load(sys.stdin)
    for module in (*MODULES, *_LATER):
        importlib.import_module(module)
    # Ctrl-C is for the judge, which then closes the socket. Ended processes need no farewell.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as control:
        while True:
            data, ends, _, _ = socket.recv_fds(control, 1, 1)
            if not data:
                return
            if os.fork() == 0:
                _run(request, ends[0])
            os.close(ends[0])


def _run(request: dict[str, Any], end: int) -> None:
    """Serves a run, in a process of its own, which then ends."""
    status = 1
    try:
        os.dup2(end, 0)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        _limit(resource.RLIMIT_AS, _memory() + _SPARE + request["memory"])
        _limit(resource.RLIMIT_CPU, _SECONDS)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_FSIZE, 0)
        _limit(resource.RLIMIT_NOFILE, _DESCRIPTORS)
        _giveway.serve_candidate(lambda: _made(request))
        status = 0
    finally:
        # Nothing of the process that was copied is to be written or cleaned up.
        os._exit(status)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(what, (most, most))


def _memory() -> int:
    """The memory of this process, bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return _BASE


def _made(request: dict[str, Any]) -> Own | tuple[str, str]:
    """The discipline of a program, or the kind of a reason for which it is rejected, and a sentence."""

    def ended(sentence: str) -> None:
        os.write(0, _giveway.candidate_mistake("fuel", sentence))
        os._exit(0)

    fuel = _Fuel(request["fuel"], ended)
    try:
        names = checked(request["source"], request["name"])
        discipline = discipline_of(names)
        fuel.watch(names)
        return own(_counted(discipline, fuel), 0)
    except PolicyError as error:
        return "module", str(error)
    except MemoryError:
        return "memory", f"it wants more than {request['memory']} bytes of memory"
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"


def _counted(discipline: Any, fuel: _Fuel) -> Any:
    """A discipline whose calls earn fuel."""
    if isinstance(discipline, Rank):
        function = discipline.function

        def counted(packet: Packet) -> float:
            fuel.in_thread()
            fuel.called()
            return function(packet)

        return Rank(counted, discipline.limit, discipline.name)
    made = own(discipline, 0).make

    class Counted:
        def __init__(self, link: Any) -> None:
            fuel.in_thread()
            fuel.called()
            inner = made(vars(link))
            if hasattr(inner, "rate_changed"):
                self.rate_changed = inner.rate_changed
            self._enqueue, self._dequeue = inner.enqueue, inner.dequeue

        def enqueue(self, packet: Any, cx: Any) -> None:
            fuel.called()
            self._enqueue(packet, cx)

        def dequeue(self, cx: Any) -> Any:
            fuel.called()
            return self._dequeue(cx)

    Counted.__name__ = discipline.__name__
    return Counted


if __name__ == "__main__":
    main(int(sys.argv[1]))
