"""Sources of traffic that are written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

from ._discipline import made, source_of
from ._giveway import Sender, Wait

__all__ = ["FlowInfo", "Sender", "TrafficSource"]


@dataclass(frozen=True)
class FlowInfo:
    """The flow that a source of traffic is built for."""

    name: str
    """Name of the traffic in the scenario."""
    source: str
    """Node that sends."""
    destination: str
    """Node that receives."""
    start: float
    """Time of the first call, seconds."""
    stop: float
    """Time from which there is no call, seconds."""
    seed: int
    """A number for the random numbers of the source, such as ``random.Random(flow.seed)``. It depends on the seed of
    the run, the name of the traffic and the pair of nodes only, so all disciplines get the same packets."""


class TrafficSource(Protocol):
    """A source of packets. A class needs no base class, only this method.

    Its constructor takes no argument, or the flow (:class:`FlowInfo`). A run makes one object for each pair of nodes
    and each seed. It must take its random numbers from ``flow.seed``.
    """

    def wake(self, cx: Sender, /) -> Wait | None:
        """Called at the start of the traffic, and then at each time that it has returned.

        Sends packets with ``cx.send(bytes)``. Returns ``cx.wait(seconds)`` or ``cx.wait_until(time)``, or None if
        nothing more is sent."""
        ...


TrafficSources: TypeAlias = "Mapping[str, type[TrafficSource] | Callable[..., TrafficSource]]"
"""Sources in Python, by the name of the traffic whose source they replace."""


@dataclass(frozen=True)
class OwnTraffic:
    """A source of traffic in Python, as the module in Rust takes it."""

    name: str
    replaces: str
    traffic: Any
    source: str

    def make(self, flow: dict[str, Any]) -> Any:
        """The source of a flow."""
        return made(self.traffic, FlowInfo(**flow), self.name)


def own_traffic(traffic: TrafficSources | None) -> list[OwnTraffic]:
    """The descriptions of sources in Python."""
    if traffic is None:
        return []
    if not isinstance(traffic, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f'traffic is a dict from names to classes, as in {{"call": MyCall}}, not {traffic!r}')
    found: list[OwnTraffic] = []
    for name, each in cast("Mapping[Any, Any]", traffic).items():
        if not isinstance(name, str) or not callable(each):
            raise TypeError(f"traffic[{name!r}]: {each!r} is not a class with a method wake")
        found.append(OwnTraffic(getattr(each, "__name__", type(each).__name__), name, each, source_of(each)))
    return found
