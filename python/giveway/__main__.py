"""The command ``giveway``, also as ``python -m giveway``."""

from __future__ import annotations

import signal
import sys
import sysconfig
from pathlib import Path

from . import _giveway


def main() -> None:
    """Runs the command line of this process, and ends it."""
    # Python's handler of Ctrl-C would wait for the end of the command. The command has its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for words in (["sweep", "query"], ["query"]):
        if sys.argv[1 : 1 + len(words)] == words:
            from ._sweep import print_query

            sys.exit(print_query(sys.argv[1 + len(words) :]))
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        script = Path(sysconfig.get_path("scripts")) / "giveway"
    code = _giveway.main(sys.argv[1:], str(script))
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
