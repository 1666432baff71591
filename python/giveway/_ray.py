"""Batches of a sweep on the workers of a Ray cluster."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from ._cluster import Answer, ClusterLost, Spec, Task, work
from ._errors import GivewayError

if TYPE_CHECKING:
    from collections.abc import Generator, Hashable, Iterable

#: A batch that loses its worker starts again this many times.
_AGAIN = 3


class Ray:
    """The workers of the cluster to which `ray` is connected."""

    repeats = True

    def __init__(self, ray: Any) -> None:
        if not ray.is_initialized():
            raise GivewayError("Ray is not connected to a cluster: call ray.init() first")
        self._ray = ray
        self._work: Any = ray.remote(num_cpus=1, max_retries=_AGAIN)(_work)
        self._sent: Any = None
        self._running: list[Any] = []
        # An error of a task is that of a worker's work, and not of the cluster.
        self._lost: Any = (ray.exceptions.RayError, ConnectionError, TimeoutError)

    @contextlib.contextmanager
    def _kept(self) -> Generator[None]:
        """Calls of the cluster, whose loss is an error of this package."""
        try:
            yield
        except self._ray.exceptions.RayTaskError as error:
            # The exception of the task, without the trace of the worker.
            raise error.cause from error
        except self._lost as error:
            first = str(error).strip().partition("\n")[0]
            raise ClusterLost(f"the cluster was lost ({type(error).__name__}: {first})") from error
        except Exception as error:
            if self._ray.is_initialized():
                raise
            raise ClusterLost("the cluster was lost: Ray is not connected any more") from error

    def send(self, spec: Spec) -> None:
        """Puts the request where every worker finds it."""
        with self._kept():
            self._sent = self._ray.put(spec)

    def threads(self) -> int:
        """The processors of the cluster."""
        with self._kept():
            return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, tasks: list[Task], slow: Hashable | None = None) -> Hashable:
        """Starts a batch. Ray gives it to a worker that is free, so never to a slow one."""
        with self._kept():
            handle: Any = self._work.remote(self._sent, tasks)
        self._running.append(handle)
        return handle

    def ready(self, seconds: float) -> list[Hashable]:
        """Batches that have ended."""
        with self._kept():
            ended, self._running = self._ray.wait(self._running, num_returns=1, timeout=seconds)
        return ended

    def answer(self, handle: Any) -> Answer:
        """The answer of a batch."""
        with self._kept():
            return self._ray.get(handle)

    def call(self, spec: Spec, tasks: list[Task]) -> Answer:
        """Runs tasks."""
        return self.answer(self._work.remote(spec, tasks))

    def cancel(self, handles: Iterable[Hashable]) -> None:
        """Ends batches."""
        for handle in handles:
            # One that has ended meanwhile cannot be cancelled.
            with contextlib.suppress(Exception):
                self._ray.cancel(handle)


def _work(spec: Spec, tasks: list[Task]) -> Answer:
    import ray

    context: Any = ray.get_runtime_context()
    where = f"{context.get_worker_id()} on {os.uname().nodename}"
    return work(spec, tasks, where)
