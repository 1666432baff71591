"""Progress of runs: a line on a terminal, a bar in a notebook, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from html import escape
from typing import Any, TypeAlias

from . import _giveway
from ._numbers import is_truth

Progress: TypeAlias = "bool | Callable[[float], None] | None"
"""True and False switch the progress on and off; None shows it on a terminal and in a notebook. A function is called
with the share that is done, 0 to 1; an exception of it stops the runs."""

#: Time between two changes of what is shown, seconds.
_PERIOD = 0.1
#: Progress of short runs would only flicker.
_DELAY = 0.5
_WIDTH = 30


@contextmanager
def shown(progress: Progress, title: str) -> Generator[Callable[[float], None] | None]:
    """A function that shows progress, while the context lasts."""
    if callable(progress):
        yield progress
        return
    if progress is not None and not is_truth(progress):
        raise TypeError(f"progress is True, False or a function of the share that is done, not {progress!r}")
    notebook = _in_notebook()
    if (progress is not None and not progress) or (progress is None and not notebook and not sys.stderr.isatty()):
        yield None
        return
    # The title may be the name of a file.
    bar = _Notebook(escape(title)) if notebook else _Line(_giveway.harmless(title))
    try:
        yield bar
    finally:
        bar.end()


class _Bar:
    def __init__(self, title: str) -> None:
        self.title = title
        self.began = time.monotonic()
        self.last = self.began - _PERIOD
        self.drawn = False
        self.first: float | None = None

    def __call__(self, share: float) -> None:
        now = time.monotonic()
        if self.first is None:
            # The trials of an earlier call took no time of this one.
            self.first, self.began = share, now
        if now - self.began < _DELAY or now - self.last < _PERIOD:
            return
        self.last = now
        since = share - self.first
        left = (now - self.began) * (1 - share) / since if since > 0.02 else None
        self.draw(share, "" if left is None else f"{left:.0f} s left")
        self.drawn = True

    def draw(self, share: float, left: str) -> None:
        raise NotImplementedError

    def end(self) -> None:
        """Removes the bar."""


class _Line(_Bar):
    def draw(self, share: float, left: str) -> None:
        full = "#" * round(share * _WIDTH)
        sys.stderr.write(f"\r{self.title} [{full:<{_WIDTH}}] {share:4.0%} {left:<12}")
        sys.stderr.flush()

    def end(self) -> None:
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _Notebook(_Bar):
    def __init__(self, title: str) -> None:
        super().__init__(title)
        self.handle: Any = None

    def draw(self, share: float, left: str) -> None:
        from IPython.display import HTML, display  # pyright: ignore

        page = HTML(f'{self.title} <progress max="1" value="{share:.3f}"></progress> {share:.0%} {left}')
        if self.handle is None:
            self.handle = display(page, display_id=True)
        else:
            self.handle.update(page)

    def end(self) -> None:
        if self.handle is not None:
            from IPython.display import HTML  # pyright: ignore

            self.handle.update(HTML(""))


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules and "IPython" in sys.modules
