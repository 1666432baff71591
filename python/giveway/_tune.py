"""Tuning: the values of keys with the best metric, by Optuna.

Candidates come from Optuna's sampler in rounds of a fixed size, so a call gives the same result with any number of
jobs. With one objective, a candidate races against the best so far seed by seed: it ends once a paired t-test finds it
worse (the idea of F-Race: Birattari and others, GECCO 2002). Its first run ends after a quarter of the measured time if
it is then in the worst quarter of those before. So good candidates get all seeds, and hopeless ones a part of a run.
The winner is compared with the scenario as it is, on seeds and scenarios that the search has not seen.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from . import _giveway
from ._cluster import ClusterLost, Engine, Spec, Task
from ._discipline import DisciplineSource, Own, own
from ._engines import engine_of
from ._errors import GivewayError, ScenarioError
from ._extras import need
from ._numbers import plain, whole_number
from ._progress import Progress, shown
from ._run import Estimate, Run, jobs_of, run
from ._scenario import Scenario, Source, checked, warn

if TYPE_CHECKING:
    from types import ModuleType

    import matplotlib.figure
    from distributed import Client

#: Candidates of a round. It does not depend on the jobs, so that results do not.
_ROUND = 8
#: A candidate that is worse than the best at this level of significance ends.
_WORSE = 0.1
#: Seeds before the first test.
_FIRST = 3
#: The share of the measured time after which the first run of a candidate is judged, and the number of
#: earlier candidates that this needs.
_PART = 0.25
_BEFORE = 8
#: The first seed of those that confirm the winner: the search never uses it.
_FRESH = 1_000_001


@dataclass(frozen=True)
class Candidate:
    """A setting that was tried."""

    values: dict[str, str]
    """The value of each key."""
    metrics: dict[str, float]
    """The mean of each objective over its seeds."""
    seeds: int
    """The number of seeds that it ran; 0 if its first run ended after a part, which its metrics then describe."""
    ended_early: bool
    """True if it was worse than others before it had all seeds."""


@dataclass(frozen=True)
class Confirmation:
    """The winner and the scenario as it is, on seeds that the search has not seen."""

    scenario: str
    """The name of the scenario."""
    metric: str
    before: Estimate
    """The scenario as it is."""
    after: Estimate
    """With the values of the winner."""
    change: float | None
    """The mean difference, paired by seed."""
    ci95: float | None
    """Half the width of its 95 % confidence interval."""
    p_value: float | None
    """The probability of such a difference by chance."""

    def __str__(self) -> str:
        if self.change is None:
            return f"{self.scenario}: {self.metric} was not measured"
        share = f" ({100 * self.change / self.before.mean:+.0f} %)" if self.before.mean else ""
        sure = "" if self.ci95 is not None and abs(self.change) > self.ci95 else ", not measurably different"
        return f"{self.scenario}: {self.metric} {self.after!r} instead of {self.before!r}{share}{sure}"


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    discipline: str
    objectives: list[str]
    best: dict[str, str]
    """The value of each key at the winner. With several objectives, the member of the front with the smallest sum of
    ranks."""
    front: list[Candidate]
    """Candidates that no other one beats in all objectives; with one objective, the winner."""
    candidates: list[Candidate]
    """All candidates, in the order in which they were tried."""
    confirmed: list[Confirmation]
    """The winner on fresh seeds, for each objective and scenario."""
    failed: list[str] = field(default_factory=list[str])
    """The reasons of candidates that failed."""

    def __str__(self) -> str:
        values = ", ".join(f"{key} {value}" for key, value in self.best.items())
        lines = [f"{self.discipline}: {values} ({len(self.candidates)} candidates)"]
        return "\n".join([*lines, *(f"  {each}" for each in self.confirmed)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def figure(self) -> matplotlib.figure.Figure:
        """The candidates and the front (two objectives), or the best value by the number of candidates (one)."""
        pyplot = need("matplotlib.pyplot", "figure")
        from . import pictures

        with pictures.style():
            drawn, axes = pyplot.subplots()
            if len(self.objectives) >= 2:
                first, second = self.objectives[:2]
                whole = [each for each in self.candidates if first in each.metrics and second in each.metrics]
                axes.scatter([each.metrics[first] for each in whole], [each.metrics[second] for each in whole], s=8,
                             color="0.6", label="candidates")  # fmt: skip
                front = sorted(self.front, key=lambda each: each.metrics[first])
                axes.plot([each.metrics[first] for each in front], [each.metrics[second] for each in front], marker="o",
                          markersize=3, label="front")  # fmt: skip
                axes.set_xlabel(first)
                axes.set_ylabel(second)
            else:
                metric = self.objectives[0]
                high = _giveway.higher_is_better(metric)
                best: list[float] = []
                for each in self.candidates:
                    value = each.metrics.get(metric)
                    if value is None or each.ended_early:
                        best.append(best[-1] if best else float("nan"))
                    else:
                        best.append(value if not best else max(best[-1], value) if high else min(best[-1], value))
                axes.plot(range(1, len(best) + 1), best)
                axes.set_xlabel("candidates")
                axes.set_ylabel(f"best {metric}")
            if axes.get_legend_handles_labels()[0]:
                axes.legend()
            return drawn


def tune(
    scenario: Source,
    over: Mapping[str, Any],
    *,
    objective: str | Sequence[str],
    discipline: DisciplineSource | None = None,
    trials: int = 100,
    seeds: int = 10,
    confirm: int = 20,
    confirm_on: Sequence[Source] = (),
    prune: bool = True,
    changes: Mapping[str, Any] | None = None,
    short: bool = False,
    sampler_seed: int = 1,
    jobs: int | None = None,
    client: Client | ModuleType | None = None,
    progress: Progress = None,
) -> Tuned:
    """Finds the values of keys with the best metric.

    Args:
        scenario: As in :func:`run`.
        over: The keys, each with its range: ``(5, 200)`` for whole numbers, ``("5p", "200p")`` with a unit, a list for
            a choice, or a text as in :func:`sweep` (``"log(5p,200p)"``). ``"qdisc.NAME"`` is a parameter of the
            discipline.
        objective: A metric such as ``"fct_p95_s"``, or several. Its definition says which direction is better: low
            for times and losses, high for rates, completed transfers and fairness.
        discipline: The discipline; by default the only one of the scenario. Of a class, the parameters are arguments of
            its constructor with a default.
        trials: The number of candidates.
        seeds: The maximum number of seeds of a candidate; one that is measurably worse than the best ends earlier.
        confirm: The number of fresh seeds on which the winner is compared with the scenario as it is.
        confirm_on: Further scenarios for this comparison.
        prune: With one objective, end the first run of a candidate after a quarter of the measured time if it is then
            in the worst quarter of the candidates of earlier rounds. Switch it off if the end of a run matters most.
        changes: Keys of the scenario to change first.
        short: Use the ``[short]`` settings of the scenarios.
        sampler_seed: The seed of the search.
        jobs: Runs at a time; by default one for each processor, or one of a class. With ``jobs``, a class runs in as
            many processes. The result does not depend on it.
        client: A cluster, as in :func:`sweep`. The result is the same there.
        progress: As in :func:`run`.

    Raises:
        MissingExtra: Optuna is not installed.
        ValueError: A range is wrong, or the objective is not a metric, or one without a better direction.
        GivewayError: No candidate could run.
    """
    objectives = [objective] if isinstance(objective, str) else list(objective)
    if not objectives:
        raise ValueError("objective: give at least one metric")
    base, mine = _base(scenario, discipline, changes, short), _mine(discipline)
    name = mine[0].name if mine else base.disciplines[0]
    axes = {key: _axis(key, values) for key, values in over.items()}
    if not axes:
        raise ValueError('over: give at least one key, as in {"qdisc.threshold": (5, 200)}')
    trials, seeds, confirm = (
        whole_number("trials", trials, 1),
        whole_number("seeds", seeds, 1),
        whole_number("confirm", confirm),
    )
    sampler_seed = whole_number("sampler_seed", sampler_seed)
    # The stand-in for a discipline in Python never runs.
    warn([] if mine else base.warnings)
    with contextlib.ExitStack() as stack:
        engine = None if client is None else engine_of(client)
        workers = jobs_of(jobs)
        if mine and engine is None and workers > 1:
            from ._processes import Local, Processes

            engine = Local(stack.enter_context(Processes(workers)), None)
        here = client is None
        search = _Search(base, axes, objectives, seeds, sampler_seed, prune, _Place(engine, mine, here))
        if not workers:
            most = 1 if mine else _giveway.processors()
            workers = most if engine is None else min(_ROUND, engine.threads())
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        watch = stack.enter_context(shown(progress, f"tuning {name}"))
        try:
            while len(search.tried) < trials:
                search.round(pool, min(_ROUND, trials - len(search.tried)))
                if watch is not None:
                    watch(len(search.tried) / trials)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        winner, front = search.winner()
        checked_on = [base, *(_base(each, discipline, changes, short) for each in confirm_on)]
        confirmed = [
            each for one in checked_on for each in _confirm(one, winner.values, objectives, confirm, pool, search.place)
        ]  # fmt: skip
    return Tuned(
        name, objectives, winner.values, front, [each for each in search.tried if each is not None],
        confirmed, search.failed,
    )  # fmt: skip


@dataclass(frozen=True)
class TunedComparison:
    """Disciplines, each at its own best."""

    tuned: dict[str, Tuned]
    """The search of each discipline."""
    run: Run
    """All disciplines as they are and at their best, on seeds that no search has seen."""

    def __str__(self) -> str:
        return "\n".join([*(str(each) for each in self.tuned.values()), "", str(self.run)])

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.tuned.values()) + self.run._repr_html_()


def compare_tuned(
    scenario: Source,
    spaces: Mapping[str, Mapping[str, Any]],
    *,
    objective: str | Sequence[str],
    trials: int = 100,
    seeds: int = 10,
    confirm: int = 20,
    changes: Mapping[str, Any] | None = None,
    short: bool = False,
    sampler_seed: int = 1,
    jobs: int | None = None,
    progress: Progress = None,
) -> TunedComparison:
    """Compares disciplines, each at its own best, since a comparison at defaults is one of defaults.

    Args:
        scenario: As in :func:`run`.
        spaces: The disciplines, each with its parameters and their ranges:
            ``{"efd limit 300p": {"threshold": "log(5p,200p)"}, "codel": {"target": "lin(2ms,50ms)"}}``.
        objective: As in :func:`tune`, the same for each discipline.
        trials: The number of candidates of each discipline: the same budget.
        seeds: As in :func:`tune`.
        confirm: The number of fresh seeds of the comparison.
        changes: Keys of the scenario to change first.
        short: Use the ``[short]`` settings of the scenario.
        sampler_seed: The seed of the searches.
        jobs: Runs at a time.
        progress: As in :func:`run`.
    """
    if not spaces:
        raise ValueError('spaces: give at least one discipline, as in {"efd": {"threshold": (5, 200)}}')
    confirm = whole_number("confirm", confirm, 1)
    tuned: dict[str, Tuned] = {}
    compared: list[str] = []
    for discipline, space in spaces.items():
        over = {f"qdisc.{key}": values for key, values in space.items()}
        found = tune(
            scenario, over, objective=objective, discipline=discipline, trials=trials, seeds=seeds, confirm=0,
            changes=changes, short=short, sampler_seed=sampler_seed, jobs=jobs, progress=progress,
        )  # fmt: skip
        tuned[discipline] = found
        at_its_best = _base(scenario, discipline, changes, short, found.best).disciplines[0]
        compared += [each for each in (discipline, at_its_best) if each not in compared]
    fresh = list(range(_FRESH, _FRESH + confirm))
    final = run(scenario, compared, fresh, changes=changes, short=short, jobs=jobs, progress=progress)
    return TunedComparison(tuned, final)


#: A candidate, its values by objective and seed, and its objective after a part of its first run.
_Answer: TypeAlias = tuple[Candidate, list[list[float | None]], float | None]


class _Search:
    """The candidates so far."""

    def __init__(
        self,
        base: Scenario,
        axes: dict[str, str],
        objectives: list[str],
        seeds: int,
        sampler_seed: int,
        prune: bool,
        place: _Place,
    ) -> None:
        optuna = need("optuna", "tuning")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.base = base
        self.axes = axes
        self.place = place
        self.objectives = objectives
        self.seeds = seeds
        self.high = [_giveway.higher_is_better(metric) for metric in objectives]
        directions = ["maximize" if high else "minimize" for high in self.high]
        sampler = optuna.samplers.TPESampler(seed=sampler_seed, constant_liar=True)
        self.study: Any = optuna.create_study(directions=directions, sampler=sampler)
        self.pruned: Any = optuna.trial.TrialState.PRUNED
        self.fail: Any = optuna.trial.TrialState.FAIL
        self.tried: list[Candidate | None] = []
        self.per_seed: list[list[list[float | None]]] = []
        self.failed: list[str] = []
        self.known: dict[tuple[str, ...], _Answer] = {}
        self.best: int | None = None
        self.part = _part(base) if prune and len(objectives) == 1 else None
        #: The objective after a part of the first run, of the candidates of earlier rounds.
        self.parts: list[float] = []

    def round(self, pool: ThreadPoolExecutor, size: int) -> None:
        """Asks for candidates, runs them, and reports them to the sampler in order."""
        asked = [self.study.ask() for _ in range(size)]
        settings = [{key: self._suggested(trial, key, axis) for key, axis in self.axes.items()} for trial in asked]
        best = None if self.best is None else self.per_seed[self.best][0]
        answers = list(pool.map(self._evaluate, settings, [best] * size, [self._bar()] * size))
        for trial, values, answer in zip(asked, settings, answers, strict=True):
            if isinstance(answer, str):
                self.failed.append(answer)
                self.tried.append(None)
                self.per_seed.append([])
                self.study.tell(trial, state=self.fail)
                continue
            candidate, found, part = answer
            if part is not None and tuple(values.values()) not in self.known:
                self.parts.append(part)
            self.known[tuple(values.values())] = answer
            self.tried.append(candidate)
            self.per_seed.append(found)
            if candidate.ended_early:
                # The sampler ranks candidates that ended by the step at which they did.
                trial.report(candidate.metrics[self.objectives[0]], candidate.seeds)
                self.study.tell(trial, state=self.pruned)
                continue
            self.study.tell(trial, [candidate.metrics[metric] for metric in self.objectives])
            if self.best is None or self._better(candidate, self.tried[self.best]):
                self.best = len(self.tried) - 1

    def _better(self, one: Candidate, other: Candidate | None) -> bool:
        assert other is not None
        mine, theirs = (each.metrics[self.objectives[0]] for each in (one, other))
        return mine > theirs if self.high[0] else mine < theirs

    def _suggested(self, trial: Any, key: str, axis: str) -> str:
        levels = _giveway.axis_levels(axis)
        if levels is None:
            return _giveway.axis_value(axis, trial.suggest_float(key, 0.0, 1.0))
        if _giveway.axis_is_numeric(axis):
            number: int = trial.suggest_int(key, 0, len(levels) - 1)
            return levels[number]
        return str(trial.suggest_categorical(key, levels))

    def _bar(self) -> float | None:
        """The objective after a part of the first run from which on a candidate ends; None if it is not known yet."""
        if len(self.parts) < _BEFORE:
            return None
        ranked = sorted(self.parts, reverse=self.high[0])
        return ranked[len(ranked) * 3 // 4]

    def _evaluate(self, values: dict[str, str], best: list[float | None] | None, bar: float | None) -> _Answer | str:
        """Runs a candidate seed by seed. Returns it with its values by seed, or the reason of its failure."""
        known = self.known.get(tuple(values.values()))
        if known is not None:
            return known
        found: list[list[float | None]] = [[] for _ in self.objectives]
        ended = False
        part: float | None = None
        try:
            if self.part is not None:
                part = _measure(_plan(self.part, values, [1], self.place), 0).get(self.objectives[0])
                if part is not None and bar is not None and (part < bar if self.high[0] else part > bar):
                    return Candidate(values, {self.objectives[0]: part}, 0, True), found, part
            plan = _plan(self.base, values, list(range(1, self.seeds + 1)), self.place)
            for seed in range(self.seeds):
                metrics = _measure(plan, seed)
                for place, metric in enumerate(self.objectives):
                    found[place].append(metrics.get(metric))
                if len(self.objectives) == 1 and best is not None and _FIRST <= seed + 1 < self.seeds:
                    ended = self._is_worse(best[: seed + 1], found[0])
                    if ended:
                        break
        except ClusterLost:
            raise
        except GivewayError as error:
            return str(error)
        means: dict[str, float] = {}
        for metric, per_seed in zip(self.objectives, found, strict=True):
            measured = [value for value in per_seed if value is not None]
            if not measured:
                return f"{' '.join(values.values())}: {metric} was not measured"
            means[metric] = sum(measured) / len(measured)
        return Candidate(values, means, len(found[0]), ended), found, part

    def _is_worse(self, best: Sequence[float | None], mine: Sequence[float | None]) -> bool:
        paired = _giveway.paired(list(best), list(mine))
        if paired is None:
            return False
        change, _, p_value = paired
        return p_value is not None and p_value < _WORSE and (change < 0 if self.high[0] else change > 0)

    def winner(self) -> tuple[Candidate, list[Candidate]]:
        """The winner and the front."""
        whole = [each for each in self.tried if each is not None and not each.ended_early]
        if not whole:
            raise GivewayError("no candidate could run: " + "; ".join(self.failed[:3]))
        if len(self.objectives) == 1:
            assert self.best is not None
            found = self.tried[self.best]
            assert found is not None
            return found, [found]

        def at_least(one: Candidate, other: Candidate) -> list[bool]:
            pairs = zip(self.objectives, self.high, strict=True)
            return [
                one.metrics[metric] >= other.metrics[metric] if high else one.metrics[metric] <= other.metrics[metric]
                for metric, high in pairs
            ]

        def beats(one: Candidate, other: Candidate) -> bool:
            return all(at_least(one, other)) and one.metrics != other.metrics

        unique = list({tuple(each.values.values()): each for each in whole}.values())
        front = [each for each in unique if not any(beats(other, each) for other in unique)]

        def rank(each: Candidate) -> int:
            ranks = 0
            for metric, high in zip(self.objectives, self.high, strict=True):
                ordered = sorted((other.metrics[metric] for other in front), reverse=high)
                ranks += ordered.index(each.metrics[metric])
            return ranks

        return min(front, key=rank), front


def _base(
    scenario: Source,
    discipline: DisciplineSource | None,
    changes: Mapping[str, Any] | None,
    short: bool,
    values: Mapping[str, str] | None = None,
) -> Scenario:
    """The scenario with one discipline."""
    replaced = {} if discipline is None else {"disciplines": [discipline if isinstance(discipline, str) else "fifo"]}
    read = Scenario(scenario, changes={**checked(changes), **replaced})
    if len(read.disciplines) != 1:
        raise ValueError(f"discipline: give one of {', '.join(read.disciplines)}")
    if short:
        read = read.short()
    if values is None:
        return read
    return Scenario._of(
        _giveway.Sweep(read._read, [f"{key}={value}" for key, value in values.items()], "grid", None).at(0)
    )


def _mine(discipline: DisciplineSource | None) -> list[Own]:
    """A discipline in Python."""
    return [] if discipline is None or isinstance(discipline, str) else [own(discipline, 0)]


def _part(base: Scenario) -> Scenario | None:
    """The scenario until a part of the measured time; None if it has no duration in seconds."""
    if base.backend != "network":
        return None
    try:
        return Scenario(base, changes={"duration": f"{base.warmup + _PART * (base.duration - base.warmup)} s"})
    except ScenarioError:
        # Something in it is later, such as the start of a source.
        return None


def _axis(key: str, values: Any) -> str:
    """The axis of a key."""
    values = plain(values)
    if isinstance(values, tuple):
        pair = [plain(each) for each in cast("tuple[Any, ...]", values)]
        if len(pair) != 2:
            raise ValueError(f"over[{key!r}]: a range has two ends, as in (5, 200)")
        low, high = pair
        if isinstance(low, int) and isinstance(high, int):
            return f"{key}={low}..{high}"
        return f"{key}=lin({low},{high})"
    if isinstance(values, str):
        return f"{key}={values}"
    if isinstance(values, Sequence):
        return f"{key}={','.join(str(plain(each)) for each in cast('Sequence[Any]', values))}"
    raise TypeError(f"over[{key!r}]: {values!r} is not a range, a list or a text")


@dataclass(frozen=True)
class _Place:
    """Where trials run: here, in processes, or on a cluster; and the discipline in Python."""

    engine: Engine | None
    mine: list[Own]
    here: bool
    """True if workers are on this machine."""


@dataclass(frozen=True)
class _Point:
    """A point of the search with its seeds."""

    plan: _giveway.Sweep
    engine: Engine | None = None
    spec: Spec | None = None


def _plan(base: Scenario, values: Mapping[str, str], seeds: list[int], place: _Place) -> _Point:
    """The plan of one point."""
    axes = [f"{key}={value}" for key, value in values.items()]
    seeded, mine = base.with_seeds(seeds), (place.mine, bool(place.mine))
    plan = _giveway.Sweep(seeded._read, axes, "grid", None, mine)
    if place.engine is None:
        return _Point(plan)
    spec = Spec.of(seeded, axes, "grid", None, plan.version, None, mine, place.here)
    return _Point(plan, place.engine, spec)


def _measure(point: _Point, seed: int) -> dict[str, float | None]:
    """The metrics of the point with a seed."""
    task: Task = (0, seed, [0])
    if point.engine is None or point.spec is None:
        rows = point.plan.work([task])
    else:
        rows, _ = point.engine.call(point.spec, [task])
    answer: dict[str, Any] = json.loads(rows)
    if answer["failed"]:
        raise GivewayError(str(answer["failed"][0]["result"]))
    row = answer["rows"][0]["result"]
    return dict(zip(answer["names"][row["names"]], row["values"], strict=True))


def _confirm(
    base: Scenario,
    values: Mapping[str, str],
    objectives: list[str],
    count: int,
    pool: ThreadPoolExecutor,
    place: _Place,
) -> list[Confirmation]:
    """The winner and the scenario as it is, on fresh seeds."""
    if count == 0:
        return []
    fresh = list(range(_FRESH, _FRESH + count))
    plan = _plan(base, values, fresh, place)
    # A title does not change the runs.
    as_it_is = _plan(base, {"title": "as it is"}, fresh, place)
    pairs = [list(pool.map(_measure, [each] * count, range(count))) for each in (as_it_is, plan)]
    confirmed: list[Confirmation] = []
    for metric in objectives:
        before, after = ([each.get(metric) for each in runs] for runs in pairs)
        paired = _giveway.paired(before, after)
        change, ci95, p_value = paired if paired is not None else (None, None, None)
        name = base.title or base.name
        confirmed.append(Confirmation(name, metric, _estimate(before), _estimate(after), change, ci95, p_value))
    return confirmed


def _estimate(per_seed: list[float | None]) -> Estimate:
    mean, ci95 = _giveway.estimate(per_seed)
    return Estimate(mean, ci95, per_seed)
