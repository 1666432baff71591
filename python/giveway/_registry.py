"""What there is: disciplines, arbiters, congestion controls, traffic; their explanations; and delay bounds."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from . import _giveway
from ._scenario import Scenario, Source


@dataclass(frozen=True)
class Entry:
    """A name that a scenario can use."""

    name: str
    summary: str
    family: str | None = None
    """Group of a discipline, such as ``"aqm"``."""
    place: str | None = None
    """Where a discipline runs: ``"tc"`` (a qdisc of Linux, too), ``"here"``, ``"reserved"`` (with reservations), or the
    knowledge that it needs (``"future"``, ``"labels"``, ``"hops"``)."""

    def explain(self) -> str:
        """Principles, deviations from the paper, cost, references and parameters."""
        return explain(self.name)


def disciplines() -> list[Entry]:
    """The queue disciplines."""
    return _listed("disciplines")


def congestion_controls() -> list[Entry]:
    """The congestion controls of TCP and QUIC."""
    return _listed("congestion")


def traffic() -> list[Entry]:
    """The sources of traffic."""
    return _listed("traffic")


def arbiters() -> list[Entry]:
    """The arbiters of a switch."""
    return _listed("arbiters")


def _listed(kind: str) -> list[Entry]:
    entries: list[dict[str, Any]] = json.loads(_giveway.answer(["list", kind, "--json"]))
    return [Entry(each["name"], each["summary"], each["family"], each["place"]) for each in entries]


def explain(name: str) -> str:
    """The explanation of a discipline or another name: principles, deviations from the paper, cost, references,
    parameters.

    ``"units"`` explains the units of times, rates and sizes; ``"tcp"`` and ``"quic"`` the keys of senders.
    """
    return _giveway.answer(["explain", "--", name])


@dataclass(frozen=True)
class Bound:
    """The delay bound of a flow with a reservation, at a link with a discipline."""

    link: str
    traffic: str
    discipline: str
    delay: float | None
    """The longest time from the arrival of a packet at the link to its last bit on the wire, seconds; None without
    a bound."""
    reason: str | None
    """Why there is no bound."""
    reserved: int
    """Reserved rate of each flow, bit/s."""


def bound(scenario: Source, *, burst: str | None = None, disciplines: Sequence[str] | None = None) -> list[Bound]:
    """Delay bounds of flows with a reservation, without a run (latency-rate servers, Stiliadis and Varma 1998).

    Args:
        scenario: A scenario with ``reserved`` rates.
        burst: The largest burst of each flow, as in ``"15kb"``; by default one packet.
        disciplines: Disciplines in place of the scenario's.
    """
    read = Scenario(scenario, changes=None if disciplines is None else {"disciplines": list(disciplines)})
    answer = json.loads(read._read.bounds(burst))
    return [
        Bound(link["link"], stream["name"], each["discipline"], each["delay_s"], each["reason"], stream["reserved_bps"])
        for link in answer["links"]
        for stream in link["streams"]
        for each in stream["bounds"]
    ]


def replay_check(*traces: str | os.PathLike[str]) -> str:
    """Repeats the calls of operation traces, and compares each decision. Returns the report.

    Raises:
        GivewayError: A decision differs, or a file is not a trace; the message is the report.
    """
    return _giveway.answer(["replay-check", "--", *(os.fspath(trace) for trace in traces)])
