"""Data files of flent, the network tester (<https://flent.org>): written from simulations, and read beside them.

flent runs tests such as RRUL on real networks, and plots throughput and ping times. `write` makes the same kind of
file from a simulation, so that flent plots and tabulates it. `read` reads the files of real tests, and `figure`
draws both::

    run = giveway.run("scenarios/quickstart.toml", ["fifo limit 300p", "fq_codel"])
    giveway.flent.write(run, "fq_codel.flent.gz", "fq_codel")

    simulated = giveway.flent.measurement(run, "fq_codel")
    measured = giveway.flent.read("rrul-2026-05-01.flent.gz")
    giveway.flent.figure(simulated, measured).savefig("both.pdf")

A simulation is a file of flent's test ``rrul_var``. Its series are:

- ``TCP upload::NAME``: what the first measured port sends for the source NAME, Mbit/s, with headers and
  retransmissions; ``TCP download::NAME``: what the port of the other direction sends, if it is measured, too.
  Sources of datagrams, such as calls, have none, and neither have acknowledgements alone.
- ``Ping (ms)::UDP NAME``: the mean delay of the datagrams of NAME, from sender to receiver. It is a one-way delay;
  the ping of flent is the time there and back. In a simulation without datagrams it is the delay of the data of TCP,
  ``Ping (ms)::NAME``.
- ``TCP upload sum``, ``TCP upload avg``, ``TCP totals``, ``Ping (ms) avg``: sums and means of these, as flent
  computes them.
"""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import _giveway, pictures
from ._errors import GivewayError
from ._extras import need

if TYPE_CHECKING:
    import matplotlib.figure

    from ._run import Run

__all__ = ["Measurement", "figure", "measurement", "read", "write"]

#: The version of the format.
_VERSION = 4
_TEST = "rrul_var"
_PING = "Ping (ms)"
_MBIT = "Mbits/s"

Values = list[float | None]


@dataclass(frozen=True)
class Measurement:
    """The series of a data file of flent."""

    title: str
    x: list[float]
    """Times, seconds from the begin of the test."""
    series: dict[str, Values]
    """Values at these times, by the name of the series; None where a value is missing."""
    units: dict[str, str]
    """The unit of each series, such as ``"Mbits/s"`` or ``"ms"``; empty if the file does not say it."""
    metadata: dict[str, Any]
    """What the file says about the test: ``NAME``, ``TITLE``, ``TIME``, ``LENGTH``, ``HOST`` and others."""
    raw: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """The measured values before flent interpolated them at common times, by the name of the series."""

    def to_dict(self) -> dict[str, Values]:
        """All series as columns, with the times as ``time_s``, for a library of data frames."""
        return {"time_s": [*self.x], **self.series}

    def mean(self, name: str) -> float | None:
        """The mean of a series."""
        values = [value for value in self._named(name) if value is not None]
        return sum(values) / len(values) if values else None

    def _named(self, name: str) -> Values:
        if name not in self.series:
            raise KeyError(f"there is no series {name!r}; there are {', '.join(self.series)}")
        return self.series[name]

    def _total(self) -> Values | None:
        """The throughput of all connections: a sum of the file, or the sum of its series."""
        for name in ("TCP totals", "TCP upload sum", "TCP download sum"):
            if any(value is not None for value in self.series.get(name, [])):
                return self.series[name]
        parts = [values for name, values in self.series.items() if name.startswith("TCP") and not _combined(name)]
        return _each(parts, sum) if parts else None

    def _ping(self) -> Values | None:
        """The mean of all pings."""
        if any(value is not None for value in self.series.get(f"{_PING} avg", [])):
            return self.series[f"{_PING} avg"]
        parts = [values for name, values in self.series.items() if name.startswith("Ping") and not _combined(name)]
        return _each(parts, _mean) if parts else None

    def __repr__(self) -> str:
        seconds = self.x[-1] - self.x[0] if self.x else 0.0
        return f"<giveway.flent.Measurement {self.title!r}: {seconds:g} s of {', '.join(self.series)}>"


def _combined(name: str) -> bool:
    return name.endswith((" sum", " avg", " totals", " fairness"))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _each(parts: Sequence[Values], combine: Callable[[Sequence[float]], float]) -> Values:
    """Combines the values at each time, without those that are missing."""
    combined: Values = []
    for row in zip(*parts, strict=True):
        present = [value for value in row if value is not None]
        combined.append(combine(present) if present else None)
    return combined


# --- simulations


def measurement(run: Run, discipline: str | None = None, *, seed: int | None = None) -> Measurement:
    """The run of a discipline as flent would have measured it.

    Args:
        run: The results.
        discipline: A name of ``run.disciplines``, or its beginning; by default the only discipline.
        seed: By default the first seed.
    """
    name = run.disciplines[run._index(discipline)]
    seed = run.seeds[0] if seed is None else seed
    if seed not in run.seeds:
        raise ValueError(f"seed {seed} did not run; the seeds are {run.seeds}")
    up = run.ports[0] if run.ports else ""
    down = "->".join(reversed(up.split("->")))
    datagrams = {row["source"] for row in run.flows.rows() if row["kind"] == "datagrams"}

    def of_trial(table: str, column: str) -> dict[tuple[Any, Any], dict[Any, Any]]:
        """The values of a column at each time, by port and source."""
        found: dict[tuple[Any, Any], dict[Any, Any]] = {}
        for row in run.table(table).rows():
            if (row["qdisc"], row["seed"]) == (name, seed):
                found.setdefault((row["port"], row["source"]), {})[row["time_s"]] = (row[column], row["duration_s"])
        return found

    sent, delays = of_trial("shares", "bytes"), of_trial("delays", "delay_mean_s")
    # A source whose acknowledgements alone cross a port has no throughput there.
    received = of_trial("delays", "received_packets")
    data = {place for place, values in received.items() if any(packets for packets, _ in values.values())}
    x: list[float] = sorted({at for values in sent.values() for at in values})
    if not x:
        raise GivewayError(
            f"the run of {name} with seed {seed} has no throughput over time, as links of a network have"
        )
    series: dict[str, Values] = {}
    for port, direction in ((up, "upload"), (down, "download")):
        parts: list[Values] = []
        for (at, source), values in sent.items():
            if at == port and (at, source) in data and source not in datagrams:
                part: Values = [values[t][0] * 8e-6 / values[t][1] if t in values else None for t in x]
                series[f"TCP {direction}::{source}"] = part
                parts.append(part)
        if parts:
            series[f"TCP {direction} avg"] = _each(parts, _mean)
            series[f"TCP {direction} sum"] = _each(parts, sum)
    sums = [series[f"TCP {each} sum"] for each in ("upload", "download") if f"TCP {each} sum" in series]
    if sums:
        series["TCP totals"] = _each(sums, sum)
    pings: dict[str, Values] = {}
    for (port, source), values in delays.items():
        label = f"{_PING}::UDP {source}" if source in datagrams else f"{_PING}::{source}"
        ping: Values = [None if t not in values or values[t][0] is None else values[t][0] * 1e3 for t in x]
        if port in (up, down) and any(value is not None for value in ping) and label not in pings:
            pings[label] = ping
    # The data of TCP wait in their own queue, and say little about others.
    only = {label: values for label, values in pings.items() if "::UDP " in label} or pings
    series |= only
    if only:
        series[f"{_PING} avg"] = _each(list(only.values()), _mean)
    units = {each: "ms" if each.startswith("Ping") else _MBIT for each in series}
    title = run._results.title or run._results.name
    return Measurement(f"{name}: {title}", x, series, units, _metadata(run, name, seed, x, series, units))


def _metadata(
    run: Run, discipline: str, seed: int, x: list[float], series: Mapping[str, Values], units: Mapping[str, str]
) -> dict[str, Any]:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.datetime.fromtimestamp(int(epoch), datetime.UTC) if epoch else datetime.datetime.now(datetime.UTC)
    at = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    step = x[1] - x[0] if len(x) > 1 else 1.0
    local, _, host = run.ports[0].partition("->")
    streams = sum(1 for each in series if "::" in each and each.startswith("TCP upload"))
    return {
        "NAME": _TEST,
        "TITLE": f"{discipline}: {run._results.title or run._results.name}",
        "NOTE": f"Simulated by giveway {_giveway.VERSION}: {discipline}, seed {seed}. Pings are one-way delays.",
        "TIME": at,
        "T0": at,
        "LENGTH": round(x[-1] + step - x[0], 9),
        "TOTAL_LENGTH": round(x[-1] + step - x[0], 9),
        "STEP_SIZE": round(step, 9),
        "HOST": host,
        "HOSTS": [host],
        "LOCAL_HOST": local,
        "IP_VERSION": 4,
        "TEST_PARAMETERS": {"bidir_streams": str(streams)},
        "SERIES_META": {each: {"UNITS": unit} for each, unit in units.items()},
    }


def write(
    run: Run, path: str | os.PathLike[str], discipline: str | None = None, *, seed: int | None = None
) -> Measurement:
    """Writes the run of a discipline as a data file of flent. Returns what it wrote.

    Args:
        run: The results.
        path: The file; flent expects a name that ends with ``.flent.gz``.
        discipline: As in `measurement`.
        seed: By default the first seed.
    """
    made = measurement(run, discipline, seed=seed)
    start = datetime.datetime.fromisoformat(made.metadata["T0"]).timestamp()
    raw = {
        name: [{"t": start + t, "val": value} for t, value in zip(made.x, values, strict=True) if value is not None]
        for name, values in made.series.items()
        if not _combined(name)
    }
    content = {
        "version": _VERSION,
        "metadata": {**made.metadata, "DATA_FILENAME": Path(path).name},
        "x_values": made.x,
        "results": made.series,
        "raw_values": raw,
    }
    text = json.dumps(content, allow_nan=False, indent=1).encode()
    # Without a time, so that equal results are equal files.
    Path(path).write_bytes(gzip.compress(text, mtime=0) if str(path).endswith(".gz") else text)
    return made


# --- files


def read(path: str | os.PathLike[str]) -> Measurement:
    """Reads a data file of flent: ``.flent``, ``.flent.gz`` or ``.flent.bz2``.

    Raises:
        GivewayError: It is not a data file of flent, or has a newer format.
    """
    packed = Path(path).read_bytes()
    try:
        found: Any = json.loads(_unpacked(packed))
        # Numbers without a finite value are missing values.
        x, results = [float(each) for each in found["x_values"]], dict(found["results"])
        series = {str(name): [_number(value) for value in values] for name, values in results.items()}
        version, metadata = int(found["version"]), dict(found["metadata"])
        about = cast("dict[str, dict[str, Any]]", dict(metadata.get("SERIES_META") or {}))
        units = {name: str(about.get(name, {}).get("UNITS") or "") for name in series}
        listed = dict(found.get("raw_values") or {})
        raw = {str(name): [dict(each) for each in values] for name, values in listed.items()}
    except _WRONG as error:
        raise GivewayError(f"{os.fspath(path)} is not a data file of flent: {error or type(error).__name__}") from error
    if version > _VERSION:
        raise GivewayError(
            f"{os.fspath(path)} has version {version} of flent's format; this package reads up to {_VERSION}"
        )
    wrong = [name for name, values in series.items() if len(values) != len(x)]
    if wrong:
        raise GivewayError(f"{os.fspath(path)} is damaged: the series {wrong[0]!r} has not one value for each time")
    title = str(metadata.get("TITLE") or metadata.get("NAME") or Path(path).name)
    return Measurement(title, x, series, units, metadata, raw)


#: The errors of files that are damaged, of any kind.
_WRONG = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    zlib.error,
)

#: The maximum number of bytes of a file after decompression. A test of a day needs a tenth of it.
_MOST_BYTES = 1 << 28


def _unpacked(content: bytes) -> bytes:
    """The content of a file, which may be compressed."""
    opened: Any = io.BytesIO(content)
    if content.startswith(b"\x1f\x8b"):
        opened = gzip.GzipFile(fileobj=opened)
    elif content.startswith(b"BZh"):
        opened = bz2.BZ2File(opened)
    unpacked: bytes = opened.read(_MOST_BYTES + 1)
    if len(unpacked) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes")
    return unpacked


def _number(value: Any) -> float | None:
    if value is None:
        return None
    number = float(value)
    return number if number - number == 0 else None


# --- pictures


def figure(
    *measurements: Measurement | str | os.PathLike[str], labels: Sequence[str] | None = None, columns: int = 2
) -> matplotlib.figure.Figure:
    """A figure with the throughput of all connections and the mean ping of each measurement, one above the other.

    Args:
        measurements: Simulations (`measurement`), measured files (`read`), or their paths.
        labels: Names for the legend; by default the titles.
        columns: 1 or 2: the width of the figure in columns of a paper.
    """
    if not measurements:
        raise ValueError("give at least one measurement")
    if columns not in pictures.WIDTHS:
        raise ValueError(f"columns: a figure has 1 or 2, not {columns}")
    read_all = [each if isinstance(each, Measurement) else read(each) for each in measurements]
    names = [each.title for each in read_all] if labels is None else list(labels)
    if len(names) != len(read_all):
        raise ValueError(f"labels: give {len(read_all)}, one for each measurement, not {len(names)}")
    module = need("matplotlib.figure", "a figure")
    with pictures.style():
        drawn = module.Figure(figsize=(pictures.WIDTHS[columns], pictures.WIDTHS[1]), layout="constrained")
        upper, lower = drawn.subplots(2, 1, sharex=True)
        for each, name in zip(read_all, names, strict=True):
            for axes, values in ((upper, each._total()), (lower, each._ping())):
                points = [(t, value) for t, value in zip(each.x, values or [], strict=False) if value is not None]
                axes.plot([t for t, _ in points], [value for _, value in points], label=name)
        upper.set_ylabel("Throughput, Mbit/s")
        lower.set_ylabel("Ping, ms")
        lower.set_xlabel("Time, s")
        for axes in (upper, lower):
            axes.set_ylim(bottom=0)
        upper.legend()
    return drawn
