"""The process of a candidate in Python: with bounded fuel, memory and time.

It reads a request from its standard input, and writes the judgement to its standard output.
"""

from __future__ import annotations

import json
import opcode
import os
import resource
import sys
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType
from typing import Any

from . import _giveway
from ._discipline import Packet, Rank, own, rank
from ._policy import PolicyError, checked

#: Memory of the interpreter and of the simulation, bytes, in addition to the candidate's.
_BASE = 1 << 30
#: A call may use the fuel of this many calls.
_SAVED = 200
#: The number of exceptions that a candidate may catch.
_CHANCES = 100


#: Instructions that jump back.
_BACK = frozenset(number for name, number in opcode.opmap.items() if "BACKWARD" in name)


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


def refused(request: dict[str, Any], code: str, sentence: str) -> tuple[str, str]:
    """The judgement of a candidate that did not run to its end, as text and as JSON."""
    return _giveway.refused_candidate(request["name"], request["against"], code, sentence)


def main() -> None:
    """Judges the candidate of the request on the standard input."""
    request = json.load(sys.stdin)
    memory = _BASE + request["memory"]
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (request["seconds"], request["seconds"] + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def ended(sentence: str) -> None:
        _answer(*refused(request, "fuel", sentence))
        sys.stdout.flush()
        os._exit(0)

    fuel = _Fuel(request["fuel"], ended)
    try:
        names = checked(request["source"], request["name"])
        discipline = discipline_of(names)
    except PolicyError as error:
        _answer(*refused(request, "module", str(error)))
        return
    except Exception as error:
        _answer(*refused(request, "crash", f"{type(error).__name__}: {error}"))
        return
    fuel.watch(names)
    described = own(_counted(discipline, fuel), 0)
    options = (request["seeds"], 1, 0, 0)
    text, whole = _giveway.judge_discipline(
        request["name"], described, request["against"], request["secret"], options, None
    )
    _answer(text, whole)


def _answer(text: str, whole: str) -> None:
    print(json.dumps([text, whole]))


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
    main()
