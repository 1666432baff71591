"""The card of a discipline: verdicts against others in many scenarios, each with its uncertainty."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from . import _giveway
from ._discipline import DisciplineSource, own
from ._numbers import whole_number
from ._progress import Progress, shown
from ._run import jobs_of

#: The background of a verdict in a notebook. People who see colours differently can tell blue from orange.
_COLOURS = {"better": "#cfe0f7", "worse": "#f9ddc0"}


class Card:
    """The card of a discipline. Printing it shows the verdicts by question, and the largest differences."""

    def __init__(self, text: str, whole: str, page: str, scenarios: Sequence[tuple[str, str]]) -> None:
        self._text = text
        self._page = page
        self.data: dict[str, Any] = json.loads(whole)
        """All numbers, as in ``card.json`` of the command."""
        self.scenarios: dict[str, str] = dict(scenarios)
        """The scenario of each cell by name, as TOML: :func:`giveway.run` reproduces it to the bit."""

    @property
    def matrix(self) -> list[dict[str, Any]]:
        """The verdicts by question and baseline, with the numbers of metrics."""
        return list(self.data["matrix"])

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Each metric of each cell against each baseline: values, difference, interval and verdict.
        ``polars.DataFrame(card.lines)`` is a table of them."""
        return list(self.data["lines"])

    @property
    def two_states(self) -> list[dict[str, Any]]:
        """Disciplines whose runs fall into two states in a cell, so that no mean describes them."""
        return list(self.data["two_states"])

    @property
    def own_best(self) -> dict[str, Any] | None:
        """The own best of each discipline (``settings``), and the verdicts there beside those at the defaults in the
        short form (``lines``). ``None`` with ``tune=0``."""
        found: dict[str, Any] | None = self.data["own_best"]
        return found

    @property
    def sensitivity(self) -> list[dict[str, Any]]:
        """The changes of each parameter by 20 %, with the numbers of verdicts that change. Empty without changes."""
        found = self.data["sensitivity"]
        return [] if found is None else list(found["rows"])

    def verdict(self, cell: str, metric: str, baseline: str | None = None) -> str:
        """The verdict on a metric of a cell: ``"better"``, ``"worse"``, ``"same"`` or ``"unknown"``.

        Args:
            cell: The name of a cell, such as ``"rrul/rrul"``.
            metric: The name of its metric.
            baseline: The discipline to compare with; by default the first.
        """
        against = self.data["against"][0] if baseline is None else baseline
        for line in self.lines:
            if (line["cell"], line["metric"], line["baseline"]) == (cell, metric, against):
                return str(line["verdict"])
        raise KeyError(f"the card has no metric {metric} in {cell} against {against}")

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The card as a page of HTML. ``path`` writes it to a file."""
        if path is not None:
            Path(path).write_text(self._page, encoding="utf-8")
        return self._page

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes ``card.html``, ``card.json`` and ``cells/`` into a folder, as the command does."""
        place = Path(folder)
        for name, scenario in self.scenarios.items():
            file = place / "cells" / f"{name}.toml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(scenario, encoding="utf-8")
        self.report(place / "card.html")
        (place / "card.json").write_text(json.dumps(self.data, indent=2), encoding="utf-8")

    def __str__(self) -> str:
        return _giveway.harmless(self._text.rstrip())

    def __repr__(self) -> str:
        return f"<giveway.Card of {self.data['candidate']} against {', '.join(self.data['against'])}>"

    def _repr_html_(self) -> str:
        against: list[str] = self.data["against"]
        head = "".join(f"<th>{escape(name)}</th>" for name in against)
        rows: dict[str, list[str]] = {}
        for each in self.matrix:
            colour = _COLOURS.get(each["verdict"], "transparent")
            counts = f"{each['better']} / {each['worse']} / {each['same']} / {each['unknown']}"
            cell = f'<td style="background:{colour}">{each["verdict"]}<br><small>{counts}</small></td>'
            rows.setdefault(each["question"], []).append(cell)
        body = "".join(f"<tr><th>{question}</th>{''.join(cells)}</tr>" for question, cells in rows.items())
        caption = "better / worse / no difference that matters / undecided: numbers of metrics"
        return (
            f"<h4>{escape(self.data['candidate'])}</h4><table><thead><tr><th>against</th>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><small>{caption}</small>"
        )


def evaluation_cells() -> dict[str, str]:
    """The cells of a card: their names, and one line about each."""
    return dict(_giveway.evaluation_cells())


def evaluate(
    discipline: DisciplineSource,
    *,
    against: Sequence[str] = ("fifo", "fq_codel", "cake"),
    seeds: int = 10,
    cells: Sequence[str] = (),
    short: bool = False,
    timing: bool = True,
    tune: int = 24,
    sensitivity: bool = True,
    out: str | os.PathLike[str] | None = None,
    reuse: Sequence[str | os.PathLike[str]] = (),
    jobs: int | None = None,
    progress: Progress = None,
) -> Card:
    """Runs a discipline and others in many scenarios, and judges each metric with its uncertainty.

    Differences are paired by seed, and corrected together over the whole card. The same call gives the same card, bit
    for bit. A discipline in Python runs one run at a time, and takes about ten times as long.

    Args:
        discipline: Its name and parameters as in ``tc``, a class (:class:`Discipline`), or a rank (:func:`rank`).
        against: The disciplines to compare with.
        seeds: The number of seeds; at least 2.
        cells: Names of cells or groups, or beginnings with a star; by default all (:func:`evaluation_cells`).
        short: Run the short form of the cells, with wider intervals.
        timing: Repeat everything with the timing of real machines, and mark verdicts that are the opposite there.
        tune: The number of settings that are tried to find the own best of each discipline, in the short form of the
            cells; 0 for none. A discipline in Python stays as it is.
        sensitivity: Change each parameter of the discipline by 20 %, and count the verdicts that change.
        out: A folder that keeps the metrics of each run, as Parquet files (``trials/``). After an interruption, the
            same call resumes. The runs of a discipline in Python are not kept, since its code may change.
        reuse: Folders of runs, sweeps or cards whose trials are taken if they are the same.
        jobs: Runs at a time; by default one for each processor.
        progress: As in :func:`run`.

    Raises:
        ScenarioError: A discipline is wrong.
        DisciplineError: A discipline in Python failed, or broke the contract.
        ValueError: There is no such cell, too few seeds, ``tune`` is below 0, or a folder of ``reuse`` has no trials.
    """
    if isinstance(against, str):
        raise TypeError(f'against is a list: write against=["{against}"]')
    if isinstance(discipline, str):
        mine, name = None, discipline
    else:
        mine = own(discipline, 0)
        name = mine.name
    others = [each for each in against if each != name]
    tune, seeds = whole_number("tune", tune, what="a number of settings"), whole_number("seeds", seeds)
    place = (None if out is None else os.fspath(out), [os.fspath(folder) for folder in reuse])
    options = (seeds, short, timing, tune, sensitivity, jobs_of(jobs), *place)
    with shown(progress, f"card of {name}") as watch:
        return Card(*_giveway.evaluate_discipline(name, mine, others, list(cells), options, watch))
