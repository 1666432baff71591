"""Disciplines that are written in Python."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from ._giveway import Context, Packet, Request, Wait

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


def rank(function: Callable[[Packet], float], *, limit: str = "1000p", name: str | None = None) -> Rank:
    """A discipline from a rank: the packet with the smallest rank leaves first.

    Among packets of equal rank, the one that arrived first leaves first. If the queue is full, the packet that would
    leave last is dropped. This is a push-in first-out queue (Sivaraman et al., SIGCOMM 2016)::

        srpt = giveway.rank(lambda packet: packet.remaining, limit="300p", name="my_srpt")

    Args:
        function: From a packet to its rank.
        limit: The maximum number of packets or bytes, as in ``tc``: ``"300p"``, ``"100kb"``.
        name: The name in results; by default the name of the function.
    """
    if not callable(function):
        raise TypeError(f"a rank is a function from a packet to a number, not {type(function).__name__}")
    return Rank(function, limit, name)


DisciplineSource: TypeAlias = (
    "str | type[Discipline] | Callable[[PortInfo], Discipline] | Rank | type[Arbiter] | Callable[[SwitchInfo], Arbiter]"
)
"""A discipline: its name and parameters as in ``tc``, a class, a function from a link to an object, or a rank; of a
switch, an arbiter: its name, a class, or a function from a switch to an object."""


@dataclass(frozen=True)
class Own:
    """A discipline in Python, as the module in Rust takes it."""

    name: str
    place: int
    make: Callable[..., Any]
    limit: str | None
    source: str


def own(discipline: Any, place: int) -> Own:
    """The description of a discipline in Python at a place among all compared ones."""
    if isinstance(discipline, Rank):
        name = discipline.name or _name(discipline.function)
        return Own(name, place, discipline.function, discipline.limit, _source(discipline.function))
    if not callable(discipline):
        raise TypeError(
            f"a discipline is a text, a class or a giveway.rank, not {type(discipline).__name__}: a run makes one "
            "object for each link and seed, so give the class instead of an object"
        )
    takes_link = _takes_an_argument(discipline)

    def make(link: dict[str, Any]) -> Any:
        if not takes_link:
            return discipline()
        return discipline(SwitchInfo(**link) if "ports" in link else PortInfo(**link))

    return Own(_name(discipline), place, make, None, _source(discipline))


def _takes_an_argument(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(
        each.kind in positional and (each.default is inspect.Parameter.empty or each.name == "link")
        for each in parameters
    )


def _name(function: Callable[..., Any]) -> str:
    """The name in results: letters, digits and underscores."""
    name = getattr(function, "discipline_name", None) or getattr(function, "__name__", type(function).__name__)
    return re.sub(r"\W+", "_", str(name)).strip("_") or "python"


def _source(function: Callable[..., Any]) -> str:
    """The text of a class or a function, which the results depend on."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError):
        return f"{function!r}, whose source is not known\n"
