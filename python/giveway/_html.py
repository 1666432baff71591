"""Results as HTML without scripts: a table, and a chart as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from . import _giveway

if TYPE_CHECKING:
    from ._run import Run

#: The first metric that the runs have is the main one: a metric, its name, its scale and its unit.
MAIN: list[tuple[str, str, float, str]] = [
    ("page_load_p95_s", "Page load time, 95th percentile", 1e3, "ms"),
    ("fct_p95_s", "Flow completion time, 95th percentile", 1e3, "ms"),
    ("voice_delay_p99_s", "Delay of calls, 99th percentile", 1e3, "ms"),
    ("short_wait_mean_slots", "Mean wait of short packets", 1.0, "slots"),
    ("wait_mean_slots", "Mean wait", 1.0, "slots"),
    ("sojourn_p99_s", "Sojourn time, 99th percentile", 1e3, "ms"),
    ("goodput_bps", "Goodput", 1e-6, "Mbit/s"),
    ("throughput", "Throughput", 1.0, ""),
]


def main_metric(run: Run) -> tuple[str, str, float, str] | None:
    """The main metric of a run."""
    rows = run._numbers["results"]
    for entry in MAIN:
        found: list[dict[str, Any] | None] = [row["metrics"].get(entry[0]) for row in rows]
        if any(each is not None and each["mean"] is not None for each in found):
            return entry
    return None


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
    found = main_metric(run)
    if found is None:
        return ""
    metric, title, scale, unit = found
    looks = _giveway.looks(run.disciplines)
    estimates = [run.estimate(metric, name) for name in run.disciplines]
    ends = [(each.mean + (each.ci95 or 0.0)) * scale for each in estimates if each.mean is not None]
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
        length = each.mean * scale / most * width
        half = (each.ci95 or 0.0) * scale / most * width
        parts.append(f'<rect x="{left}" y="{y + 4}" width="{length:.1f}" height="{height - 8}" fill="{colour}"/>')
        if half > 0:
            parts.append(
                f'<path d="M{left + max(length - half, 0):.1f} {y + 11}H{left + length + half:.1f}" '
                'stroke="currentColor" stroke-width="1.5" opacity="0.7"/>'
            )
        value = f"{each.mean * scale:.4g}"
        parts.append(f'<text x="{left + max(length + half, length) + 6:.1f}" y="{y + 15}">{value}</text>')
    seeds = len(run.seeds)
    note = "" if seeds < 2 else f"; lines: 95 % confidence intervals over {seeds} seeds"
    caption = f"{title}, {unit}" if unit else title
    return (
        f"<p>{escape(caption + note)}</p>"
        f'<svg role="img" aria-label="{escape(caption)}" width="{left + width + 60}" height="{len(looks) * height}" '
        f'style="font:12px sans-serif;fill:currentColor">{"".join(parts)}</svg>'
    )


def sentences(findings: Sequence[str]) -> str:
    """Findings as a list."""
    return "" if not findings else "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in findings) + "</ul>"
