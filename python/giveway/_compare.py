"""The comparison of disciplines on the traffic of a capture."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal, cast

from . import _giveway
from ._errors import GivewayError
from ._numbers import whole_number
from ._pending import Pending, finish
from ._progress import Progress, shown
from ._run import Run, interrupted, jobs_of, provenance
from ._scenario import warn
from ._temporary import Temporary


@dataclass(frozen=True)
class Recommendation:
    """What to configure, and why."""

    summary: str
    """A few words, as in "cake at 1.9 Mbit/s"."""
    reasons: list[tuple[str, str]]
    """Reasons, cost and certainty: a heading and a sentence each."""
    commands: list[tuple[str, list[str]]]
    """Commands that put it into effect or undo it: a title and lines each."""
    effects: list[tuple[str, str, str, str, str]] = field(default_factory=list[tuple[str, str, str, str, str]])
    """Each time and share that was measured: its name, its value now, its value with the recommended or the best
    setup, the change, and whether it is certain."""

    def __str__(self) -> str:
        lines = [self.summary, *(f"  {head}: {text}" for head, text in self.reasons)]
        lines[1:1] = [
            f"  {name}: {after} instead of {before} ({sure})" for name, before, after, _, sure in self.effects
        ]
        for title, commands in self.commands:
            lines += ["", f"{title}:", *(f"  {command}" for command in commands)]
        return _giveway.harmless("\n".join(lines))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class Capture:
    """What a capture contains."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        """The facts that ``giveway compare --json`` prints."""

    def __repr__(self) -> str:
        return f"<giveway.Capture {json.dumps(self.facts)[:200]}>"


class Comparison(Run):
    """The comparison on one link: a :class:`Run` with findings and a recommendation."""

    capture: Capture
    rate_up: int
    """bit/s"""
    rate_down: int
    """bit/s"""
    hours: str | None
    """The hours of a long capture that are compared here."""

    def __init__(self, results: _giveway.Results, capture: Capture, link: dict[str, Any], keep: object) -> None:
        super().__init__(results)
        self.capture = capture
        self.rate_up = link["rate_upstream_bps"]
        self.rate_down = link["rate_downstream_bps"]
        self.hours = link["hours"]
        # A temporary folder exists as long as one of its links.
        self._keep = keep

    @property
    def recommendation(self) -> Recommendation | None:
        """One discipline, its directions and rates, and commands; None if the capture does not allow one."""
        found = self._results.recommendation
        if found is None:
            return None
        read: dict[str, Any] = json.loads(found)
        effects: dict[str, Any] = read.get("effects") or {"rows": []}
        return Recommendation(
            read["summary"],
            [(head, text) for head, text in read["reasons"]],
            [(block["title"], block["lines"]) for block in read["commands"]],
            [(name, now, then, change, sure) for name, now, then, change, sure in effects["rows"]],
        )

    def _repr_html_(self) -> str:
        found = self.recommendation
        return super()._repr_html_() + (found._repr_html_() if found else "")


@dataclass(frozen=True)
class _Asked:
    captures: list[str]
    rates: list[tuple[str, str]]
    disciplines: list[list[str]]
    rtt: str | None
    replay: bool
    congestion: str | None
    local: str | None
    since: str | None
    until: str | None
    seeds: int | None
    bootstrap: str | None
    whole: bool
    target: str
    wan: str | None
    overhead: str | None
    shape: float
    export: str | None
    out: str
    force: bool
    jobs: int


def compare(
    *captures: str | os.PathLike[str],
    rate: str | Sequence[str] | None = None,
    rate_up: str | None = None,
    rate_down: str | None = None,
    disciplines: Sequence[str | tuple[str, str]] | None = None,
    rtt: str | None = None,
    mode: Literal["flows", "replay"] = "flows",
    congestion: str | None = None,
    local: str | None = None,
    since: str | None = None,
    until: str | None = None,
    seeds: int | None = None,
    bootstrap: bool | str | None = None,
    whole: bool = False,
    target: Literal["tc", "openwrt", "giveway", "any"] = "tc",
    wan: str | None = None,
    shape: float = 0.95,
    overhead: str | None = None,
    export: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    progress: Progress = None,
) -> list[Comparison]:
    """Compares disciplines on the traffic of a capture: which one would help this link?

    Requests, responses and think times are extracted from the capture, and transferred again over simulated TCP, which
    reacts to the queue. Returns a comparison for each rate; for a capture of many hours, also for its busy and its idle
    hours.

    Args:
        captures: pcap or pcapng files, which may be compressed. Several are merged by time.
        rate: Rate of the link in both directions, as in ``"10mbit"``; several are compared one after the other.
        rate_up: Upstream rate, in place of `rate`.
        rate_down: Downstream rate, in place of `rate`.
        disciplines: The first is the baseline of the findings; by default "fifo limit 100p", fq_codel, cake, pie, drr
            and efd. A pair has the discipline upstream and the one downstream; pairs come before the others.
        rtt: Round-trip time of every connection; by default measured in the capture for each connection.
        mode: ``"replay"`` sends packets at their captured times, and no sender reacts.
        congestion: Congestion control of every TCP connection, which a capture does not show; by default CUBIC.
        local: The local side: address prefixes or MAC addresses; by default a guess, which is shown.
        since: Use packets from this time on: ``"90s"`` after the first packet, ``"20:15"``, or an RFC 3339 time.
        until: Use packets until this time.
        seeds: Runs of each discipline; by default 5 (10 for a long capture, 20 with ``bootstrap``, 1 for replay).
        bootstrap: Replay another draw of stretches of the capture with each seed; a text is the length of a stretch. By
            default a capture of at least two minutes with many connections is drawn from, unless one has a fifth of the
            data.
        whole: Compare a long capture as a whole.
        target: The equipment that the recommendation is for.
        wan: Interface towards the provider, in the commands.
        shape: Rate of the shaper in the recommendation, as a share of the line's.
        overhead: What the line adds to packets, as a word of tc-cake(8), in the commands.
        export: A pcapng file for the packets of the queues.
        out: A folder for the results; by default a temporary one.
        force: Replace what is at the places of outputs.
        jobs: Runs at a time; by default one for each processor.
        progress: As in :func:`run`.

    Raises:
        GivewayError: A capture cannot be read or is not usable, with the reason.
        Interrupted: Ctrl-C; its ``run`` contains the finished part.
    """
    if not captures:
        raise ValueError("give at least one capture")
    if mode not in ("flows", "replay"):
        raise ValueError(f'mode: write "flows" or "replay", not {mode!r}')
    if isinstance(disciplines, str):
        raise TypeError(f'disciplines is a list: write disciplines=["{disciplines}"]')
    if seeds is not None:
        seeds = whole_number("seeds", seeds, 1, what="a number of runs")
    keep = Temporary() if out is None else None
    folder = Path(keep.name) / "comparison" if keep else Path(os.fspath(out or ""))
    asked = _Asked(
        captures=[os.fspath(each) for each in captures],
        rates=_rates(rate, rate_up, rate_down),
        disciplines=[_directions(one) for one in disciplines or []],
        rtt=rtt,
        replay=mode == "replay",
        congestion=congestion,
        local=local,
        since=since,
        until=until,
        seeds=seeds,
        bootstrap="off" if bootstrap is False else "" if bootstrap is True else bootstrap,
        whole=whole,
        target=target,
        wan=wan,
        overhead=overhead,
        shape=shape,
        export=None if export is None else os.fspath(export),
        out=str(folder),
        force=force,
        jobs=jobs_of(jobs),
    )
    finish()
    with shown(progress, Path(asked.captures[0]).name) as watch:
        found, messages, stopped, later = _giveway.compare(asked, watch, provenance("compare"))
    warn(messages)
    if stopped is not None:
        raise interrupted(stopped, later and Pending(later, lambda kept: next(iter(_links(kept, keep)), None)))
    links = _links(found, keep) if found else []
    if not links:
        raise GivewayError("nothing was compared: " + "; ".join(messages))
    return links


def _directions(one: str | tuple[str, str]) -> list[str]:
    """One discipline for both directions, or one for each, upstream first."""
    both = [one] if isinstance(one, str) else list(one)
    if len(both) > 2 or not both:
        raise ValueError(
            f"disciplines: {one!r}: write one discipline, or a pair of the one upstream and the one downstream"
        )
    return both


def _links(found: tuple[str, list[str]], keep: object) -> list[Comparison]:
    """The comparison on each link, from the facts and the folders of all."""
    text, folders = found
    facts = json.loads(text)
    capture = Capture(facts["capture"])
    pairs = zip(folders, facts["links"], strict=False)
    return [Comparison(_giveway.open(str(place)), capture, link, keep) for place, link in pairs]


def _rates(rate: str | Sequence[str] | None, up: str | None, down: str | None) -> list[tuple[str, str]]:
    both = [rate] if isinstance(rate, str) else [] if rate is None else _listed(rate)
    for each in (*both, up, down):
        if each is not None and not isinstance(each, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f'a rate is a text with a unit, as in "10mbit", not {each!r}')
    if not both:
        if (up is None) != (down is None):
            missing = "rate_down" if down is None else "rate_up"
            raise ValueError(f"{missing} is missing: give both directions, or rate")
        return [] if up is None or down is None else [(up, down)]
    return [(up or each, down or each) for each in both]


def _listed(rate: Any) -> list[Any]:
    return list(cast("Sequence[Any]", rate)) if isinstance(rate, Sequence) else [rate]
