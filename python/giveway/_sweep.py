"""Sweeps: a scenario with many values of its keys, as one data set."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Generator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _cluster, _giveway
from ._discipline import DisciplineSource, Own, own
from ._engines import engine_of
from ._errors import GivewayError
from ._extras import need
from ._numbers import plain
from ._progress import Progress, shown
from ._run import interrupted_sweep, jobs_of, provenance, unique
from ._scenario import Scenario, Source, checked, warn
from ._table import Table

if TYPE_CHECKING:
    from types import ModuleType

    import duckdb
    from distributed import Client

_SHOWN_ROWS = 20


class Sweep:
    """The data set of a sweep: a row for each trial, with the values of the varied keys and all metrics.

    Printing it gives the answers: which key matters, and where the best discipline changes.
    """

    def __init__(self, folder: str | os.PathLike[str], done: Mapping[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        """The folder. ``trials/*.parquet`` in it are the data, which other programs may read, also while it grows."""
        self._facts: dict[str, Any] = json.loads(_giveway.sweep_facts(str(self.folder)))
        self._done = dict(done or {})

    @property
    def trials(self) -> Table:
        """A row for each finished trial."""
        return Table("trials", _giveway.sweep_frame(str(self.folder), "trials"))

    @property
    def failed(self) -> Table:
        """A row for each trial that failed, with the reason."""
        return Table("failed", _giveway.sweep_frame(str(self.folder), "failed"))

    @property
    def complete(self) -> bool:
        """True if no trial is missing, except those that failed."""
        return bool(self._facts["complete"])

    @property
    def axes(self) -> list[str]:
        """The varied keys with their values, as in ``link.0.rate=1mbit,10mbit``."""
        return list(self._facts["axes"])

    @property
    def disciplines(self) -> list[str]:
        """The compared disciplines."""
        return list(self._facts["disciplines"])

    @property
    def counts(self) -> dict[str, int]:
        """The number of trials that this call ran (``ran``), found (``had``), took from other sweeps (``reused``), and
        that failed (``failed``)."""
        return {name: int(self._done.get(name, 0)) for name in ("ran", "had", "reused", "failed")}

    def answers(self, metric: str | None = None) -> list[str]:
        """Sentences: which key explains the metric, where the best discipline changes, which value of a parameter is
        best where.

        Args:
            metric: A name such as ``"fct_p95_s"``; by default the first that is usual.
        """
        return _giveway.answers(str(self.folder), metric)[1]

    def report(self, path: str | os.PathLike[str] | None = None, *, metrics: Sequence[str] = ()) -> str:
        """The report: answers, response curves, heat maps and interactions. ``path`` writes it to a file.

        Args:
            path: The file.
            metrics: The metrics; by default one.
        """
        page = _giveway.sweep_page(str(self.folder), list(metrics))
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """The result of a query in SQL over the tables ``trials`` and ``failed``: see :func:`query`."""
        return query(self.folder, sql)

    def __str__(self) -> str:
        return _giveway.harmless("\n".join(f"- {sentence}" for sentence in self.answers()))

    def __repr__(self) -> str:
        state = "" if self.complete else ", not complete"
        return f"<giveway.Sweep {str(self.folder)!r} over {' '.join(self.axes)}{state}>"

    def _repr_html_(self) -> str:
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in self.answers())
        return f"<h4>{escape(self._facts['title'] or self.folder.name)}</h4><ul>{sentences}</ul>"


def sweep(
    scenario: Source,
    over: Mapping[str, Any],
    *,
    out: str | os.PathLike[str],
    disciplines: Sequence[DisciplineSource] | None = None,
    seeds: int | Sequence[int] | None = None,
    design: str = "grid",
    until: str | None = None,
    changes: Mapping[str, Any] | None = None,
    short: bool = False,
    reuse: Sequence[str | os.PathLike[str]] = (),
    jobs: int | None = None,
    client: Client | ModuleType | None = None,
    share: str | None = None,
    progress: Progress = None,
) -> Sweep:
    """Runs a scenario with many values of its keys: every discipline at every point, with every seed.

    The same call goes on where a killed one stopped, and runs only what is new if values, seeds or disciplines were
    added. The bytes of the data set are the same with any number of jobs, and on a cluster.

    Args:
        scenario: As in :func:`run`.
        over: The keys that vary, each with its values: a list, a range, or a text such as ``"log(5p,200p,6)"``,
            ``"1..8"``, or ``"lin(1mbit,9mbit)"`` for draws. ``"qdisc.NAME"`` is a parameter of every compared
            discipline that has it; of a class, an argument of its constructor with a default.
        out: The folder of the data set.
        disciplines: What to compare, in place of the scenario's: names with parameters, classes or ranks, as in
            :func:`run`.
        seeds: The number of seeds, or a list of seeds.
        design: ``"grid"``, ``"random:200"``, ``"lhs:200"``, ``"sobol:256"`` or ``"saltelli:64"``.
        until: End the seeds of a point with a precision, as in ``"fct_p99 within 5 %"``; `seeds` is the most, by
            default 100.
        changes: Keys of the scenario to change.
        short: Run with the ``[short]`` settings of the scenario.
        reuse: Folders of other sweeps, whose trials are taken if they are the same.
        jobs: Trials at a time on this machine; by default one for each processor. By default trials with a discipline
            in Python follow each other in this process. With ``jobs`` they run in as many processes.
        client: A client of Dask (``distributed.Client``), or the module ``ray`` after ``ray.init()``: the trials run on
            the workers of that cluster, which need only this package.
        share: A folder or an address of fsspec (``"s3://bucket/files"``) that the workers reach. Captures and traces of
            the scenario travel over it by their content. By default they travel with the tasks.
        progress: As in :func:`run`.

    Raises:
        ScenarioError: The scenario is wrong at one of the values.
        ValueError: A key, a design or a precision is wrong.
        DisciplineError: A discipline in Python failed, or broke the contract. The finished trials are in the folder.
        GivewayError: The folder cannot be used, a worker has another version, or the cluster was lost.
        Interrupted: Ctrl-C. What has finished is in the folder.
    """
    if isinstance(disciplines, str):
        raise TypeError(f'disciplines is a list: write disciplines=["{disciplines}"]')
    written, mine = contenders(disciplines)
    replaced = {} if written is None else {"disciplines": written}
    read = Scenario(scenario, changes={**checked(changes), **replaced})
    if short:
        read = read.short()
    if seeds is None and until is not None and not short:
        seeds = 100
    if seeds is not None:
        read = read.with_seeds(seeds)
    # The stand-in for a discipline in Python never runs.
    warn([] if mine[1] else read.warnings)
    if not isinstance(over, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f'over is a dict from keys to values, as in {{"link.0.rate": ["1mbit", "5mbit"]}}, not {over!r}'
        )
    axes = [f"{key}={_values(key, values)}" for key, values in over.items()]
    plan = _giveway.Sweep(read._read, axes, design, until, mine)
    others = [os.fspath(each) for each in reuse]
    command, _ = provenance("sweep")
    with shown(progress, read.title or read.name) as watch:
        if client is None and not mine[0]:
            text, messages, stopped = plan.run(os.fspath(out), jobs_of(jobs), others, watch, command)
        else:
            with local(plan, jobs) if client is None else contextlib.nullcontext(engine_of(client)) as engine:
                spec = _cluster.Spec.of(read, axes, design, until, plan.version, share, mine, client is None)
                text, messages, stopped = _cluster.run(engine, plan, spec, os.fspath(out), others, watch, command)
    warn(messages)
    found = Sweep(out, json.loads(text))
    if stopped is not None:
        raise interrupted_sweep(stopped, str(out))
    return found


def contenders(disciplines: Sequence[DisciplineSource] | None) -> tuple[list[str] | None, tuple[list[Own], bool]]:
    """The specifications among disciplines, or a stand-in; those in Python, and whether there are no others."""
    if disciplines is None:
        return None, ([], False)
    written = [each for each in disciplines if isinstance(each, str)]
    mine = [own(each, place) for place, each in enumerate(disciplines) if not isinstance(each, str)]
    unique([*written, *(each.name for each in mine)] if mine else [])
    only = bool(mine) and not written
    return ["fifo"] if only else written, (mine, only)


@contextlib.contextmanager
def local(plan: _giveway.Sweep, jobs: int | None) -> Generator[_cluster.Engine]:
    """The engine for trials in Python on this machine."""
    from ._processes import Local, Processes

    count = jobs_of(jobs)
    if count <= 1:
        yield Local(None, plan)
        return
    with Processes(count) as processes:
        yield Local(processes, plan)


def _values(key: str, values: Any) -> str:
    """The values of a key in the syntax of the command line."""
    values = plain(values)
    if isinstance(values, str):
        return values
    if isinstance(values, range):
        if values.step != 1:
            return ",".join(str(value) for value in values)
        return f"{values.start}..{values.stop - 1}"
    if isinstance(values, Sequence):
        texts = [_value(key, value) for value in values]  # pyright: ignore[reportUnknownVariableType]
        return ",".join(texts)
    return _value(key, values)


def _value(key: str, value: Any) -> str:
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"' if "," in value else value
    if isinstance(value, (int, float)):
        return repr(value)
    raise TypeError(f"over[{key!r}]: {value!r} is not a number, a text or a list of these")


def open_sweep(folder: str | os.PathLike[str]) -> Sweep:
    """Opens the folder of a sweep.

    Raises:
        FileNotFoundError: It is not the folder of a sweep.
    """
    return Sweep(folder)


def query(
    folder: str | os.PathLike[str], sql: str, *, out: str | os.PathLike[str] | None = None
) -> duckdb.DuckDBPyRelation:
    """The result of a query in SQL over the data set of a sweep, by DuckDB.

    The tables are ``trials``, and ``failed`` if trials failed. The result prints as a table, and has ``.df()``,
    ``.pl()`` and ``.arrow()``. A query may come from another person, so it can neither read nor write other files,
    and opens no connection. ``.write_csv(path)`` and ``.write_parquet(path)`` write the file ``out`` only.

    Args:
        folder: The folder of a sweep.
        sql: A query, such as ``"select link_0_rate_bps, avg(fct_p95_s) from trials group by all"``.
        out: The file to which the result may be written.

    Raises:
        MissingExtra: DuckDB is not installed.
        GivewayError: The query is wrong.
    """
    duckdb = need("duckdb", "a query")
    connection = duckdb.connect()
    allowed = [] if out is None else [os.path.abspath(out)]
    for table in ("trials", "failed"):
        files = _giveway.sweep_files(os.fspath(folder), table)
        allowed += files
        if files:
            parts = _listed(files)
            connection.execute(f"create view {table} as select * from read_parquet({parts}, union_by_name=true)")
    connection.execute(f"set allowed_paths = {_listed(allowed)}")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    try:
        return connection.sql(sql)
    except duckdb.Error as error:
        raise GivewayError(f"the query is wrong: {error}") from error


def _listed(paths: Sequence[str]) -> str:
    """A list of texts in SQL."""
    # A name in quotes of SQL doubles the quotes in it.
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"


def print_query(words: Sequence[str]) -> int:
    """The command ``giveway sweep query DIR SQL``. Returns its exit code."""
    import argparse
    import sys

    parser = argparse.ArgumentParser(
        prog="giveway sweep query",
        description="Prints the result of a query in SQL over the data set of a sweep, by DuckDB.",
        epilog='example: giveway sweep query sweeps/rates "select link_0_rate_bps, discipline, avg(fct_p95_s) '
        'from trials group by all order by all"',
    )
    parser.add_argument("folder", metavar="DIR", help="the folder of a sweep")
    parser.add_argument("sql", metavar="SQL", help="a query over the tables trials and failed")
    parser.add_argument("--out", metavar="FILE", help="write a CSV or Parquet file, by its ending, instead of printing")
    parser.add_argument("--csv", action="store_true", help="print CSV instead of a table")
    asked = parser.parse_args(list(words))
    try:
        found = query(asked.folder, asked.sql, out=asked.out)
        if asked.out is not None and asked.out.endswith(".parquet"):
            found.write_parquet(os.path.abspath(asked.out))
        elif asked.out is not None:
            found.write_csv(os.path.abspath(asked.out))
        elif asked.csv:
            print(_giveway.harmless(",".join(found.columns)))
            for row in found.fetchall():
                print(_giveway.harmless(",".join("" if value is None else str(value) for value in row)))
        else:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                found.show(max_rows=_SHOWN_ROWS * 10)
            print(_giveway.harmless(printed.getvalue()), end="")
    except (GivewayError, OSError) as error:
        print(_giveway.harmless(f"giveway: {error}"), file=sys.stderr)
        return 2
    return 0
