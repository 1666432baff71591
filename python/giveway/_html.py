"""Results as HTML without scripts: a table, and a chart as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from . import _giveway

if TYPE_CHECKING:
    from ._run import Run

#: The main metric is the first of these that the runs contain.
MAIN = [
    "page_load_p95_s",
    "fct_p95_s",
    "voice_delay_p99_s",
    "short_wait_mean_slots",
    "wait_mean_slots",
    "sojourn_p99_s",
    "goodput_bps",
    "throughput",
]


def main_metric(run: Run) -> str | None:
    """The main metric of a run."""
    rows = run._numbers["results"]
    for metric in MAIN:
        found: list[dict[str, Any] | None] = [row["metrics"].get(metric) for row in rows]
        if any(each is not None and each["mean"] is not None for each in found):
            return metric
    return None


def scale(unit: str, values: Iterable[float]) -> tuple[float, str]:
    """A factor and a unit that make numbers short."""
    most = max((abs(value) for value in values), default=0.0)
    if unit == "s":
        return (1e3, "ms") if most < 1 else (1.0, "s")
    if unit == "bit/s":
        return (1e-9, "Gbit/s") if most >= 1e9 else (1e-6, "Mbit/s") if most >= 1e6 else (1e-3, "kbit/s")
    return 1.0, "" if unit == "1" else unit


def titled(label: str, unit: str = "") -> str:
    """A label as a title, with its unit."""
    return label[0].upper() + label[1:] + (f", {unit}" if unit else "")


def table(names: Sequence[str], groups: Sequence[Mapping[str, Any]]) -> str:
    """The table of the terminal."""
    titles = "".join(f'<th colspan="{len(group["columns"])}">{escape(group["title"])}</th>' for group in groups)
    columns = [column for group in groups for column in group["columns"]]
    heads = "".join(
        f"<th>{escape(name)}<br>{escape(unit)}</th>" for name, unit in (each["heading"] for each in columns)
    )
    body = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        + "".join(f"<td>{escape(column['cells'][row])}</td>" for column in columns)
        + "</tr>"
        for row, name in enumerate(names)
    )
    return (
        '<div style="overflow-x:auto"><table><thead>'
        f"<tr><th></th>{titles}</tr><tr><th></th>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def bars(run: Run) -> str:
    """The main metric of each discipline, with its 95 % confidence interval."""
    metric = main_metric(run)
    definition = _giveway.definition(metric) if metric else None
    if metric is None or definition is None:
        return ""
    title, unit, _ = definition
    looks = _giveway.looks(run.disciplines)
    estimates = [run.estimate(metric, name) for name in run.disciplines]
    factor, unit = scale(unit, (each.mean for each in estimates if each.mean is not None))
    ends = [(each.mean + (each.ci95 or 0.0)) * factor for each in estimates if each.mean is not None]
    most = max(ends, default=0.0) or 1.0
    left, width, height = 130, 380, 22
    parts: list[str] = []
    for row, (each, (colour, name, _)) in enumerate(zip(estimates, looks, strict=True)):
        y = row * height
        label = f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
        parts.append(label)
        if each.mean is None:
            parts.append(f'<text x="{left}" y="{y + 15}">-</text>')
            continue
        length = each.mean * factor / most * width
        half = (each.ci95 or 0.0) * factor / most * width
        parts.append(f'<rect x="{left}" y="{y + 4}" width="{length:.1f}" height="{height - 8}" fill="{colour}"/>')
        if half > 0:
            parts.append(
                f'<path d="M{left + max(length - half, 0):.1f} {y + 11}H{left + length + half:.1f}" '
                'stroke="currentColor" stroke-width="1.5" opacity="0.7"/>'
            )
        value = f"{each.mean * factor:.4g}"
        parts.append(f'<text x="{left + max(length + half, length) + 6:.1f}" y="{y + 15}">{value}</text>')
    seeds = len(run.seeds)
    note = "" if seeds < 2 else f"; lines: 95 % confidence intervals over {seeds} seeds"
    caption = titled(title, unit)
    return (
        f"<p>{escape(caption + note)}</p>"
        f'<svg role="img" aria-label="{escape(caption)}" width="{left + width + 60}" height="{len(looks) * height}" '
        f'style="font:12px sans-serif;fill:currentColor">{"".join(parts)}</svg>'
    )


def sentences(findings: Sequence[str]) -> str:
    """Findings as a list."""
    return "" if not findings else "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in findings) + "</ul>"
