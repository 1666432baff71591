"""Lists of transfers, and traces of links, as files that a scenario reads."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import GivewayError

if TYPE_CHECKING:
    from ._run import Run

__all__ = ["Flow", "flow_list_from_ns3", "read_mahimahi", "read_ns3", "trace_rates", "write_flow_list", "write_ns3"]

#: Bytes that a line of a trace lets pass.
_PACKET = 1500
#: The last time of a trace, milliseconds: no run is longer than 4,800 hours.
_MOST_MS = 4_800 * 3_600_000


class Flow(NamedTuple):
    """A transfer of a list."""

    start_s: float
    src: str
    """The node that sends."""
    dst: str
    size_bytes: int


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
    chosen = _transfers(run, discipline, seed, source)
    _write(chosen, path)
    return len(chosen)


def write_ns3(
    run: Run,
    path: str | os.PathLike[str],
    hosts: Sequence[str],
    discipline: str | None = None,
    *,
    seed: int | None = None,
    source: str | None = None,
) -> int:
    """Writes the transfers of a run as a list of flows for simulations of data centres in ns-3. Returns their number.

    The first line gives the number of flows. Each further line is ``source destination 3 port bytes seconds``: this
    is the form of the HPCC simulator and of those that come from it. Nodes are numbers there.

    Args:
        run: The results.
        path: The file.
        hosts: The hosts, of which the first is node 0.
        discipline: A name of ``run.disciplines``, or its beginning; by default the only discipline.
        seed: By default the first seed.
        source: Only the transfers of this source.

    Raises:
        ValueError: A transfer is between other nodes than `hosts`.
    """
    chosen = _transfers(run, discipline, seed, source)
    missing = sorted({name for flow in chosen for name in (flow.src, flow.dst)} - set(hosts))
    if missing:
        raise ValueError(f"hosts: {missing[0]!r} sends or receives a transfer, and is not among the hosts")
    number = {host: place for place, host in enumerate(hosts)}
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{len(chosen)}\n")
        for flow in chosen:
            file.write(f"{number[flow.src]} {number[flow.dst]} 3 100 {flow.size_bytes} {flow.start_s:.9f}\n")
    return len(chosen)


def read_ns3(path: str | os.PathLike[str], hosts: Sequence[str] | str = "h{}") -> list[Flow]:
    """Reads a list of flows of ns-3 simulations of data centres: see `write_ns3`. Lines of four numbers, which leave
    out the ``3`` and the port, are read as well.

    Args:
        path: The file.
        hosts: The names of the nodes, from node 0 on; or a pattern such as ``"h{}"``, which names node 7 ``h7``.

    Raises:
        GivewayError: A line is not a flow, or the number of flows is another one.
    """

    def named(node: str) -> str:
        return hosts.format(node) if isinstance(hosts, str) else hosts[int(node)]

    where = os.fspath(path)
    rows = [(number, line.split()) for number, line in enumerate(_lines(path), 1)]
    rows = [(number, row) for number, row in rows if row]
    if not rows or len(rows[0][1]) != 1 or not _is_whole(rows[0][1][0]):
        raise GivewayError(f"{where}: the first line is not the number of flows")
    flows: list[Flow] = []
    for number, row in rows[1:]:
        try:
            src, dst, *rest, size, start = row
            if len(rest) not in (0, 2) or not all(_is_whole(each) for each in (src, dst, size)):
                raise ValueError
            flow = Flow(float(start), named(src), named(dst), int(size))
            if not (math.isfinite(flow.start_s) and flow.start_s >= 0 and flow.size_bytes > 0):
                raise ValueError
        except IndexError:
            raise GivewayError(f"{where}, line {number}: `hosts` names only {len(hosts)} nodes") from None
        except ValueError:
            form = "source destination 3 port bytes seconds"
            raise GivewayError(f"{where}, line {number}: {' '.join(row)!r} is not a flow: {form}") from None
        flows.append(flow)
    if len(flows) != int(rows[0][1][0]):
        raise GivewayError(f"{where}: the first line says {rows[0][1][0]} flows, and there are {len(flows)}")
    return flows


def flow_list_from_ns3(
    path: str | os.PathLike[str], to: str | os.PathLike[str], hosts: Sequence[str] | str = "h{}"
) -> int:
    """Writes the CSV file of the traffic ``flow_list`` from a list of flows of ns-3. Returns the number of flows.

    The first flow of such a list often begins at 2 s. Times are kept.

    Args:
        path: A file as `read_ns3` reads it.
        to: The CSV file.
        hosts: As in `read_ns3`.
    """
    flows = read_ns3(path, hosts)
    _write(flows, to)
    return len(flows)


def _write(flows: Sequence[Flow], path: str | os.PathLike[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(Flow._fields)
        lines.writerows([f"{flow.start_s:.9f}", *flow[1:]] for flow in flows)


def _lines(path: str | os.PathLike[str]) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise GivewayError(f"{os.fspath(path)} is not a text in UTF-8: {error}") from error


def _is_whole(text: str) -> bool:
    """True for a whole number of up to 18 digits, which fits into 64 bits."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def _transfers(run: Run, discipline: str | None, seed: int | None, source: str | None) -> list[Flow]:
    """The transfers of a run, in the order of their begins."""
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
    return [Flow(row["start_s"], row["from"], row["to"], row["bytes"]) for row in chosen]


def read_mahimahi(path: str | os.PathLike[str]) -> list[int]:
    """Reads a trace of mahimahi: the time of each packet of 1,500 bytes that may leave, milliseconds.

    Raises:
        GivewayError: A line is not a time, or the times go back.
    """
    times: list[int] = []
    for number, line in enumerate(_lines(path), 1):
        text = line.strip()
        if not text:
            continue
        if not _is_whole(text) or int(text) > _MOST_MS:
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
