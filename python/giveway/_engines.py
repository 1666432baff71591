"""The engines of clusters, and which one a client belongs to."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from ._cluster import Engine
from ._dask import Dask
from ._ray import Ray


def engine_of(client: Any) -> Engine:
    """The engine of a client of Dask, or of the module ``ray``.

    Raises:
        TypeError: The client is of another type.
    """
    if isinstance(client, ModuleType) and client.__name__ == "ray":
        return Ray(client)
    if all(hasattr(client, name) for name in ("scatter", "submit", "nthreads")):
        return Dask(client)
    raise TypeError(
        f"client: {client!r} is not a cluster: give a client of Dask (distributed.Client(...)), or the module ray "
        "after ray.init()"
    )
