"""A Gymnasium environment: an agent sets parameters of a discipline while traffic runs.

::

    env = giveway.gym.QueueEnv("scenarios/quickstart.toml", "codel", {"target": ("1 ms", "50 ms")})
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

Each step simulates an interval of time. The observation describes the port in that interval, the action is a
value of each parameter in the list, and the reward is by default the utilization minus a price of delay.
:func:`make_vec` runs many of them in one process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from . import _giveway
from ._extras import need
from ._scenario import Scenario, Source
from ._simulation import Port, Simulation, Step, picoseconds

gymnasium: Any = need("gymnasium", "giveway.gym")
np: Any = need("numpy", "giveway.gym")

#: The entries of every observation, before the gauges.
OBSERVED = ("backlog_packets", "sent_share", "sojourn_mean_ms", "sojourn_max_ms", "drop_share")

#: The rounding of an action in single precision.
_ROUNDING = 1e-6

Reward = Callable[[Step, float], float]
"""A reward from what the port did in a step, and the share of its rate that it used."""


def power(step: Step, utilization: float) -> float:
    """The default reward: utilization minus a tenth for each 10 ms of mean sojourn time."""
    return utilization - 10.0 * step.sojourn_mean


class QueueEnv(gymnasium.Env):  # type: ignore[misc]
    """A port whose discipline has parameters that the agent sets.

    Args:
        scenario: As in :func:`giveway.run`. Each episode is one run, from its start to its end.
        discipline: The discipline at the port, with the parameters that are not set by the agent.
        actions: The parameters that the agent sets, each with its smallest and its largest value: numbers, or
            quantities of one unit such as ``("1 ms", "50 ms")``. An action contains a number between -1 and 1 for each,
            on a logarithmic scale if both ends are above zero.
        interval: The simulated time of a step.
        port: The port; by default the bottleneck.
        gauges: Gauges of the discipline that are added to the observation.
        reward: A function from what the port did in a step and its utilization; by default :func:`power`.
        changes: Keys of the scenario to change.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Source,
        discipline: str = "codel",
        actions: Mapping[str, tuple[str | float, str | float]] | None = None,
        *,
        interval: str | float = "10 ms",
        port: str | None = None,
        gauges: Sequence[str] = (),
        reward: Reward = power,
        changes: Mapping[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ValueError("render_mode: nothing is rendered")
        self.render_mode = None
        self._discipline = discipline
        self._scenario = Scenario(scenario, changes={**(changes or {}), "disciplines": [discipline]})
        self._actions = _parameters(discipline, actions or {"target": ("1 ms", "50 ms")})
        # The names and the text of the parameters are read once, and an action only sets their numbers.
        lowest = " ".join([discipline, *(f"{each.name} {each.value(-1.0)}" for each in self._actions)])
        self._numbers = _giveway.Actions(lowest, [each.name for each in self._actions])
        self._interval = picoseconds(interval)
        self._now = self._end = 0
        self._port_name = port
        self._gauges = tuple(gauges)
        self._reward = reward
        self._simulation: Simulation | None = None
        self._port: Port | None = None
        self._set: list[float] = []
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (len(self._actions),), np.float32)
        size = len(OBSERVED) + len(self._gauges)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a run. Its seed is drawn from the environment's, so that equal seeds give equal episodes."""
        super().reset(seed=seed)  # pyright: ignore[reportUnknownMemberType]
        drawn = int(self.np_random.integers(1, 2**31))
        self._simulation = Simulation(self._scenario, seed=drawn, series=False)
        self._now, self._end = 0, picoseconds(self._simulation.end)
        self._port = self._simulation.port(self._port_name)
        self._set = []
        unknown = [name for name in self._gauges if name not in self._port.gauges]
        if unknown:
            known = ", ".join(self._port.gauges)
            raise KeyError(f"{self._discipline} has no gauge {unknown[0]!r}; it has {known}")
        return self._observation(self._port.since(), 0.0), {"seed": drawn}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sets the parameters, and simulates an interval. The episode is truncated at the end of the run.

        Args:
            action: A number between -1 and 1 for each parameter, in their order; or a dict by their names.

        Raises:
            ValueError: The action has another shape, or a number in it is NaN or outside.
            KeyError: A dict has an unknown key, or lacks one.
        """
        if self._simulation is None or self._port is None:
            raise RuntimeError("call reset() before step()")
        numbers = [each.number(x) for each, x in zip(self._actions, self._values(action), strict=True)]
        # The port keeps its queue and the state of its discipline. An action that changes nothing costs
        # nothing.
        if numbers != self._set:
            values = [number * each.unit for each, number in zip(self._actions, numbers, strict=True)]
            self._port._set_numbers(self._numbers, values)
            self._set = numbers
            words = [f"{each.name} {each.text(number)}" for each, number in zip(self._actions, numbers, strict=True)]
            self._spec = " ".join([self._discipline, *words])
        before = self._now
        self._now = min(before + self._interval, self._end)
        self._simulation.step_ps(self._now)
        did = self._port.since()
        passed = (self._now - before) * 1e-12
        utilization = min(did.sent_bytes * 8 / (self._port.rate * passed), 1.0) if passed > 0 else 0.0
        info = {"time": self._now * 1e-12, "discipline": self._spec}
        reward = float(self._reward(did, utilization))
        return self._observation(did, utilization), reward, False, self._now >= self._end, info

    def _values(self, action: Any) -> list[float]:
        """The numbers of an action, in the order of the parameters."""
        names = [each.name for each in self._actions]
        if isinstance(action, Mapping):
            given = cast("Mapping[Any, Any]", action)
            for key in given:
                if key not in names:
                    raise KeyError(f"action: there is no parameter {key!r}; the parameters are {', '.join(names)}")
            missing = [name for name in names if name not in given]
            if missing:
                raise KeyError(f"action: {missing[0]} is missing")
            action = [given[name] for name in names]
        try:
            numbers = np.asarray(action, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"action: {action!r} is not an array of numbers") from None
        if numbers.shape != self.action_space.shape and not (numbers.shape == () and len(names) == 1):
            raise ValueError(
                f"action: its shape is {numbers.shape}, and {self.action_space.shape} is needed: a number for each of "
                f"{', '.join(names)}"
            )
        values: list[float] = numbers.reshape(-1).tolist()
        for name, value in zip(names, values, strict=True):
            if not -1.0 - _ROUNDING <= value <= 1.0 + _ROUNDING:
                raise ValueError(f"action: {name} is {value}, and not a number between -1 and 1")
        return values

    def close(self) -> None:
        """Ends the episode."""
        self._simulation = self._port = None

    def _observation(self, did: Step, utilization: float) -> Any:
        assert self._port is not None
        offered = did.sent_packets + did.dropped_packets
        numbers = [
            float(self._port.backlog),
            utilization,
            did.sojourn_mean * 1e3,
            did.sojourn_max * 1e3,
            did.dropped_packets / offered if offered else 0.0,
        ]
        if self._gauges:
            gauges = self._port.gauges
            numbers += [gauges[name] for name in self._gauges]
        return np.array(numbers, dtype=np.float32)


class Parameter:
    """A parameter that an agent sets: its name and its ends."""

    def __init__(self, name: str, low: str | float, high: str | float) -> None:
        self.name = name
        (self._low, low_unit), (self._high, high_unit) = _quantity(name, low), _quantity(name, high)
        if low_unit != high_unit:
            raise ValueError(f"{name}: {low!r} and {high!r} have different units")
        if not self._low < self._high:
            raise ValueError(f"{name}: {low!r} is not below {high!r}")
        self._unit = low_unit
        self.unit = 1.0
        """The value of one unit in basic units: seconds, bit/s, bytes, packets."""
        self._whole = (isinstance(low, int) and isinstance(high, int)) or low_unit in ("p", "b")
        self._log = self._low > 0

    def value(self, x: float) -> str:
        """The value at a number between -1 and 1, as a text."""
        return self.text(self.number(x))

    def text(self, number: float) -> str:
        """A number of its unit as a text."""
        return f"{number}{self._unit}"

    def number(self, x: float) -> float:
        """The value at a number between -1 and 1, in its unit."""
        share = (min(max(x, -1.0), 1.0) + 1) / 2
        if self._log:
            value = self._low * math.exp(share * math.log(self._high / self._low))
        else:
            value = self._low + share * (self._high - self._low)
        # Three digits are more than a queue can tell apart.
        return round(value) if self._whole else float(f"{value:.3g}")


def _parameters(discipline: str, actions: Mapping[str, tuple[str | float, str | float]]) -> list[Parameter]:
    """The parameters, each of which the discipline has, in the units of its numbers."""
    found = [Parameter(name, *ends) for name, ends in actions.items()]
    for each in found:
        # A number without a unit has that of tc. Both ends are checked.
        try:
            highest = _giveway.Actions(f"{discipline} {each.name} {each.value(1.0)}", [each.name]).values[0]
        except ValueError as error:
            raise ValueError(f"actions: {each.name} of {discipline}: {error}") from None
        each.unit = highest / each.number(1.0) if each.number(1.0) else 1.0
    return found


def _quantity(name: str, value: str | float) -> tuple[float, str]:
    """A number and its unit."""
    if isinstance(value, str):
        number = value.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ%/")
        try:
            return float(number), value.strip()[len(number) :].strip()
        except ValueError:
            raise ValueError(f'{name}: {value!r} is not a quantity: write for example "5 ms"') from None
    return float(value), ""


def make_vec(number: int, *arguments: Any, **options: Any) -> Any:
    """A vector environment of ``number`` environments in this process, with the arguments of :class:`QueueEnv`."""

    def make() -> QueueEnv:
        return QueueEnv(*arguments, **options)

    return gymnasium.vector.SyncVectorEnv([make] * number)


gymnasium.register(id="giveway/Queue-v0", entry_point="giveway.gym:QueueEnv")
