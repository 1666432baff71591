"""The trials of a sweep on the workers of a cluster.

A worker needs only this package. It gets the text of the scenario, the keys that vary, and the files that the scenario
names by their content; it makes the same plan, and runs tasks of it. A trial is a pure function of these, so a task
that is lost with its worker, or that a slow worker still runs, runs elsewhere with the same result.

An engine (Dask or Ray) starts tasks on workers and returns their answers. Everything else is here: how many trials
travel together, how many batches wait for a worker, and which batch runs again because a
worker is slow.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from . import _giveway
from ._errors import GivewayError
from ._extras import need

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from ._discipline import Own
    from ._scenario import Scenario

Task = tuple[int, int, list[int]]
Answer = tuple[str, float]

#: A task for a worker takes about this time, seconds: short trials travel together.
_BATCH = 0.5
_MOST_TASKS = 5_000
#: Batches for each thread of a worker, so that it does not wait for the next.
_AHEAD = 3
#: A batch at the end runs again if it takes this many times the usual time, at most three times.
_SLOW = 4.0
_MOST_REPEATS = 3


class Engine(Protocol):
    """Runs batches of tasks on workers.

    It raises :class:`ClusterLost` if workers or their scheduler are lost.
    """

    repeats: bool
    """True if a slow batch may run again on another worker."""

    def send(self, spec: Spec) -> None:
        """Brings the request to the workers, before any batch."""
        ...

    def threads(self) -> int:
        """The number of tasks that all workers run at a time; at least 1."""
        ...

    def submit(self, tasks: list[Task], slow: Hashable | None = None) -> Hashable:
        """Starts a batch, not on the worker that has the batch `slow`. Returns its handle."""
        ...

    def ready(self, seconds: float) -> list[Hashable]:
        """The handles of batches that have ended since the last call. Waits at most this time, seconds."""
        ...

    def answer(self, handle: Hashable) -> Answer:
        """The answer of a batch that has ended, or its exception."""
        ...

    def call(self, spec: Spec, tasks: list[Task]) -> Answer:
        """Runs tasks of any request on a worker, and waits for them. Threads may call it at the same time."""
        ...

    def cancel(self, handles: Iterable[Hashable]) -> None:
        """Ends batches whose answers are not needed."""
        ...


@dataclass(frozen=True)
class Spec:
    """Everything that a worker needs to make the plan."""

    toml: str
    seeds: list[int]
    axes: list[str]
    design: str
    until: str | None
    version: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    """The SHA-256 of each file that the scenario names, by its name there."""
    content: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The files by their SHA-256, unless they are on the share."""
    share: str | None = None
    own: tuple[list[Own], bool] = ([], False)
    """Disciplines in Python, and whether they take the place of those of the scenario."""
    folder: str | None = None
    """The folder of the files, for a worker on this machine."""
    token: str = ""
    """Another one for each call with disciplines in Python: equal sources may be different disciplines."""

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        axes: list[str],
        design: str,
        until: str | None,
        version: str,
        share: str | None,
        own: tuple[list[Own], bool] = ([], False),
        here: bool = False,
    ) -> Spec:
        """The request for workers. Files go to the share, if there is one; workers on this machine have them."""
        token = uuid.uuid4().hex if own[0] else ""
        text, seeds = scenario._read.text, scenario._read.seeds
        if here:
            folder = scenario._read.packed()[1]
            return cls(text, seeds, axes, design, until, version, own=own, folder=folder, token=token)
        files: dict[str, str] = {}
        content: dict[str, bytes] = {}
        for name, path in scenario._read.named_files():
            if os.path.isabs(name) or ".." in Path(name).parts:
                raise GivewayError(
                    f"the scenario names the file {name}: workers have only files below the folder of the scenario; "
                    "name it relative to that folder"
                )
            data = Path(path).read_bytes()
            digest = hashlib.sha256(data).hexdigest()
            files[name] = digest
            content[digest] = data
        if share is not None and content:
            fsspec = need("fsspec", "a share")
            for digest, data in content.items():
                with fsspec.open(f"{share.rstrip('/')}/{digest}", "wb") as file:
                    file.write(data)
            content = {}
        return cls(text, seeds, axes, design, until, version, files, content, share, own, token=token)

    @property
    def name(self) -> str:
        """The name of this request, unique within a worker."""
        parts = [self.toml, *map(str, self.seeds), *self.axes, self.design, str(self.until), *self.files.values()]
        parts.append(self.token)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class VersionMismatch(GivewayError):
    """A worker has another version of Giveway."""


class ClusterLost(GivewayError):
    """The workers of a cluster, or its scheduler, are gone."""


_PLANS: dict[str, _giveway.Sweep] = {}


def work(spec: Spec, tasks: list[Task], where: str) -> Answer:
    """Runs tasks on the worker with the address `where`. Returns their rows, and the time that they took, seconds."""
    began = time.perf_counter()
    return _plan(spec, where).work(tasks), time.perf_counter() - began


def _plan(spec: Spec, where: str) -> _giveway.Sweep:
    """The plan, which a process makes once."""
    if spec.name not in _PLANS:
        folder = spec.folder or tempfile.mkdtemp(prefix="giveway-")
        for name, digest in spec.files.items():
            place = Path(folder) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(_content(spec, digest))
        scenario = _giveway.Scenario.parse(spec.toml, folder, "scenario", []).with_seed_list(spec.seeds)
        plan = _giveway.Sweep(scenario, spec.axes, spec.design, spec.until, spec.own)
        if plan.version != spec.version:
            raise VersionMismatch(
                f"the worker {where} has Giveway {plan.version}, and the sweep was begun by {spec.version}: install "
                "the same version everywhere"
            )
        _PLANS[spec.name] = plan
    return _PLANS[spec.name]


def _content(spec: Spec, digest: str) -> bytes:
    if spec.share is None:
        return spec.content[digest]
    fsspec = need("fsspec", "a share")
    with fsspec.open(f"{spec.share.rstrip('/')}/{digest}", "rb") as file:
        data: bytes = file.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise GivewayError(f"the file {digest} on {spec.share} is damaged: run the sweep again")
    return data


def run(
    engine: Engine,
    plan: _giveway.Sweep,
    spec: Spec,
    out: str,
    reuse: list[str],
    progress: Callable[[float], None] | None,
    command: str,
) -> tuple[str, list[str], BaseException | None]:
    """Runs what is missing on the workers. Returns what was done as JSON, messages, and an interruption."""
    sweeping = plan.begin(out, reuse, command)
    try:
        engine.send(spec)
        _drive(engine, plan, sweeping, progress)
    except KeyboardInterrupt as stopped:
        return sweeping.finish(), sweeping.messages, stopped
    except ClusterLost as lost:
        sweeping.finish()
        raise ClusterLost(f"{lost}. Finished trials are in {out}: the same call goes on there") from lost
    except Exception:
        sweeping.finish()
        raise
    return sweeping.finish(), sweeping.messages, None


@dataclass
class _Batch:
    """Tasks that run on a worker."""

    tasks: list[Task]
    began: float
    """The time of its start, seconds."""
    number: int
    """The number of the tasks. A batch that runs a second time keeps its number."""


def _drive(
    engine: Engine, plan: _giveway.Sweep, sweeping: _giveway.Sweeping, progress: Callable[[float], None] | None
) -> None:
    running: dict[Hashable, _Batch] = {}
    answered: set[int] = set()
    numbers = 0
    size = 1
    seconds = 0.0
    finished = sweeping.had
    try:
        while True:
            threads = engine.threads()
            nothing_waits = False
            # A batch with an answer may still run a second time, without anyone waiting for it.
            while sum(batch.number not in answered for batch in running.values()) < _AHEAD * threads:
                tasks = sweeping.take(size)
                nothing_waits = not tasks
                if nothing_waits:
                    break
                numbers += 1
                running[engine.submit(tasks)] = _Batch(tasks, time.monotonic(), numbers)
            waiting = [batch for batch in running.values() if batch.number not in answered]
            if not waiting:
                if sweeping.is_done():
                    return
                continue
            handles = engine.ready(0.1)
            if engine.repeats and not handles and (nothing_waits or all(_is_slow(batch, seconds) for batch in waiting)):
                _repeat_slow(engine, running, seconds, answered)
            for handle in handles:
                batch = running.pop(handle)
                if batch.number in answered:
                    continue
                rows, took = engine.answer(handle)
                answered.add(batch.number)
                sweeping.add(rows)
                finished += sum(len(disciplines) for _, _, disciplines in batch.tasks)
                if progress is not None:
                    progress(min(1.0, finished / max(1, plan.trials)))
                each = took / len(batch.tasks)
                seconds = each if seconds == 0.0 else 0.8 * seconds + 0.2 * each
                size = max(1, min(_MOST_TASKS, int(_BATCH / max(seconds, 1e-6))))
    finally:
        engine.cancel(running)


def _is_slow(batch: _Batch, seconds: float, times: int = 1) -> bool:
    """Whether a batch that has started so many times takes far longer than usual. Each time waits twice as long."""
    usual = max(_BATCH, seconds * len(batch.tasks))
    return time.monotonic() - batch.began > _SLOW * usual * 2 ** (times - 1)


def _repeat_slow(engine: Engine, running: dict[Hashable, _Batch], seconds: float, answered: set[int]) -> None:
    """Runs batches again that take far longer than usual. The first answer counts."""
    starts: dict[int, list[tuple[_Batch, Hashable]]] = {}
    for handle, batch in running.items():
        starts.setdefault(batch.number, []).append((batch, handle))
    for number, times in starts.items():
        if number in answered or len(times) > _MOST_REPEATS:
            continue
        last, handle = max(times, key=lambda each: each[0].began)
        if _is_slow(last, seconds, len(times)):
            running[engine.submit(last.tasks, handle)] = _Batch(last.tasks, time.monotonic(), number)
