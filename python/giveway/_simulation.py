"""A simulation that runs step by step, and is read and changed between the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from . import _giveway
from ._discipline import DisciplineSource, Packet, own
from ._run import Run, provenance
from ._scenario import Scenario, Source, warn
from ._traffic import TrafficSources, own_traffic

#: Picoseconds of a second: the clock of a simulation counts them.
_SECOND = 10**12
#: Picoseconds of the units of times.
_UNITS = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": _SECOND, "min": 60 * _SECOND}


@dataclass(frozen=True)
class PortState:
    """The counters of a port since the start."""

    arrived_packets: int
    arrived_bytes: int
    sent_packets: int
    sent_bytes: int
    dropped_packets: int
    dropped_bytes: int
    backlog_packets: int
    """Queued packets, without the one in transmission."""
    backlog_bytes: int
    marked_packets: int
    """Marked with Congestion Experienced (ECN)."""
    rate: int
    """Rate of the link, bit/s."""


class Step(NamedTuple):
    """What a port did since it was last read."""

    sent_packets: int
    sent_bytes: int
    sojourn_mean: float
    """Mean sojourn time of these packets, seconds; 0 if there are none."""
    sojourn_max: float
    """The largest, seconds."""
    dropped_packets: int


class Port:
    """A port of a simulation in progress: the queue of one direction of a link."""

    __slots__ = ("_number", "_simulation", "name")

    def __init__(self, simulation: _giveway.Simulation, name: str) -> None:
        self._simulation = simulation
        self._number = simulation.port(name)
        self.name = name

    @property
    def state(self) -> PortState:
        """Counters since the start."""
        numbers, marked, rate = self._simulation.counters(self._number)
        return PortState(*numbers, marked, rate)  # pyright: ignore[reportCallIssue]

    @property
    def backlog(self) -> int:
        """Queued packets."""
        return self._simulation.counters(self._number)[0][6]

    @property
    def rate(self) -> int:
        """Rate of the link, bit/s."""
        return self._simulation.counters(self._number)[2]

    def since(self) -> Step:
        """What the port did since the last call of this method."""
        packets, size, total, most, dropped = self._simulation.since(self._number)
        return Step(packets, size, total / packets if packets else 0.0, most, dropped)

    @property
    def gauges(self) -> dict[str, float]:
        """Internal state of the discipline, by name; ``giveway.explain`` lists the gauges of a discipline."""
        return self._simulation.gauges(self._number)

    @property
    def queue(self) -> list[Packet]:
        """The packets in the queue, in order of arrival.

        Raises:
            RuntimeError: The queue was not watched (`watch`) while it filled.
        """
        found = self._simulation.queue(self._number)
        if found is None:
            raise RuntimeError(f"the queue of {self.name} is not known: call watch() before packets arrive")
        return found

    def watch(self) -> None:
        """Keeps a list of the queued packets from now on, which `queue` returns. It costs time for each packet."""
        self._simulation.watch(self._number)

    def change(self, qdisc: DisciplineSource) -> None:
        """Replaces the discipline, as ``tc qdisc change`` does.

        One of the same kind takes over the queue and the state, with other parameters from now on. Otherwise the
        queued packets leave before packets of the new discipline.
        """
        if isinstance(qdisc, str):
            self._simulation.change(self._number, qdisc)
        else:
            self._simulation.change_to_own(self._number, own(qdisc, 0))

    def _set_numbers(self, actions: _giveway.Actions, values: list[float]) -> None:
        """Sets parameters of the discipline, as `change` does without their text."""
        self._simulation.set_numbers(self._number, actions, values)

    def set_rate(self, rate: str | float) -> None:
        """Changes the rate of the link from the next transmission on: ``"5mbit"``, or a number of bit/s."""
        self._simulation.set_rate(self._number, rate if isinstance(rate, str) else f"{rate:.0f}bit")

    def set_delay(self, delay: str | float) -> None:
        """Changes the propagation delay of the link for packets that are sent from now on: ``"20 ms"``, or seconds."""
        self._simulation.set_delay(self._number, f"{picoseconds(delay)} ps")

    def set_loss(self, loss: float) -> None:
        """Changes the probability (0 to 1) that the link loses a packet."""
        self._simulation.set_loss(self._number, loss)

    def __repr__(self) -> str:
        return f"<giveway.Port {self.name}: {self.backlog} packets>"


class Simulation:
    """A run of a scenario, step by step::

        sim = giveway.Simulation("scenarios/quickstart.toml", "codel")
        while not sim.done:
            sim.step("100 ms")
            if sim.port().backlog > 50:
                sim.port().change("codel target 2ms")
        print(sim.finish())

    Steps do not change the results: an undisturbed simulation gives the same as :func:`giveway.run`.

    Args:
        scenario: As in :func:`giveway.run`.
        discipline: In place of the scenario's first one.
        seed: The seed.
        changes: Keys of the scenario to change.
        traffic: Sources of traffic in Python, as in :func:`giveway.run`.
        series: Keep samples over time for tables such as ``queue``.
    """

    def __init__(
        self,
        scenario: Source,
        discipline: DisciplineSource | None = None,
        *,
        seed: int = 1,
        changes: Mapping[str, Any] | None = None,
        traffic: TrafficSources | None = None,
        series: bool = True,
    ) -> None:
        mine = None if discipline is None or isinstance(discipline, str) else own(discipline, 0)
        compared: dict[str, Any] = {}
        if discipline is not None:
            compared["disciplines"] = [discipline if isinstance(discipline, str) else "fifo"]
        self.scenario = Scenario(scenario, changes={**(changes or {}), **compared})
        """The scenario."""
        (self.seed,) = self.scenario.with_seeds([seed]).seeds
        """The seed."""
        if mine is None:
            warn(self.scenario.warnings)
        self._simulation = _giveway.Simulation(self.scenario._read, mine, own_traffic(traffic), self.seed, series)
        self._ports: dict[str, Port] = {}
        measured = [link.name for link in self.scenario.links if link.measured]
        self._first = measured[0] if measured else self.scenario.links[0].name

    def step(self, duration: str | float | None = None, *, until: str | float | None = None) -> Self:
        """Runs on, for a duration or until a time; without either, to the end.

        Times are seconds, or texts with a unit, as in ``"100 ms"``.
        """
        if duration is not None and until is not None:
            raise ValueError("give a duration, or a time with until, not both")
        now, end = self._simulation.times
        if until is not None:
            target = picoseconds(until)
            if target < now:
                raise ValueError(f"until: {until} is in the past; it is {now / _SECOND} s")
        else:
            target = end if duration is None else now + picoseconds(duration)
        self._simulation.step(target)
        return self

    def step_ps(self, until: int) -> None:
        """Runs on until a time in picoseconds, which the clock counts."""
        self._simulation.step(until)

    @property
    def now(self) -> float:
        """The simulated time, seconds."""
        return self._simulation.times[0] / _SECOND

    @property
    def end(self) -> float:
        """The end of the run, seconds."""
        return self._simulation.times[1] / _SECOND

    @property
    def done(self) -> bool:
        """True at the end of the run."""
        now, end = self._simulation.times
        return now >= end

    @property
    def events(self) -> int:
        """The number of events so far."""
        return self._simulation.events

    @property
    def ports(self) -> list[str]:
        """The names of all ports, such as ``"home->isp"``."""
        return self._simulation.ports

    def port(self, name: str | None = None) -> Port:
        """A port by its name; by default the first measured one, which is the bottleneck."""
        name = name or self._first
        if name not in self._ports:
            self._ports[name] = Port(self._simulation, name)
        return self._ports[name]

    def finish(self) -> Run:
        """Ends the run at the present time, and returns its results."""
        return Run(self._simulation.finish(provenance("Simulation")))

    def __repr__(self) -> str:
        return f"<giveway.Simulation {self.scenario.title or self.scenario.name!r}: {self.now:.6f} of {self.end} s>"


def picoseconds(time: str | float) -> int:
    """A time in picoseconds, the unit of the clock of a simulation."""
    if isinstance(time, str):
        number = time.strip().rstrip("psnuµmi")
        unit = time.strip()[len(number) :]
        number = number.strip()
        if unit not in _UNITS or not number:
            raise ValueError(f'{time!r} is not a time: write for example "100 ms"')
        try:
            value = float(number) * _UNITS[unit]
        except ValueError:
            raise ValueError(f'{time!r} is not a time: write for example "100 ms"') from None
    else:
        value = float(time) * _SECOND
    if not 0 <= value < 1e19:
        raise ValueError(f"{time!r} is not a time of a simulation")
    return round(value)
