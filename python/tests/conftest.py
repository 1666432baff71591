"""Shared by the tests of the package."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

import giveway

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "scenarios" / "quickstart.toml"
CAPTURE = ROOT / "examples" / "home-uplink.pcapng"

# The same examples each time, so that a failure can be repeated. A slow machine does not fail a test.
settings.register_profile("giveway", deadline=None, derandomize=True, database=None, max_examples=100)
settings.load_profile("giveway")


@pytest.fixture(scope="session")
def quick() -> giveway.Run:
    """A short run of three disciplines with two seeds."""
    return giveway.run(QUICKSTART, ["fifo limit 300p", "fq_codel", "efd"], seeds=2, short=True)


@pytest.fixture(scope="session")
def folder(quick: giveway.Run, tmp_path_factory: pytest.TempPathFactory) -> giveway.Run:
    """The same results in a run folder."""
    return quick.save(tmp_path_factory.mktemp("saved") / "quickstart")


@pytest.fixture(scope="session")
def python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """A Python process with the package: `python("-c", "...")`."""

    def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            env=environment(),
            cwd=cwd,
            timeout=120,
            check=False,
        )

    return run


def environment() -> dict[str, str]:
    """The environment of a process that imports the same package."""
    places = [str(Path(giveway.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    paths = os.pathsep.join(place for place in places if place)
    # Without it, `python -m` searches the working folder first. From the folder of the sources it would find
    # the package there, which has no compiled part, instead of the installed one.
    return {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
