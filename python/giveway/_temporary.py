"""Temporary folders."""

from __future__ import annotations

import shutil
import tempfile
import weakref


class Temporary:
    """A temporary folder, which is removed when nothing holds this object any more, or the process ends."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="giveway-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)
