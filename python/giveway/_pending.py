"""Run folders of interrupted runs, which another thread completes."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._errors import GivewayError

if TYPE_CHECKING:
    from . import _giveway
    from ._run import Run

_unfinished: list[Pending] = []


class Pending:
    """The runs that had finished before an interruption.

    Their tables and report are written to the folder while the program continues. A program that ends waits for them.
    """

    def __init__(self, later: _giveway.Later, make: Callable[[Any], Run | None]) -> None:
        self._later = later
        self._make = make
        self._run: Run | None = None
        self._error: GivewayError | None = None
        _unfinished.append(self)

    def run(self) -> Run | None:
        """Waits until the folder is complete. Returns its runs; None if none had finished.

        Raises:
            GivewayError: The folder could not be written.
        """
        if self in _unfinished:
            _unfinished.remove(self)
            try:
                found = self._later.result()
                self._run = None if found is None else self._make(found)
            except GivewayError as error:
                self._error = error
        if self._error is not None:
            raise self._error
        return self._run


def finish() -> None:
    """Waits until all folders are complete, so that they can be opened or continued."""
    for each in list(_unfinished):
        try:
            each.run()
        except GivewayError:
            # `Interrupted.run` raises it.
            continue


atexit.register(finish)
