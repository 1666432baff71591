"""The judgement of disciplines that a program has searched for."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import _giveway
from ._discipline import DisciplineSource, own
from ._progress import Progress, shown
from ._run import jobs_of

#: The process time that a candidate may take, seconds, beside its fuel.
_SECONDS = 600


class Judgement:
    """The judgement of a candidate. Printing it shows the score by question, or why the candidate is rejected."""

    def __init__(self, whole: str, text: str) -> None:
        self.data: dict[str, Any] = json.loads(whole)
        """All numbers, as ``giveway judge --json`` prints them."""
        self._text = text

    @property
    def accepted(self) -> bool:
        """True if the candidate is not rejected."""
        return bool(self.data["accepted"])

    @property
    def score(self) -> float | None:
        """The mean gain in the held-out cells, from -3 to 3, in units of what matters; None if it is rejected."""
        return self.data["score"]

    @property
    def public_score(self) -> float | None:
        """The mean gain in the public cells; None if it was rejected before they had run."""
        public = self.data["public"]
        return None if public is None else float(public["score"])

    @property
    def code(self) -> str | None:
        """The kind of the reason for a rejection, such as ``"fuel"`` or ``"keeps"``; None if it is accepted."""
        rejected = self.data["rejected"]
        return None if rejected is None else str(rejected["code"])

    @property
    def reason(self) -> str | None:
        """The reason for a rejection in a sentence; None if it is accepted."""
        rejected = self.data["rejected"]
        return None if rejected is None else str(rejected["sentence"])

    def __str__(self) -> str:
        return _giveway.harmless(self._text.rstrip())

    def __repr__(self) -> str:
        what = f"score {self.score}" if self.accepted else f"rejected: {self.code}"
        return f"<giveway.Judgement of {self.data['candidate']}: {what}>"


def judge(
    candidate: DisciplineSource | Path,
    *,
    against: str = "fq_codel",
    secret: str | None = None,
    seeds: int = 2,
    fuel: int = 10_000,
    memory: int = 16 << 20,
    jobs: int | None = None,
    progress: Progress = None,
) -> Judgement:
    """Judges a discipline that a program has searched for, against a baseline.

    It runs in public cells of :func:`evaluate`, and in held-out ones that ``secret`` draws. It is rejected if it uses
    too much fuel or memory, breaks the contract, keeps packets, delays acknowledgements, blocks traffic, or owes its
    gain to the hour, to the number of packets, to the numbers of flows and hosts, to the seed, or to the public cells.

    Args:
        candidate: A path to a program: ``Path("mine.wasm")``, or ``Path("mine.py")`` with a class or a function
            ``rank(packet)``. A program in Python runs in a process of its own, and may import little. Or a discipline:
            its name and parameters as in ``tc``, a class, or a rank. A class runs in this process, without bounds.
        against: The baseline.
        secret: The text that draws the held-out cells. Candidates that are compared need the same one, and their
            author must not know it. By default one is drawn and forgotten.
        seeds: The number of seeds of each cell.
        fuel: What a call may use on average: instructions of WebAssembly, or lines of Python. One call may use 200
            times as much.
        memory: The most memory, bytes: of a queue in WebAssembly, or of all queues of a program in Python.
        jobs: Runs at a time; by default one for each processor. A candidate in Python runs one at a time.
        progress: As in :func:`run`.

    Raises:
        ScenarioError: The candidate is a discipline with a mistake, or the baseline is.
        ValueError: The file of the candidate is neither ``.py`` nor ``.wasm``.
    """
    drawn = secrets.token_hex(16) if secret is None else secret
    if seeds < 1:
        raise ValueError(f"seeds: {seeds} is less than 1")
    if isinstance(candidate, Path):
        if candidate.suffix == ".py":
            return _in_process(candidate, against, drawn, seeds, fuel, memory)
        if candidate.suffix != ".wasm":
            raise ValueError(f"{candidate} is neither a program in Python (.py) nor in WebAssembly (.wasm)")
    if isinstance(candidate, str | Path):
        mine, name = None, str(candidate)
    else:
        mine = own(candidate, 0)
        name = mine.name
    options = (seeds, jobs_of(jobs), fuel, memory)
    with shown(progress, f"judgement of {name}") as watch:
        text, whole = _giveway.judge_discipline(name, mine, against, drawn, options, watch)
    return Judgement(whole, text)


def _in_process(file: Path, against: str, secret: str, seeds: int, fuel: int, memory: int) -> Judgement:
    """Judges a program in Python in a process with bounds."""
    request: dict[str, Any] = {
        "name": str(file),
        "source": file.read_text(encoding="utf-8"),
        "against": against,
        "secret": secret,
        "seeds": seeds,
        "fuel": fuel,
        "memory": memory,
        "seconds": _SECONDS,
    }
    kept = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "SYSTEMROOT")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    # Hashes of texts decide the order of sets, and must not differ between runs.
    environment["PYTHONHASHSEED"] = "0"
    process = subprocess.run(
        [sys.executable, "-P", "-s", "-m", "giveway._candidate"],
        input=json.dumps(request),
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode == 0 and process.stdout:
        text, whole = json.loads(process.stdout.splitlines()[-1])
    else:
        text, whole = _ended(request, process)
    return Judgement(whole, text)


def _ended(request: dict[str, Any], process: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """The judgement of a process that ended without one."""
    from ._candidate import refused

    last = (process.stderr.strip().splitlines() or [""])[-1]
    if process.returncode in (-24, -9) and not last:
        return refused(request, "fuel", f"it took more than {_SECONDS} s of processor time")
    if "MemoryError" in last or "memory allocation" in process.stderr:
        return refused(request, "memory", f"it wants more than {request['memory']} bytes of memory")
    return refused(request, "crash", f"its process ended with {process.returncode}: {last}")
