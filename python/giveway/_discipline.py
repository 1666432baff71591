"""Disciplines that are written in Python."""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

from ._errors import GivewayError
from ._giveway import Context, Packet, Request, Wait
from ._numbers import is_truth, plain, whole_number

__all__ = [
    "Arbiter",
    "Context",
    "Discipline",
    "DisciplineSource",
    "Packet",
    "PortInfo",
    "Rank",
    "Request",
    "SwitchInfo",
    "Wait",
    "rank",
]


@dataclass(frozen=True)
class PortInfo:
    """The link that a discipline is built for."""

    name: str
    """Its nodes, as in ``"home->isp"``."""
    rate: int
    """bit/s"""
    mtu: int
    """Largest IP length, bytes."""
    seed: int
    """A number for the random numbers of the discipline, such as ``random.Random(link.seed)``. It depends on the
    seed of the run and the name of the link only."""


@dataclass(frozen=True)
class SwitchInfo:
    """The switch that an arbiter is built for."""

    ports: int
    """The number of inputs, and of outputs."""
    seed: int
    """A number for the random numbers of the arbiter. It depends on the seed of the run only."""


class Arbiter(Protocol):
    """An arbiter of an input-queued switch with virtual output queues. A class needs no base class, only this method.

    Its constructor takes no argument, or the switch (:class:`SwitchInfo`). A run makes one object for each seed,
    and for each class of packets if the mode of the switch has classes.
    """

    def match(self, requests: list[Request], slot: int, /) -> list[tuple[int, int]]:
        """Returns pairs of an input and an output, which then exchange a cell in this slot. Each pair must be one of
        the requests, and an input or an output may be in one pair only."""
        ...


class Discipline(Protocol):
    """A queue discipline. A class needs no base class, only these methods.

    Its constructor takes no argument, or the link (:class:`PortInfo`). A run makes one object for each link that
    compares disciplines, and for each seed. It must take its random numbers from ``link.seed``, so that the same
    scenario and seed give the same results.
    """

    def enqueue(self, packet: Packet, cx: Context, /) -> None:
        """Keeps the packet that arrives, or drops it or others with ``cx.drop(packet)``."""
        ...

    def dequeue(self, cx: Context, /) -> Packet | Wait | None:
        """Returns the packet that leaves; ``cx.wait(seconds)`` or ``cx.wait_until(time)`` to hold packets back; or None
        if no packet is queued."""
        ...

    # Optional methods:
    # def gauges(self) -> dict[str, float]: internal state for plots; it is sampled, never called per packet.
    # def rate_changed(self, rate: int, cx: Context) -> None: the link has this rate from now on, bit/s.


@dataclass(frozen=True)
class Rank:
    """A queue by ranks: see :func:`rank`."""

    function: Callable[[Packet], float]
    limit: str = "1000p"
    name: str | None = None


def rank(function: Callable[[Packet], float], *, limit: str | int = "1000p", name: str | None = None) -> Rank:
    """A discipline from a rank: the packet with the smallest rank leaves first.

    Among packets of equal rank, the one that arrived first leaves first. If the queue is full, the packet that would
    leave last is dropped. This is a push-in first-out queue (Sivaraman et al., SIGCOMM 2016)::

        srpt = giveway.rank(lambda packet: packet.remaining, limit="300p", name="my_srpt")

    Args:
        function: From a packet to its rank.
        limit: The maximum number of packets or bytes, as in ``tc``: ``"300p"``, ``"100kb"``; or a number of packets.
        name: The name in results; by default the name of the function.
    """
    if not callable(function):
        raise TypeError(f"a rank is a function from a packet to a number, not {type(function).__name__}")
    _refuse_async(name or _name(function), "", function)
    most = (
        limit if isinstance(limit, str) else f"{whole_number('limit', limit, what='a number of packets, or a text')}p"
    )
    return Rank(function, most, name)


DisciplineSource: TypeAlias = (
    "str | type[Discipline] | Callable[..., Discipline] | Rank | type[Arbiter] | Callable[..., Arbiter]"
)
"""A discipline: its name and parameters as in ``tc``, a class, a function from a link to an object, or a rank; of a
switch, an arbiter: its name, a class, or a function from a switch to an object. ``functools.partial`` sets parameters
of a class."""

_METHODS = ("enqueue", "dequeue", "gauges", "rate_changed", "match", "wake")
#: Names of the argument of a constructor that describes its link, switch or flow.
_DESCRIBED = ("link", "switch", "flow")


@dataclass(frozen=True)
class Own:
    """A discipline in Python, as the module in Rust takes it. It can be pickled if the discipline can."""

    name: str
    place: int
    discipline: Any
    source: str
    values: Sequence[tuple[str, str]] = ()
    """The parameters that a sweep sets, and their values."""

    @property
    def limit(self) -> str | None:
        """The limit of a queue by ranks."""
        return self.discipline.limit if isinstance(self.discipline, Rank) else None

    @property
    def make(self) -> Callable[..., Any]:
        """The function of a rank, or a function from the description of a link to an object."""
        return self.discipline.function if isinstance(self.discipline, Rank) else self._made

    def _made(self, link: dict[str, Any]) -> Any:
        defaults = dict(_parameters(self.discipline))
        values = {name: _parsed(name, text, defaults.get(name)) for name, text in self.values}
        return made(self.discipline, SwitchInfo(**link) if "ports" in link else PortInfo(**link), self.name, values)

    @property
    def numbers(self) -> list[tuple[str, float | str]]:
        """The parameters with their defaults, for a sweep."""
        if isinstance(self.discipline, Rank):
            return []
        return [
            (name, str(default).lower() if default is None or isinstance(default, bool) else default)
            for name, default in _parameters(self.discipline)
        ]

    def at(self, name: str, values: Sequence[tuple[str, str]]) -> Own:
        """The discipline with other parameters, under another name."""
        return replace(self, name=name, values=tuple(values))


def own(discipline: Any, place: int) -> Own:
    """The description of a discipline in Python at a place among all compared ones."""
    if isinstance(discipline, Rank):
        name = discipline.name or _name(discipline.function)
        _refuse_async(name, "", discipline.function)
        return Own(name, place, discipline, source_of(discipline.function))
    if not callable(discipline):
        raise TypeError(
            f"a discipline is a text, a class or a giveway.rank, not {type(discipline).__name__}: a run makes one "
            "object for each link and seed, so give the class instead of an object"
        )
    return Own(_name(discipline), place, discipline, source_of(discipline))


def made(function: Callable[..., Any], described: Any, name: str, values: dict[str, Any] | None = None) -> Any:
    """The object of a class or a function, which takes no argument or the description of its place."""
    given = (described,) if _takes_an_argument(function) else ()
    found = function(*given, **(values or {}))
    for method in _METHODS:
        _refuse_async(name, method, getattr(found, method, None))
    return found


def _refuse_async(name: str, method: str, function: Any) -> None:
    """Refuses a function whose call does not run it."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    where = f"{name}.{method}" if method else f"the rank {name}"
    if inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called):
        raise TypeError(f"{where} is an `async def`, which nobody awaits: write `def`")
    if inspect.isgeneratorfunction(called):
        raise TypeError(f"{where} has a `yield`, so that a call does not run it: return the answer")


def _parameters(function: Callable[..., Any]) -> list[tuple[str, Any]]:
    """The parameters of a class that have a plain default, or None."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found = [
        (each.name, plain(each.default))
        for each in parameters
        if each.kind in named and each.default is not inspect.Parameter.empty and each.name not in _DESCRIBED
    ]
    return [each for each in found if each[1] is None or isinstance(each[1], (bool, int, float, str))]


def _parsed(name: str, text: str, default: Any) -> Any:
    """The value of a parameter, of the kind of its default."""
    if isinstance(default, str):
        return text
    if is_truth(default):
        if text not in ("true", "false"):
            raise GivewayError(f"{name} is true or false, as its default {default}, not {text!r}")
        return text == "true"
    # Disciplines that are built in count packets with a unit, as in "5p".
    number = text.removesuffix("p")
    for kind in (int, float):
        try:
            return kind(number)
        except ValueError:
            continue
    if default is None:
        return text
    raise GivewayError(f"{name} is a number, as its default {default}, not {text!r}")


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(
        each.kind in positional and (each.default is inspect.Parameter.empty or each.name in _DESCRIBED)
        for each in parameters
    )


def _is_partial(function: object) -> bool:
    return isinstance(function, functools.partial)


def _name(function: Callable[..., Any]) -> str:
    """The name in results: letters, digits and underscores; with the parameters that ``functools.partial`` sets."""
    if _is_partial(function) and not hasattr(function, "discipline_name"):
        given: Any = function
        values = [f"{name} {plain(value)}" for name, value in given.keywords.items()]
        return re.sub(r"[^\w. -]+", "_", " ".join([_name(given.func), *values]))
    name = getattr(function, "discipline_name", None) or getattr(function, "__name__", type(function).__name__)
    return re.sub(r"\W+", "_", str(name)).strip("_") or "python"


def source_of(function: Callable[..., Any]) -> str:
    """The text of a class or a function, which the results depend on."""
    if _is_partial(function):
        given: Any = function
        return f"{source_of(given.func)}\n# with {given.args} and {given.keywords}\n"
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return f"{function!r}, whose source is not known\n"
