"""Lists of transfers, and traces of links, as files that a scenario reads."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import GivewayError

if TYPE_CHECKING:
    from ._run import Run

__all__ = ["read_mahimahi", "trace_rates", "write_flow_list"]

#: Bytes that a line of a trace lets pass.
_PACKET = 1500


def write_flow_list(
    run: Run,
    path: str | os.PathLike[str],
    discipline: str | None = None,
    *,
    seed: int | None = None,
    source: str | None = None,
) -> int:
    """Writes the transfers of a run as the CSV file of the traffic ``flow_list``. Returns their number.

    With it another simulator, or another scenario, transfers the same bytes at the same times. Transfers without an
    end and datagrams are left out.

    Args:
        run: The results.
        path: The file.
        discipline: A name of ``run.disciplines``, or its beginning; by default the only discipline.
        seed: By default the first seed.
        source: Only the transfers of this source.
    """
    name = run.disciplines[run._index(discipline)]
    seed = run.seeds[0] if seed is None else seed
    rows = [row for row in run.flows.rows() if (row["qdisc"], row["seed"]) == (name, seed)]
    if source is not None and source not in {row["source"] for row in rows}:
        known = ", ".join(sorted({str(row["source"]) for row in rows}))
        raise ValueError(f"there is no source {source!r}; the sources are {known}")
    chosen: list[Any] = [
        row for row in rows if row["kind"] == "transfer" and source in (None, row["source"]) and row["bytes"]
    ]
    chosen.sort(key=lambda row: (row["start_s"], row["source"], row["flow"]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(["start_s", "src", "dst", "size_bytes"])
        lines.writerows([f"{row['start_s']:.9f}", row["from"], row["to"], row["bytes"]] for row in chosen)
    return len(chosen)


def read_mahimahi(path: str | os.PathLike[str]) -> list[int]:
    """Reads a trace of mahimahi: the time of each packet of 1,500 bytes that may leave, milliseconds.

    Raises:
        GivewayError: A line is not a time, or the times go back.
    """
    times: list[int] = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if not text:
            continue
        if not (text.isascii() and text.isdigit()):
            raise GivewayError(f"{os.fspath(path)}, line {number}: {text!r} is not a time in whole milliseconds")
        if times and int(text) < times[-1]:
            raise GivewayError(f"{os.fspath(path)}, line {number}: {text} is before the line above, {times[-1]}")
        times.append(int(text))
    if not times:
        raise GivewayError(f"{os.fspath(path)} has no line with a time")
    return times


def trace_rates(times: list[int], *, window: float = 1.0) -> list[tuple[float, float]]:
    """The rate of a trace in each window: its begin in seconds, and bit/s. For plots.

    Args:
        times: A trace, as `read_mahimahi` reads it.
        window: Length of a window, seconds.
    """
    if not window > 0:
        raise ValueError(f"window: {window} s is not a length of time")
    if not times:
        return []
    length = window * 1e3
    counts = [0] * (int(times[-1] // length) + 1)
    for time in times:
        counts[int(time // length)] += 1
    return [(number * window, count * _PACKET * 8 / window) for number, count in enumerate(counts)]
