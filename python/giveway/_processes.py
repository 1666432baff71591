"""Work in other processes of this machine: runs with disciplines and sources in Python, several at once.

A process is a new interpreter (``spawn``), because one that is copied from a program with threads may hang.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import multiprocessing
import pickle
import signal
import sys
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Self

from . import _cluster, _giveway
from ._cluster import Answer, ClusterLost, Spec, Task
from ._errors import GivewayError


class Processes:
    """A number of processes, as a context."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(jobs, context, _begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # After an error or Ctrl-C, nobody waits for runs that have begun.
        processes: dict[int, Any] = dict(getattr(self._pool, "_processes", None) or {})
        self._pool.shutdown(wait=kind is None, cancel_futures=True)
        if kind is not None:
            for process in processes.values():
                process.terminate()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Calls a function of this package in a process. Its arguments travel there."""
        try:
            return self._pool.submit(_called, packed((function, arguments)))
        except BrokenProcessPool as error:
            raise _broken(error) from error


def result(future: Future[Any]) -> Any:
    """The result of a call in a process."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise _broken(error) from error


def _broken(error: BaseException) -> ClusterLost:
    return ClusterLost(
        f"a process ended before its work ({error}). If it ended at its start, the script runs again in each process: "
        'put its calls below `if __name__ == "__main__":`. If memory ran out, give fewer jobs'
    )


def packed(what: Any) -> bytes:
    """Objects for another process, by pickle, or by cloudpickle if it is installed."""
    here = getattr(sys.modules.get("__main__"), "__file__", None) is None
    found: Exception | None = None
    # What is defined in a notebook is not in a file that another process could import.
    for name in ("cloudpickle", "pickle") if here else ("pickle", "cloudpickle"):
        try:
            return importlib.import_module(name).dumps(what)
        except ImportError:
            continue
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            found = error
    raise GivewayError(
        f"this cannot travel to another process: {found}. Define disciplines and sources at the top of a module, or "
        "install cloudpickle, or leave out jobs"
    ) from found


def _begin() -> None:
    # Ctrl-C reaches all processes of a terminal. The first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _called(work: bytes) -> Any:
    function, arguments = pickle.loads(work)
    return function(*arguments)


class Local:
    """Batches of a sweep in processes, or, without any, in this thread."""

    repeats = False

    def __init__(self, processes: Processes | None, plan: _giveway.Sweep | None) -> None:
        self._processes = processes
        self._plan = plan
        self._spec: bytes = b""
        self._running: set[Future[Any]] = set()

    def send(self, spec: Spec) -> None:
        """Packs the request once."""
        if self._processes is not None:
            self._spec = packed(spec)

    def threads(self) -> int:
        """The number of processes."""
        return 1 if self._processes is None else self._processes.jobs

    def submit(self, tasks: list[Task], slow: Hashable | None = None) -> Hashable:
        """Starts a batch."""
        if self._processes is None:
            assert self._plan is not None
            future: Future[Any] = Future()
            began = time.perf_counter()
            future.set_result((self._plan.work(tasks), time.perf_counter() - began))
        else:
            future = self._processes.submit(_work, self._spec, tasks)
        self._running.add(future)
        return future

    def ready(self, seconds: float) -> list[Hashable]:
        """Batches that have ended."""
        done, self._running = concurrent.futures.wait(
            self._running, seconds, return_when=concurrent.futures.FIRST_COMPLETED
        )
        return list(done)

    def answer(self, handle: Any) -> Answer:
        """The answer of a batch."""
        return result(handle)

    def call(self, spec: Spec, tasks: list[Task]) -> Answer:
        """Runs tasks."""
        assert self._processes is not None
        return result(self._processes.submit(_work, packed(spec), tasks))

    def cancel(self, handles: Iterable[Hashable]) -> None:
        """Ends batches that have not begun."""
        for handle in self._running.intersection(handles):
            handle.cancel()


def _work(spec: bytes, tasks: list[Task]) -> Answer:
    return _cluster.work(pickle.loads(spec), tasks, "here")


def run_apart(scenario: Any, own: Any, traffic: Any, trial: tuple[int, int], asked: str) -> Any:
    """Runs one trial. Returns its files."""
    return _giveway.run_apart(scenario._read, own, traffic, trial, asked)
