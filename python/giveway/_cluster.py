"""The trials of a sweep on the workers of a Dask cluster.

A worker needs only this package. It gets the text of the scenario, the keys that vary, and the files that the scenario
names by their content; it makes the same plan, and runs tasks of it. A trial is a pure function of these, so a task
that is lost with its worker, or that a slow worker still runs, runs elsewhere with the same result.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _giveway
from ._errors import GivewayError
from ._extras import need

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._scenario import Scenario

Task = tuple[int, int, list[int]]

#: A task for a worker takes about this time, seconds: short trials travel together.
_BATCH = 0.5
_MOST_TASKS = 5_000
#: Batches for each thread of a worker, so that it does not wait for the next.
_AHEAD = 3
#: A batch at the end runs a second time if it takes this many times the usual time.
_SLOW = 4.0
#: Time between two looks for finished batches, seconds.
_PAUSE = 0.005


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

    @classmethod
    def of(
        cls, scenario: Scenario, axes: list[str], design: str, until: str | None, version: str, share: str | None
    ) -> Spec:
        """The request for workers. Files go to the share, if there is one."""
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
        return cls(scenario._read.text, scenario._read.seeds, axes, design, until, version, files, content, share)

    @property
    def name(self) -> str:
        """The name of this request among those of a worker."""
        parts = [self.toml, *map(str, self.seeds), *self.axes, self.design, str(self.until), *self.files.values()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class VersionMismatch(GivewayError):
    """A worker has another version of Giveway."""


_PLANS: dict[str, _giveway.Sweep] = {}


def work(spec: Spec, tasks: list[Task]) -> tuple[str, float]:
    """Runs tasks on a worker. Returns their rows, and the time that they took, seconds."""
    began = time.perf_counter()
    return _plan(spec).work(tasks), time.perf_counter() - began


def _plan(spec: Spec) -> _giveway.Sweep:
    """The plan, which a process makes once."""
    if spec.name not in _PLANS:
        folder = tempfile.mkdtemp(prefix="giveway-")
        for name, digest in spec.files.items():
            place = Path(folder) / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(_content(spec, digest))
        scenario = _giveway.Scenario.parse(spec.toml, folder, "scenario", []).with_seed_list(spec.seeds)
        plan = _giveway.Sweep(scenario, spec.axes, spec.design, spec.until)
        if plan.version != spec.version:
            raise VersionMismatch(
                f"the worker {_here()} has Giveway {plan.version}, and the sweep was begun by {spec.version}: install "
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


def _here() -> str:
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return os.uname().nodename


def run(
    client: Any,
    plan: _giveway.Sweep,
    spec: Spec,
    out: str,
    reuse: list[str],
    progress: Callable[[float], None] | None,
    command: str,
) -> tuple[str, list[str], BaseException | None]:
    """Runs what is missing on the workers. Returns what was done as JSON, messages, and an interruption."""
    sweeping = plan.begin(out, reuse, command)
    stopped: BaseException | None = None
    try:
        _drive(client, plan, spec, sweeping, progress)
    except (KeyboardInterrupt, Exception) as error:
        text = sweeping.finish()
        if not isinstance(error, KeyboardInterrupt):
            raise
        stopped = error
        return text, sweeping.messages, stopped
    return sweeping.finish(), sweeping.messages, stopped


def _drive(
    client: Any,
    plan: _giveway.Sweep,
    spec: Spec,
    sweeping: _giveway.Sweeping,
    progress: Callable[[float], None] | None,
) -> None:
    distributed: Any = need("distributed", "a sweep on a cluster")
    [sent] = client.scatter([spec], broadcast=True)
    running: dict[Any, tuple[list[Task], float, int]] = {}
    answered: set[int] = set()
    repeated: set[int] = set()
    numbers = 0
    size = 1
    seconds = 0.0
    finished = 0
    completed: Any = distributed.as_completed()
    try:
        while True:
            threads = max(1, sum(client.nthreads().values()))
            while len(running) < _AHEAD * threads:
                tasks = sweeping.take(size)
                if not tasks:
                    break
                numbers += 1
                _submit(client, completed, running, sent, tasks, numbers, "")
            if not running:
                if sweeping.is_done():
                    return
                continue
            while not completed.has_ready():
                _repeat_slow(client, completed, running, sent, seconds, repeated, answered)
                time.sleep(_PAUSE)
            future = next(completed)
            tasks, _, number = running.pop(future)
            rows, took = future.result()
            if number in answered:
                continue
            answered.add(number)
            sweeping.add(rows)
            finished += len(tasks)
            if progress is not None:
                progress(min(1.0, finished / max(1, plan.trials)))
            each = took / len(tasks)
            seconds = each if seconds == 0.0 else 0.8 * seconds + 0.2 * each
            size = max(1, min(_MOST_TASKS, int(_BATCH / max(seconds, 1e-6))))
    finally:
        client.cancel(list(running))


def _submit(
    client: Any,
    completed: Any,
    running: dict[Any, tuple[list[Task], float, int]],
    sent: Any,
    tasks: list[Task],
    number: int,
    ending: str,
) -> None:
    key = f"giveway-{number}{ending}-{os.getpid()}-{time.time_ns()}"
    future = client.submit(work, sent, tasks, key=key, pure=False, retries=3)
    running[future] = (tasks, time.monotonic(), number)
    completed.add(future)


def _repeat_slow(
    client: Any,
    completed: Any,
    running: dict[Any, tuple[list[Task], float, int]],
    sent: Any,
    seconds: float,
    repeated: set[int],
    answered: set[int],
) -> None:
    """Runs batches a second time that take far longer than usual, once nothing else waits. The first answer counts."""
    now = time.monotonic()
    slow = [each for each in running.values() if now - each[1] > _SLOW * max(_BATCH, seconds * len(each[0]))]
    if not slow or len(running) >= max(1, sum(client.nthreads().values())):
        return
    for tasks, _, number in slow:
        if number not in repeated and number not in answered:
            repeated.add(number)
            _submit(client, completed, running, sent, tasks, number, "-again")
