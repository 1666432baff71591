"""The judgement of disciplines that a program has searched for."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import _giveway
from ._discipline import DisciplineSource, own
from ._progress import Progress, shown
from ._run import jobs_of


class Judgement:
    """The judgement of a candidate. Printing it shows the score by question, or why the candidate is rejected."""

    def __init__(self, whole: str, text: str) -> None:
        self.data: dict[str, Any] = json.loads(whole)
        """All numbers, as ``giveway evaluate judge --json`` prints them."""
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
            ``rank(packet)``. A program in Python runs in processes of its own, without files, network and secret, and
            may import little. Or a discipline: its name and parameters as in ``tc``, a class, or a rank. A class runs
            in this process, without bounds.
        against: The baseline.
        secret: The text that draws the held-out cells. Candidates that are compared need the same one, and their
            author must not know it. By default one is drawn and forgotten.
        seeds: The number of seeds of each cell.
        fuel: What a call may use on average: instructions of WebAssembly, or lines of Python. One call may use 200
            times as much.
        memory: The most memory, bytes: of a queue in WebAssembly, or of all queues of a run of a program in Python.
        jobs: Runs at a time; by default one for each processor. A class runs one at a time.
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
            limits = {"fuel": fuel, "memory": memory}
            return _in_processes(candidate, against, drawn, (seeds, jobs_of(jobs)), limits, progress)
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


def _in_processes(
    file: Path, against: str, secret: str, options: tuple[int, int], limits: dict[str, int], progress: Progress
) -> Judgement:
    """Judges a program in Python, which runs in processes of its own. This one keeps the secret."""
    request: dict[str, Any] = {"name": str(file), "source": file.read_text(encoding="utf-8"), **limits}
    kept = ("PATH", "PYTHONPATH", "LANG", "LC_ALL")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    # Hashes of texts decide the order of sets, and must not differ between runs.
    environment["PYTHONHASHSEED"] = "0"
    mine, other = socket.socketpair()
    with mine, shown(progress, f"judgement of {file}") as watch:
        with other:
            # A group of its own: it does not get Ctrl-C, and ends as a whole.
            starter = subprocess.Popen(
                [sys.executable, "-P", "-s", "-m", "giveway._candidate", str(other.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env=environment,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        try:
            assert starter.stdin is not None
            with starter.stdin as stdin:
                stdin.write(json.dumps(request).encode())

            def start(end: int) -> None:
                socket.send_fds(mine, [b"r"], [end])

            text, whole = _giveway.judge_process(str(file), start, against, secret, options, watch)
        finally:
            os.killpg(starter.pid, signal.SIGKILL)
            starter.wait()
    return Judgement(whole, text)
