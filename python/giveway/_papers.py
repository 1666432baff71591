"""Reproduced papers: their claims, verdicts and figures."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from . import _giveway
from ._numbers import whole_number
from ._progress import Progress, shown
from ._run import interrupted, jobs_of
from ._scenario import warn

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, with our verdict."""

    id: str
    statement: str
    """The claim in our words."""
    verdict: str
    """``"reproduces"``, ``"differs"``, ``"could not be tested"`` or ``"not run"``."""
    paper: str
    """What the paper says."""
    ours: str
    """What we measured."""
    why: str
    """The reason of a difference, or a note."""
    figure: str | None
    source: str
    """The place in the paper."""


@dataclass(frozen=True)
class Listed:
    """A paper that can be reproduced."""

    id: str
    title: str
    reference: str
    claims: int
    figures: list[str]


def papers() -> list[Listed]:
    """The papers that can be reproduced."""
    return [Listed(**each) for each in json.loads(_giveway.shipped())]


class Paper:
    """A reproduced paper: :func:`reproduce`."""

    def __init__(self, study: _giveway.Paper, quick: bool) -> None:
        self._study = study
        self._read: dict[str, Any] = json.loads(study.json())
        self.quick = quick
        """True for a first look: shorter runs with three seeds."""

    @property
    def title(self) -> str:
        """The title of the paper."""
        return self._read["title"]

    @property
    def claims(self) -> list[Claim]:
        """Every claim with its verdict."""
        return [
            Claim(
                each["id"],
                each["statement"],
                each["verdict"],
                each["paper"],
                each["ours"],
                each["why"] or "",
                each["figure"],
                each["source"],
            )
            for each in self._read["claims"]
        ]

    def figures(self) -> list[str]:
        """The numbers of the figures that can be drawn."""
        return self._study.figures()

    def figure(self, number: int | str, *, columns: int = 1, variant: str | None = None) -> matplotlib.figure.Figure:
        """A figure of the paper, drawn from our runs: means with 95 % confidence intervals, and the values that the
        paper states.

        Args:
            number: Its number in the paper, as in ``5`` or ``"1b"``.
            columns: 1 or 2: the width of the figure in columns of a paper.
            variant: A variant of the study; by default the one that verdicts are about.
        """
        from . import pictures

        return pictures.paper_figure(self.figure_data(number), columns=columns, variant=variant)

    def figure_data(self, number: int | str) -> dict[str, Any]:
        """The data of a figure: heading, caption, panels with axes, series and the values that the paper states.

        Raises:
            KeyError: The study does not draw such a figure.
        """
        data = self._study.figure(str(number))
        if data is None:
            known = ", ".join(self.figures())
            raise KeyError(f"there is no figure {number}; the figures are {known}")
        return json.loads(data)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """The page of verdicts and figures as HTML. ``path`` writes it to a file."""
        page = self._study.html()
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def __repr__(self) -> str:
        finished, planned = self._study.runs
        return f"<giveway.Paper {self.title!r}: {self._counted()}; {finished} of {planned} runs>"

    def _counted(self) -> str:
        verdicts = [claim.verdict for claim in self.claims]
        return ", ".join(f"{verdicts.count(each)} {each}" for each in dict.fromkeys(verdicts))

    def __str__(self) -> str:
        lines = [f"{self.title}: {self._counted()}"]
        for claim in self.claims:
            lines += [f"  {claim.verdict:<12} {claim.statement}", f"      paper  {claim.paper} ({claim.source})"]
            lines += [f"      ours   {claim.ours}"]
        return _giveway.harmless("\n".join(lines))

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(each.verdict)}</td><td style='text-align:left'>{escape(each.statement)}</td>"
            f"<td style='text-align:left'>{escape(each.paper)}</td>"
            f"<td style='text-align:left'>{escape(each.ours)}</td></tr>"
            for each in self.claims
        )
        heads = "<tr><th>verdict</th><th>claim</th><th>paper</th><th>ours</th></tr>"
        return f"<h4>{escape(self.title)}</h4><p>{escape(self._counted())}</p><table>{heads}{rows}</table>"


def reproduce(
    name: str,
    *,
    quick: bool = False,
    figure: int | str | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    progress: Progress = None,
    folder: str | os.PathLike[str] | None = None,
) -> Paper:
    """Runs the experiments of a paper, and compares each claim with the result.

    Args:
        name: A paper of :func:`papers`, such as ``"efd"``; or a folder with a paper.
        quick: A first look in seconds: shorter runs with three seeds.
        figure: Only the claims and the runs of this figure.
        seeds: The number of seeds; by default the paper's.
        jobs: Runs at a time; by default one for each processor.
        progress: As in :func:`run`.
        folder: A folder for finished runs: the same call resumes an interrupted study. It is emptied at the end.

    Raises:
        KeyError: There is no such paper or figure.
        Interrupted: Ctrl-C.
    """
    with TemporaryDirectory(prefix="giveway-") as temporary, shown(progress, name) as watch:
        kept = os.path.join(temporary if folder is None else os.fspath(folder), "runs.jsonl")
        seeds = None if seeds is None else whole_number("seeds", seeds, 1)
        scope = (quick, None if figure is None else str(figure), seeds)
        study, messages, stopped = _giveway.reproduce(name, scope, jobs_of(jobs), kept, watch)
    warn(messages)
    if stopped is not None:
        raise interrupted(stopped, None)
    return Paper(study, quick)


_READ: dict[tuple[str, bool], Paper] = {}


def paper(name: str, *, quick: bool = True) -> Paper:
    """A reproduced paper, as in ``giveway.paper("efd").figure(5)``. The experiments run at the first call of a process.

    Args:
        name: A paper of :func:`papers`.
        quick: A first look in seconds: shorter runs with three seeds. False runs what the paper did, for minutes.
    """
    if (name, quick) not in _READ:
        _READ[name, quick] = reproduce(name, quick=quick)
    return _READ[name, quick]
