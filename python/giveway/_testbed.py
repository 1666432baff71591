"""Real TCP of this machine over a router with a discipline, in network namespaces. Needs Linux and root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

from ._errors import GivewayError
from ._run import Run
from ._run import open as open_folder
from ._scenario import Scenario, Source, assignments
from ._temporary import Temporary


def testbed(
    scenario: Source,
    disciplines: Sequence[str] | None = None,
    seeds: int | None = None,
    *,
    changes: Mapping[str, Any] | None = None,
    attempts: int | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Run:
    """Runs a scenario for a test bed: real Linux hosts send the simulator's workload through a router.

    It runs in a process of its own, one run at a time, in real time.

    Args:
        scenario: A scenario with ``backend = "live"``, such as ``scenarios/testbed/quickstart.toml``.
        disciplines: What to compare; ``"kernel:fq_codel"`` is a qdisc of the kernel.
        seeds: The number of seeds.
        changes: Keys of the scenario to change.
        attempts: Attempts of a run that was disturbed.
        out: A folder for the results; by default a temporary one, whose results are then in memory.
        force: Replace the contents of ``out``.

    Raises:
        GivewayError: The machine cannot run it, with the reason and the remedy.
    """
    read = Scenario(scenario, changes=changes)
    if disciplines is not None:
        read = Scenario(read, changes={"disciplines": list(disciplines)})
    keep = Temporary() if out is None else None
    place = os.path.join(keep.name, "testbed") if keep else os.fspath(out or "")
    with TemporaryDirectory() as folder:
        sets: list[str] = []
        if isinstance(scenario, (str, os.PathLike)):
            # Names of files in the scenario are relative to its own folder.
            path = os.fspath(scenario)
            compared = {} if disciplines is None else {"disciplines": list(disciplines)}
            for assignment in assignments({**(changes or {}), **compared}):
                sets += ["--set", assignment]
        else:
            path = os.path.join(folder, f"{read.name}.toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(read.to_toml())
        words = [sys.executable, "-m", "giveway", "testbed", path, "--quiet", "--out", place, *sets]
        words += [] if seeds is None else ["--seeds", str(seeds)]
        words += [] if attempts is None else ["--attempts", str(attempts)]
        words += ["--force"] if force else []
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise GivewayError(
            done.stderr.strip().replace(path, read.name) or f"the test bed ended with the exit code {done.returncode}"
        )
    run = open_folder(place)
    if keep is not None:
        # The folder exists as long as its results.
        run.__dict__["_keep"] = keep
    return run
