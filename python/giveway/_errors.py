"""Exceptions and warnings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._run import Run


class GivewayError(Exception):
    """A request that cannot be carried out, or a run that failed. The message says what to do instead."""


class GivewayWarning(UserWarning):
    """A scenario that can run, but probably not as intended; or a remark of a run."""


@dataclass(frozen=True)
class Diagnostic:
    """One mistake in a scenario."""

    severity: str
    """``"error"`` or ``"warning"``."""
    message: str
    help: str | None
    """What to write instead."""
    file: str
    line: int | None
    """Line, from 1; None if the mistake is in an argument."""
    column: int | None
    """Column, from 1."""


class ScenarioError(GivewayError, ValueError):
    """A scenario with mistakes. The text of the exception shows each with its line, in which the place is
    underlined."""

    diagnostics: tuple[Diagnostic, ...]
    """All mistakes and warnings, in the order of their places."""

    def __init__(self, text: str, diagnostics: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(text)
        self.diagnostics = tuple(Diagnostic(**each) for each in diagnostics)

    @property
    def line(self) -> int | None:
        """Line of the first error, from 1; None if it is in an argument."""
        return self._first().line if self.diagnostics else None

    @property
    def column(self) -> int | None:
        """Column of the first error, from 1."""
        return self._first().column if self.diagnostics else None

    def _first(self) -> Diagnostic:
        errors = [each for each in self.diagnostics if each.severity == "error"]
        return (errors or list(self.diagnostics))[0]

    def __str__(self) -> str:
        # A traceback shows the name of the class before the text, which has several lines.
        return "\n" + str(self.args[0]).rstrip("\n")


class DisciplineError(GivewayError):
    """A discipline in Python that raised an exception (its cause), or that broke the contract.

    The text names the discipline, the link, the simulated time and the packet.
    """


class TrafficError(GivewayError):
    """A source of traffic in Python that raised an exception (its cause), or that broke the contract.

    The text names the source, its traffic and nodes, and the simulated time.
    """


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during runs. What was finished is kept."""

    def __init__(self, message: str, run: Run | Callable[[], Run | None] | None = None) -> None:
        super().__init__(message)
        self._run = run

    @property
    def run(self) -> Run | None:
        """The runs that had finished; None if there are none. If they have a folder, this waits until it is complete.

        Raises:
            GivewayError: The folder could not be written.
        """
        return self._run() if callable(self._run) else self._run


class MissingExtra(GivewayError, ImportError):
    """An optional package is not installed. The text names the command that installs it."""
