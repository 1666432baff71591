"""A scenario built in Python, call by call."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Literal, Self

from . import _giveway
from ._discipline import DisciplineSource
from ._progress import Progress
from ._run import Run
from ._run import run as run_scenario
from ._scenario import Scenario, Source, to_toml

Quantity = str | float


class Network:
    """A network with its traffic, built call by call. Printing it gives the TOML of the scenario that it stands for::

        net = giveway.Network(duration="30 s")
        net.link("home", "isp", "10mbit", "10ms", qdisc="compare")
        net.bulk("home", "isp", flows=2)
        net.audio("home", "isp")
        run = net.run(["fifo", "fq_codel", "cake"], seeds=5)

    Rates, times and sizes are texts with a unit, as in ``tc`` (``"10mbit"``, ``"5 ms"``, ``"100kb"``). A node exists
    as soon as a link names it. Mistakes are reported when the network is checked (`check`) or run, with the line in
    that TOML.

    Args:
        duration: Duration of a run.
        warmup: The first part of a run, which is not measured.
        title: A title for tables and reports.
        seeds: The number of seeds.
        keys: Any other key of a scenario, such as ``tcp={"congestion": "bbr"}`` or ``record={"senders": True}``.
    """

    def __init__(
        self,
        *,
        duration: Quantity = "10 s",
        warmup: Quantity | None = None,
        title: str | None = None,
        seeds: int | Sequence[int] | None = None,
        **keys: Any,
    ) -> None:
        given = {"title": title, "duration": duration, "warmup": warmup, "seeds": seeds, **keys}
        self._keys: dict[str, Any] = {key: copy.deepcopy(value) for key, value in given.items() if value is not None}

    @classmethod
    def from_scenario(cls, source: Source) -> Network:
        """The network of a scenario, for further calls."""
        return cls.from_dict(Scenario(source).to_dict())

    @classmethod
    def from_toml(cls, text: str) -> Network:
        """The network of a text. It is checked later."""
        return cls.from_dict(tomllib.loads(text))

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Network:
        """The network of a dict with the keys of a scenario. It is checked later."""
        made = cls.__new__(cls)
        made._keys = copy.deepcopy(dict(keys))
        return made

    # --- links

    def link(
        self,
        a: str,
        b: str,
        rate: Quantity | Mapping[str, Any],
        delay: Quantity | Mapping[str, Any],
        *,
        qdisc: str | None = None,
        back: Mapping[str, Any] | Literal[False] | None = None,
        **keys: Any,
    ) -> Self:
        """Adds a link between two nodes, with both directions.

        Args:
            a: The first node. ``"s[1-10]"`` is a range of ten nodes with a link each.
            b: The second node.
            rate: Rate of each direction; a dict for a rate that varies, as in ``{"trace": "lte.trace"}``.
            delay: Propagation delay of each direction.
            qdisc: The discipline from ``a`` to ``b``, as in ``tc``. ``"compare"`` stands for each of the compared
                disciplines.
            back: What differs from ``b`` to ``a``, as in ``{"rate": "50mbit", "qdisc": "fq_codel"}``; False for no
                way back.
            keys: Any other key of a link, such as ``loss="1%"`` or ``jitter="2 ms"``.
        """
        return self._add(
            "link", {"from": a, "to": b, "rate": rate, "delay": delay, "qdisc": qdisc, "back": back, **keys}
        )

    def topology(self, kind: str, **keys: Any) -> Self:
        """Adds a topology, such as ``topology("dumbbell", hosts=4, host_rate="100mbit", ...)``."""
        return self._add("topology", {"kind": kind, **keys})

    # --- traffic

    def traffic(self, kind: str, a: str | None = None, b: str | None = None, **keys: Any) -> Self:
        """Adds traffic of any kind from ``a`` to ``b``. ``giveway.traffic()`` lists the kinds, and
        ``giveway.explain(kind)`` the keys of one."""
        return self._add("traffic", {"kind": kind, "from": a, "to": b, **keys})

    def bulk(self, a: str, b: str, *, flows: int | None = None, size: Quantity | None = None, **keys: Any) -> Self:
        """Adds TCP connections from ``a`` to ``b`` that always have data to send, or ``size`` bytes each."""
        return self.traffic("bulk", a, b, flows=flows, size=size, **keys)

    def transfers(self, a: str, b: str, **keys: Any) -> Self:
        """Adds TCP transfers of random sizes that arrive at random times (Poisson), as in
        ``load="8mbit", size="web_search"``."""
        return self.traffic("transfers", a, b, **keys)

    def web(self, a: str, b: str, *, users: int | None = None, think: Quantity | None = None, **keys: Any) -> Self:
        """Adds web users at ``a`` who load pages from ``b``."""
        return self.traffic("web", a, b, users=users, think=think, **keys)

    def audio(self, a: str, b: str, **keys: Any) -> Self:
        """Adds a voice call from ``a`` to ``b``: a packet every 20 ms."""
        return self.traffic("audio", a, b, **keys)

    def video(self, a: str, b: str, **keys: Any) -> Self:
        """Adds a video call from ``a`` to ``b``: frames as bursts of packets."""
        return self.traffic("video", a, b, **keys)

    def cbr(self, a: str, b: str, rate: Quantity, **keys: Any) -> Self:
        """Adds UDP datagrams from ``a`` to ``b`` at a constant rate."""
        return self.traffic("cbr", a, b, rate=rate, **keys)

    def quic(self, a: str, b: str, **keys: Any) -> Self:
        """Adds QUIC transfers from ``a`` to ``b``."""
        return self.traffic("quic", a, b, **keys)

    # --- the scenario

    def compare(self, *disciplines: str) -> Self:
        """Sets the compared disciplines, which run at each link with ``qdisc="compare"``."""
        self._keys["disciplines"] = list(disciplines)
        return self

    def set(self, **keys: Any) -> Self:
        """Sets keys at the top of the scenario, such as ``tcp={"congestion": "bbr"}``."""
        self._keys.update(copy.deepcopy(keys))
        return self

    def to_dict(self) -> dict[str, Any]:
        """The keys of the scenario."""
        return copy.deepcopy(self._keys)

    def to_toml(self) -> str:
        """The TOML of the scenario."""
        return to_toml(self._keys)

    def check(self) -> Scenario:
        """The checked scenario.

        Raises:
            ScenarioError: It has mistakes; each is shown with its line in `to_toml`.
        """
        return Scenario(self)

    def run(
        self,
        disciplines: Sequence[DisciplineSource] | None = None,
        seeds: int | Sequence[int] | None = None,
        *,
        progress: Progress = None,
        **options: Any,
    ) -> Run:
        """Runs the scenario: :func:`giveway.run`."""
        return run_scenario(self, disciplines, seeds, progress=progress, **options)

    def _add(self, table: str, keys: Mapping[str, Any]) -> Self:
        given = {key: copy.deepcopy(value) for key, value in keys.items() if value is not None}
        self._keys.setdefault(table, []).append(given)
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Network) and self._keys == other._keys

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return _giveway.harmless(self.to_toml())

    def __repr__(self) -> str:
        links, traffic = len(self._keys.get("link", [])), len(self._keys.get("traffic", []))
        return f"<giveway.Network: {links} links, {traffic} kinds of traffic; print it for its TOML>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_toml())}</pre>"
