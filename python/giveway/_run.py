"""Runs of a scenario, and their results."""

from __future__ import annotations

import datetime
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, as_completed
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from . import _giveway, _html
from ._discipline import DisciplineSource, Own, own
from ._errors import Interrupted
from ._numbers import whole_number
from ._pending import Pending, finish
from ._progress import Progress, shown
from ._scenario import Scenario, Source, checked, warn
from ._table import Table
from ._traffic import OwnTraffic, TrafficSources, own_traffic

if TYPE_CHECKING:
    import altair
    import matplotlib.figure

#: Width of a table as text, characters.
_WIDTH = 120


class Estimate:
    """A metric of a discipline over several seeds."""

    __slots__ = ("ci95", "mean", "per_seed")

    def __init__(self, mean: float | None, ci95: float | None, per_seed: Sequence[float | None]) -> None:
        self.mean = mean
        """Mean over the seeds that have the metric; None if none has."""
        self.ci95 = ci95
        """Half the width of the 95 % confidence interval of the mean, by Student's t; None below two values."""
        self.per_seed = list(per_seed)
        """The value of each seed, in the order of the seeds."""

    def __float__(self) -> float:
        return float("nan") if self.mean is None else self.mean

    def __format__(self, spec: str) -> str:
        """The mean, as in ``f"{estimate:.3f}"``."""
        return format(float(self), spec) if spec else str(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimate) and (self.mean, self.ci95, self.per_seed) == (
            other.mean,
            other.ci95,
            other.per_seed,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if self.mean is None:
            return "-"
        return f"{self.mean:.6g}" if self.ci95 is None else f"{self.mean:.6g} ± {self.ci95:.2g}"


class Run:
    """The results of a scenario's runs: each discipline with each seed.

    Printing it gives the table of the command line. Tables are :class:`Table`; libraries of data frames take them over.
    It can be pickled and sent to other processes. One with a folder is opened there, from the same path.
    """

    def __init__(self, results: _giveway.Results) -> None:
        self._results = results

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __deepcopy__(self, memo: object) -> Self:
        # Nothing changes results.
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        state = dict(self.__dict__)
        del state["_results"]
        state.pop("_numbers", None)
        # A temporary folder does not outlive this process.
        temporary = state.pop("_keep", None) is not None
        folder = self.folder
        if folder is not None and not temporary:
            return _unpacked, (type(self), str(folder.absolute()), state)
        scenario, files = self._results.packed()
        return _unpacked, (type(self), (scenario, self._results.name, files), state)

    # --- tables

    @property
    def flows(self) -> Table:
        """A row for each flow: a transfer, a group of transfers such as a page, or a stream of datagrams."""
        return self.table("flows")

    @property
    def queue(self) -> Table:
        """A row for each sample of a measured port's backlog."""
        return self.table("queue")

    @property
    def gauges(self) -> Table:
        """A row for each gauge of a discipline at each sample."""
        return self.table("gauges")

    @property
    def sojourn(self) -> Table:
        """Distributions of sojourn times at measured ports."""
        return self.table("sojourn")

    @property
    def shares(self) -> Table:
        """Bytes that each measured port sent for each source, over time."""
        return self.table("shares")

    @property
    def delays(self) -> Table:
        """Delays of each source over time."""
        return self.table("delays")

    @property
    def links(self) -> Table:
        """A row for each port: arrivals, departures, and drops by reason."""
        return self.table("links")

    @property
    def senders(self) -> Table:
        """A row for each sample of a TCP sender, if the scenario sets ``record.senders``."""
        return self.table("senders")

    @property
    def metrics(self) -> Table:
        """A row for each metric of each run: the long form of `summary`."""
        return self.table("metrics")

    @property
    def summary(self) -> Table:
        """A row for each run, with a column for each parameter and each metric."""
        return self.table("summary")

    def table(self, name: str) -> Table:
        """A table by its name: ``"flows"``, ``"queue"``, ... (`tables` lists them).

        Raises:
            KeyError: There is no such table, or the scenario does not turn it on.
        """
        return Table(name, self._results.table(name))

    @staticmethod
    def tables() -> list[str]:
        """The names of all tables."""
        return _giveway.Results.tables()

    # --- numbers

    @property
    def disciplines(self) -> list[str]:
        """The disciplines with a finished run, in the order of the scenario."""
        return self._results.disciplines

    @property
    def seeds(self) -> list[int]:
        """The seeds of the finished runs, in order."""
        return sorted({seed for _, seed in self._results.runs})

    @property
    def ports(self) -> list[str]:
        """The measured ports; the first is the bottleneck of the tables."""
        return self._results.ports

    @cached_property
    def _numbers(self) -> dict[str, Any]:
        return json.loads(self._results.json())

    def estimate(self, metric: str, discipline: str | None = None) -> Estimate:
        """A metric of a discipline over the seeds: mean, 95 % confidence interval and the value of each seed.

        Args:
            metric: A name of the page "Metrics" of the book, such as ``"fct_p95_s"``.
            discipline: A name of `disciplines`, or its beginning if only one begins so; by default the only discipline.
        """
        row = self._numbers["results"][self._index(discipline)]
        found = row["metrics"].get(metric)
        if found is None:
            known = ", ".join(name for name in row["metrics"] if not name.startswith(("src.", "at.", "class.")))
            raise KeyError(f"these runs have no metric {metric!r}; they have {known}")
        return Estimate(found["mean"], found["ci95"], found["per_seed"])

    def _index(self, discipline: str | None) -> int:
        names = self.disciplines
        if discipline is None:
            if len(names) == 1:
                return 0
            raise ValueError(f"give one of the disciplines {', '.join(names)}")
        if discipline in names:
            return names.index(discipline)
        near = [place for place, name in enumerate(names) if name.startswith(discipline)]
        if len(near) == 1:
            return near[0]
        which = "no discipline is" if not near else "several disciplines begin with"
        raise KeyError(f"{which} {discipline!r}; the disciplines are {', '.join(names)}")

    @property
    def findings(self) -> list[str]:
        """Sentences about the differences between the disciplines."""
        return self._results.findings

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all results: equal runs have equal fingerprints, on every machine."""
        return self._results.fingerprint

    @property
    def events(self) -> int:
        """The number of simulated events."""
        return self._results.events

    @property
    def complete(self) -> bool:
        """True if no run is missing, because of an interruption or a failure."""
        return len(self._results.runs) == self._results.planned

    @property
    def scenario(self) -> str:
        """The text of the scenario."""
        return self._results.scenario

    @property
    def folder(self) -> Path | None:
        """The run folder; None if the results are in memory."""
        folder = self._results.folder
        return None if folder is None else Path(folder)

    # --- pages, pictures, files

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report: a page of HTML with tables and charts, which needs no other file. ``path`` writes it to a
        file."""
        page = self._results.report()
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> Run:
        """Writes a run folder with Parquet files and the report. Returns its results.

        Args:
            folder: A new or empty folder, or one with results of the same scenario.
            force: Replace what is there.
        """
        finish()
        self._results.save(os.fspath(folder), force)
        return open(folder)

    def chart(self, what: str | None = None, **options: Any) -> altair.TopLevelMixin:
        """An interactive chart (Altair). `figure` draws the same pictures for papers.

        Args:
            what: A metric such as ``"fct_p95_s"``, or a picture: ``"queue"`` (backlog over time), ``"sojourn"``
                (distribution of sojourn times), ``"fct"`` (distribution of flow completion times), ``"shares"``
                (throughput of each source over time), ``"delays"`` (delay of each source over time). By default the
                main metric of the scenario.
            options: ``seed``, ``port``, ``source``: one of several; see :func:`giveway.pictures.picture`.
        """
        from . import pictures

        return pictures.chart(pictures.picture(self, what, **options))

    def figure(
        self, what: str | None = None, *, columns: int = 1, height: float | None = None, **options: Any
    ) -> matplotlib.figure.Figure:
        """A figure for a paper (matplotlib), in the style ``giveway.style``.

        Args:
            what: As in `chart`.
            columns: 1 or 2: the width of the figure in columns of a paper.
            height: Inches; by default 0.62 of the width of a column.
            options: As in `chart`.
        """
        from . import pictures

        return pictures.figure(pictures.picture(self, what, **options), columns=columns, height=height)

    def to_flent(self, path: str | os.PathLike[str], discipline: str | None = None, *, seed: int | None = None) -> None:
        """Writes the run of a discipline as a data file of flent (``.flent.gz``): see :mod:`giveway.flent`."""
        from . import flent

        flent.write(self, path, discipline, seed=seed)

    def __str__(self) -> str:
        return _giveway.harmless(self._results.text(_WIDTH))

    def __repr__(self) -> str:
        runs = len(self._results.runs)
        missing = self._results.planned - runs
        rest = f", {missing} missing" if missing else ""
        title = self._results.title or self._results.name
        return f"<giveway.Run {title!r}: {', '.join(self.disciplines)}; {runs} runs{rest}>"

    def _repr_html_(self) -> str:
        groups = json.loads(self._results.groups())
        names = [name for _, name, _ in _giveway.looks(self.disciplines)]
        title = f"<h4>{escape(self._results.title or self._results.name)}</h4>"
        return title + _html.table(names, groups) + _html.bars(self) + _html.sentences(self.findings)


def run(
    scenario: Source,
    disciplines: Sequence[DisciplineSource] | None = None,
    seeds: int | Sequence[int] | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    short: bool = False,
    traffic: TrafficSources | None = None,
    jobs: int | None = None,
    threads: int = 1,
    progress: Progress = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Run:
    """Runs a scenario: each discipline with each seed, on the same traffic.

    The same scenario and seeds give the same results, bit for bit, on every machine and with any number of jobs.

    Args:
        scenario: The path of a TOML file, a dict with its keys, a :class:`Network` or a :class:`Scenario`.
        disciplines: What to compare, in place of the scenario's: names and parameters as in ``tc``
            (``"fq_codel limit 1000p"``), classes (:class:`Discipline`), or ranks (:func:`rank`). For a switch,
            arbiters.
        seeds: The number of seeds (1 to that number), or a list of seeds; by default the seeds of the scenario.
        changes: Keys of the scenario to change, as in ``{"link.0.rate": "5mbit"}``.
        short: Run a quick check, with the ``[short]`` settings of the scenario.
        traffic: Sources of traffic in Python (:class:`TrafficSource`), by the name of the traffic of the scenario whose
            source each replaces, as in ``{"call": MyCall}``.
        jobs: Runs at a time; by default one for each processor. By default runs with a discipline or a source in Python
            follow each other in this process. With ``jobs`` they run in as many processes.
        threads: Threads of each run of a large network, with the same results.
        progress: True, False, or a function that is called with the share that is done; by default shown on a
            terminal and in a notebook.
        out: A folder for the results. Runs that it already contains are not repeated.
        force: Replace the contents of ``out``.

    Raises:
        ScenarioError: The scenario has mistakes.
        DisciplineError: A discipline in Python failed, or broke the contract.
        TrafficError: A source of traffic in Python did.
        Interrupted: Ctrl-C; its ``run`` contains the finished runs.
    """
    guests = own_traffic(traffic)
    written: list[str] | None = None
    mine: list[Own] = []
    if disciplines is not None:
        if isinstance(disciplines, str):
            raise TypeError(f'disciplines is a list: write disciplines=["{disciplines}"]')
        written = [each for each in disciplines if isinstance(each, str)]
        mine = [own(each, place) for place, each in enumerate(disciplines) if not isinstance(each, str)]
        if not written and not mine:
            raise ValueError("disciplines: give at least one")
    if (mine or guests) and out is not None:
        raise ValueError(
            "a discipline or a source in Python is not resumed from a folder: leave out `out`, and save the results: "
            "run.save(folder)"
        )

    def comparing(names: list[str] | None) -> Scenario:
        replaced = {} if names is None else {"disciplines": names}
        read = Scenario(scenario, changes={**checked(changes), **replaced})
        if short:
            read = read.short()
        return read if seeds is None else read.with_seeds(seeds)

    # Disciplines in Python run in the place of one that is built in.
    base = comparing(["fifo"]) if mine else None
    if base is not None and base.backend == "switch":
        base = comparing(["islip"])
    built_in = comparing(written) if written or not mine else None
    read = built_in or base
    assert read is not None
    if read.backend == "live":
        raise ValueError(
            'this scenario is for a test bed: giveway.testbed runs it, and changes={"backend": "network"} simulates it'
        )
    if built_in is not None:
        warn(built_in.warnings)
    unique([*(built_in.disciplines if built_in else []), *(each.name for each in mine)])
    finish()
    with shown(progress, read.title or read.name) as watch:
        apart = None
        if (mine or guests) and jobs_of(jobs) > 1:
            contenders: list[tuple[Scenario, Own | None]] = []
            if guests and built_in is not None:
                contenders.append((built_in, None))
            contenders += [(base, each) for each in mine if base is not None]
            apart = _apart(contenders, guests, jobs_of(jobs), watch)
        results, messages, stopped, later = _giveway.run(
            built_in and built_in._read,
            base and base._read,
            (mine, guests),
            (jobs_of(jobs), whole_number("threads", threads, 1, 2**16 - 1, "the number of threads of a run")),
            watch,
            (None if out is None else os.fspath(out), force),
            provenance("run"),
            apart,
        )
    warn(messages)
    if stopped is not None:
        raise interrupted(stopped, Pending(later, Run) if later else results and Run(results))
    assert results is not None
    return Run(results)


def _apart(
    contenders: list[tuple[Scenario, Own | None]],
    traffic: list[OwnTraffic],
    jobs: int,
    watch: Callable[[float], None] | None,
) -> Callable[[str, list[tuple[int, int, int]]], tuple[list[Any], BaseException | None]]:
    """A function that runs trials in processes. It returns the files of those that finished, and an interruption."""

    def apart(asked: str, trials: list[tuple[int, int, int]]) -> tuple[list[Any], BaseException | None]:
        from . import _processes

        futures: list[Future[Any]] = []
        try:
            with _processes.Processes(min(jobs, len(trials))) as processes:
                for number, discipline, seed in trials:
                    scenario, each = contenders[number]
                    arguments = (scenario, each, traffic, (discipline, seed), asked)
                    futures.append(processes.submit(_processes.run_apart, *arguments))
                for done, future in enumerate(as_completed(futures), 1):
                    _processes.result(future)
                    if watch is not None:
                        watch(done / len(futures))
                return [_processes.result(future) for future in futures], None
        except KeyboardInterrupt as stopped:
            ended = [each for each in futures if each.done() and not each.cancelled() and not each.exception()]
            return [each.result() for each in ended], stopped

    return apart


def jobs_of(jobs: Any) -> int:
    """The number of runs at a time; 0 for one for each processor."""
    return 0 if jobs is None else whole_number("jobs", jobs, 1, 2**16 - 1, "a number of runs at a time")


def unique(names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two disciplines have the name {twice.pop()!r} in results: give one another name")


def _unpacked(cls: type[Run], source: str | tuple[str, str, list[tuple[str, bytes]]], state: dict[str, Any]) -> Run:
    """The results of another process: in a folder, or in memory."""
    made = cls.__new__(cls)
    made._results = _giveway.open(source) if isinstance(source, str) else _giveway.Results.unpacked(*source)
    made.__dict__.update(state)
    return made


def interrupted(stopped: BaseException, finished: Run | Pending | None) -> BaseException:
    """The exception of an interruption, with what is finished."""
    if not isinstance(stopped, KeyboardInterrupt):
        return stopped
    if isinstance(finished, Pending):
        text = "runs that had finished are kept; they are in the `run` of this exception"
        exception = Interrupted(text, finished.run)
    else:
        runs = len(finished._results.runs) if finished else 0
        exception = Interrupted(f"{runs} runs had finished; they are in the `run` of this exception", finished)
    exception.__cause__ = stopped
    return exception


def interrupted_sweep(stopped: BaseException, folder: str) -> BaseException:
    """The exception of an interrupted sweep."""
    if not isinstance(stopped, KeyboardInterrupt):
        return stopped
    exception = Interrupted(f"finished trials are in {folder}; the same call goes on")
    exception.__cause__ = stopped
    return exception


def provenance(call: str) -> tuple[str, str]:
    """How results were made, and when, for a run folder."""
    script = Path(sys.argv[0]).name if sys.argv and sys.argv[0] not in ("", "-c") else "python"
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
    return f"giveway.{call} in {script}", now.strftime("%Y-%m-%dT%H:%M:%SZ")


def open(folder: str | os.PathLike[str]) -> Run:
    """Opens a run folder, and checks every file in it.

    Raises:
        FileNotFoundError: The folder does not exist.
        GivewayError: It is not a run folder, is being written, or has a missing or damaged file.
    """
    finish()
    return Run(_giveway.open(os.fspath(folder)))
