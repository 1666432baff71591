"""Batches of a sweep on the workers of a Dask cluster."""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from ._cluster import Answer, ClusterLost, Spec, Task, work
from ._extras import need

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterable

#: Time between two looks for finished batches, seconds.
_PAUSE = 0.005
#: A batch that loses its worker starts again this many times.
_AGAIN = 3


#: A cluster that had workers may be without any for this time, seconds: lost ones may come back.
_WITHOUT = 60.0


class Dask:
    """The workers of a client of Dask."""

    repeats = True

    def __init__(self, client: Any) -> None:
        distributed: Any = need("distributed", "a sweep on a cluster")
        self._client = client
        # With the results: fetching one later waits for a worker that has stopped since, up to ten minutes.
        self._completed: Any = distributed.as_completed(with_results=True, raise_errors=False)
        self._answers: dict[Hashable, Answer] = {}
        self._spec: Spec | None = None
        self._sent: Any = None
        self._numbers = 0
        self._lost: tuple[type[BaseException], ...] = (
            distributed.KilledWorker,
            distributed.scheduler.NoValidWorkerError,
            distributed.comm.CommClosedError,
            distributed.client.FutureCancelledError,
            OSError,
            TimeoutError,
            concurrent.futures.CancelledError,
        )
        #: The time of the last look at which there was a worker, seconds; None before the first.
        self._had: float | None = None

    def send(self, spec: Spec) -> None:
        """Hands the request to the scheduler, which sends it to each worker. A new worker, or one that takes the place
        of the last that had it, gets it too, which scattered data do not."""
        self._spec = spec
        with self._kept():
            self._sent = self._client.submit(_given, spec, key=f"giveway-{spec.name}", pure=True)

    def threads(self) -> int:
        """The threads of all workers."""
        with self._kept():
            threads = sum(self._client.nthreads().values())
        now = time.monotonic()
        if threads > 0:
            self._had = now
        elif self._had is not None and now - self._had > _WITHOUT:
            raise ClusterLost(f"all workers of the cluster are gone since {_WITHOUT:.0f} s")
        return max(1, threads)

    @contextlib.contextmanager
    def _kept(self) -> Generator[None]:
        """Calls of the cluster, whose loss is an error of this package."""
        try:
            yield
        except Exception as error:
            # What a closed client raises has many types.
            if not isinstance(error, self._lost) and self._client.status == "running":
                raise
            raise ClusterLost(f"the cluster was lost ({type(error).__name__}: {error})") from error

    def submit(self, tasks: list[Task], slow: Any = None) -> Hashable:
        """Starts a batch."""
        self._numbers += 1
        key = f"giveway-{self._numbers}-{os.getpid()}-{time.time_ns()}"
        # Dask sends a batch to a worker at once, where it waits for those before it.
        workers = None if slow is None else self._others(slow)
        # A worker fetches what was sent from another, which may have stopped. A repeated batch brings it.
        spec = self._sent if slow is None else self._spec
        future = self._client.submit(
            _work,
            spec,
            tasks,
            key=key,
            pure=False,
            retries=_AGAIN,
            workers=workers,
            allow_other_workers=workers is not None,
        )
        self._completed.add(future)
        return future

    def _others(self, slow: Any) -> list[str] | None:
        """The workers that neither run this batch nor hold its answer; None if there is no other one."""
        has: dict[str, Any] = self._client.processing()
        holders: Any = self._client.who_has([slow]).get(slow.key, ())
        return [address for address, keys in has.items() if slow.key not in keys and address not in holders] or None

    def ready(self, seconds: float) -> list[Hashable]:
        """Batches whose answers have arrived, or that have failed."""
        until = time.monotonic() + seconds
        while not self._completed.has_ready():
            if time.monotonic() > until:
                return []
            time.sleep(_PAUSE)
        future, self._answers[future] = next(self._completed)
        return [future]

    def answer(self, handle: Any) -> Answer:
        """The answer of a batch that is ready."""
        answer = self._answers.pop(handle)
        if handle.status == "finished":
            return answer
        # Raises the error of the batch.
        with self._kept():
            return handle.result()

    def call(self, spec: Spec, tasks: list[Task]) -> Answer:
        """Runs tasks."""
        with self._kept():
            return self._client.submit(_work, spec, tasks, pure=False, retries=_AGAIN).result()

    def cancel(self, handles: Iterable[Hashable]) -> None:
        """Ends batches."""
        # A lost cluster has nothing to end.
        with contextlib.suppress(Exception):
            self._client.cancel(list(handles))


def _given(spec: Spec) -> Spec:
    return spec


def _work(spec: Spec, tasks: list[Task]) -> Answer:
    from distributed import get_worker

    try:
        where = str(get_worker().address)
    except ValueError:
        where = os.uname().nodename
    return work(spec, tasks, where)
