"""Pictures of results: one description, drawn by matplotlib for papers and by Altair for notebooks.

Every discipline is drawn in its colour of the reports. Error bars and bands are 95 % confidence intervals over
seeds (Student's t).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _giveway, _html
from ._extras import need

if TYPE_CHECKING:
    import altair
    import matplotlib.figure

    from ._run import Run

#: Widths of figures with one and two columns in two-column papers (IEEE, ACM), inches.
WIDTHS = {1: 3.35, 2: 7.0}
#: Height of a panel over its width, by default.
_ASPECT = 0.62
#: The maximum number of points of a line. A screen shows no more.
_MOST_POINTS = 2000


@dataclass
class Series:
    """One line, or one bar, of a picture."""

    name: str
    x: list[Any]
    y: list[float]
    half: list[float | None] | None = None
    """Half the width of the 95 % confidence interval at each point."""
    colour: str = "#444444"
    dash: list[int] = field(default_factory=list[int])


@dataclass
class Picture:
    """A picture with one pair of axes."""

    title: str
    x_title: str
    y_title: str
    kind: str
    """``"bars"``, ``"lines"``, ``"steps"``, ``"points"``."""
    series: list[Series]
    x_log: bool = False
    y_log: bool = False
    note: str = ""


def style() -> AbstractContextManager[None]:
    """The style of figures for papers, as a context: ``with giveway.pictures.style(): ...``."""
    return need("matplotlib.style", "style").context(str(Path(__file__).with_name("paper.mplstyle")))


def colours(disciplines: Iterable[str]) -> dict[str, str]:
    """The colour of each discipline in all pictures and reports."""
    names = list(disciplines)
    return {name: colour for name, (colour, _, _) in zip(names, _giveway.looks(names), strict=True)}


# --- what is drawn


def picture(
    run: Run, what: str | None = None, *, seed: int | None = None, port: str | None = None, source: str | None = None
) -> Picture:
    """The description of a picture.

    Args:
        run: The results.
        what: A metric, or ``"queue"``, ``"sojourn"``, ``"fct"``, ``"shares"``, ``"delays"``; by default the main
            metric.
        seed: The seed of pictures over time; by default the first.
        port: The measured port; by default the first.
        source: The group of sources of ``"fct"``, ``"shares"`` and ``"delays"``; by default all (``"fct"``) or each.
    """
    drawn: dict[str, Callable[[Run, int | None, str | None, str | None], Picture]] = {
        "queue": _queue,
        "sojourn": _sojourn,
        "fct": _fct,
        "shares": _shares,
        "delays": _delays,
    }
    if what in drawn:
        return drawn[what](run, seed, port, source)
    if what is None:
        main = _html.main_metric(run)
        if main is None:
            raise ValueError("these runs have none of the main metrics: name one, as in run.chart('drops')")
        what = main
    return _metric(run, what)


def _titled(title: str, unit: str) -> str:
    return f"{title}, {unit}" if unit else title


def _metric(run: Run, metric: str) -> Picture:
    label, unit, description = _giveway.definition(metric) or (metric, "", metric)
    estimates = [run.estimate(metric, name) for name in run.disciplines]
    factor, unit = _html.scale(unit, (each.mean for each in estimates if each.mean is not None))
    title = _html.titled(label)
    series = [
        Series(short, [short], [each.mean * factor], [None if each.ci95 is None else each.ci95 * factor], colour, dash)
        for each, (colour, short, dash) in zip(estimates, _giveway.looks(run.disciplines), strict=True)
        if each.mean is not None
    ]
    return Picture(title, "", _titled(title, unit), "bars", series, note=description)


def _columns(run: Run, table: str, names: list[str]) -> list[tuple[Any, ...]]:
    frame = run.table(table)
    return list(zip(*(frame[name] for name in names), strict=True))


def _looks(run: Run) -> dict[str, tuple[str, str, list[int]]]:
    return dict(zip(run.disciplines, _giveway.looks(run.disciplines), strict=True))


def _first(run: Run, seed: int | None, port: str | None) -> tuple[int, str]:
    seed = run.seeds[0] if seed is None else seed
    port = run.ports[0] if port is None else port
    if seed not in run.seeds:
        raise ValueError(f"seed {seed} did not run; the seeds are {run.seeds}")
    if port not in run.ports:
        raise ValueError(f"{port!r} is not measured; the ports are {', '.join(run.ports)}")
    return seed, port


def _thinned(points: list[tuple[Any, float]]) -> tuple[list[Any], list[float]]:
    step = max(1, -(-len(points) // _MOST_POINTS))
    kept = points[::step]
    return [x for x, _ in kept], [y for _, y in kept]


def _queue(run: Run, seed: int | None, port: str | None, source: str | None) -> Picture:
    seed, port = _first(run, seed, port)
    rows = _columns(run, "queue", ["qdisc", "seed", "port", "time_s", "backlog_packets"])
    series: list[Series] = []
    for name, (colour, short, dash) in _looks(run).items():
        points = [(t, float(n)) for q, s, p, t, n in rows if (q, s, p) == (name, seed, port)]
        series.append(Series(short, *_thinned(points), None, colour, dash))
    return Picture(f"Backlog of {port}, seed {seed}", "Time, s", "Backlog, packets", "steps", series)


def _sojourn(run: Run, seed: int | None, port: str | None, source: str | None) -> Picture:
    _, port = _first(run, None, port)
    rows = _columns(run, "sojourn", ["qdisc", "port", "packets", "share", "sojourn_s"])
    found: dict[str, dict[float, list[float]]] = {}
    for qdisc, at, packets, share, sojourn in rows:
        if at == port and packets == "all":
            found.setdefault(qdisc, {}).setdefault(share, []).append(sojourn)
    series: list[Series] = []
    for name, (colour, short, dash) in _looks(run).items():
        points = sorted((sum(each) / len(each) * 1e3, share) for share, each in found.get(name, {}).items())
        series.append(Series(short, [x for x, _ in points], [y for _, y in points], None, colour, dash))
    log = all(x > 0 for each in series for x in each.x[1:])
    note = "Mean over the seeds of each quantile."
    return Picture(
        f"Sojourn times at {port}", "Sojourn time, ms", "Share of packets", "lines", series, x_log=log, note=note
    )


def _fct(run: Run, seed: int | None, port: str | None, source: str | None) -> Picture:
    rows = _columns(run, "flows", ["qdisc", "source", "kind", "in_interval", "fct_s"])
    sources = {each for _, each, _, _, _ in rows}
    if source is not None and source not in sources:
        raise ValueError(f"there is no source {source!r}; the sources are {', '.join(sorted(sources))}")
    series: list[Series] = []
    for name, (colour, short, dash) in _looks(run).items():
        values = sorted(
            fct
            for q, s, kind, inside, fct in rows
            if q == name and inside and fct is not None and kind == "transfer" and source in (None, s)
        )
        points = [(value, (rank + 1) / len(values)) for rank, value in enumerate(values)]
        series.append(Series(short, *_thinned(points), None, colour, dash))
    if not any(each.x for each in series):
        raise ValueError("no transfer was completed within the measurement interval")
    of = "" if source is None else f" of {source}"
    return Picture(
        f"Flow completion times{of}", "Flow completion time, s", "Share of transfers", "lines", series, x_log=True
    )


def _over_time(
    run: Run, table: str, column: str, factor: Callable[[Any, float], float], seed: int, port: str, source: str | None
) -> list[Series]:
    rows = _columns(run, table, ["qdisc", "seed", "port", "source", "time_s", "duration_s", column])
    sources = list(dict.fromkeys(row[3] for row in rows if row[2] == port))
    if source is not None and source not in sources:
        raise ValueError(f"there is no source {source!r} at {port}; the sources are {', '.join(sources)}")
    series: list[Series] = []
    for name, (colour, short, dash) in _looks(run).items():
        for each in sources if source is None else [source]:
            points = [
                (t, factor(value, span))
                for q, s, p, of, t, span, value in rows
                if (q, s, p, of) == (name, seed, port, each) and value is not None
            ]
            label = short if len(sources) == 1 or source is not None else f"{short}, {each}"
            series.append(Series(label, *_thinned(points), None, colour, dash))
    return series


def _shares(run: Run, seed: int | None, port: str | None, source: str | None) -> Picture:
    seed, port = _first(run, seed, port)
    series = _over_time(
        run, "shares", "bytes", lambda value, span: value * 8e-6 / span if span else 0.0, seed, port, source
    )
    return Picture(f"Throughput at {port}, seed {seed}", "Time, s", "Throughput, Mbit/s", "lines", series)


def _delays(run: Run, seed: int | None, port: str | None, source: str | None) -> Picture:
    seed, port = _first(run, seed, port)
    series = _over_time(run, "delays", "sojourn_mean_s", lambda value, _: value * 1e3, seed, port, source)
    return Picture(f"Sojourn time at {port}, seed {seed}", "Time, s", "Mean sojourn time, ms", "lines", series)


# --- matplotlib


def figure(picture: Picture, *, columns: int = 1, height: float | None = None) -> matplotlib.figure.Figure:
    """The picture as a figure for a paper: ``.savefig("name.pdf")``, or ``"name.pgf"`` for LaTeX."""
    if columns not in WIDTHS:
        raise ValueError(f"columns: a figure has 1 or 2, not {columns}")
    module = need("matplotlib.figure", "a figure")
    with style():
        drawn = module.Figure(figsize=(WIDTHS[columns], height or WIDTHS[1] * _ASPECT), layout="constrained")
        draw(picture, drawn.add_subplot())
    return drawn


def draw(picture: Picture, axes: Any) -> None:
    """Draws the picture into axes of matplotlib."""
    if picture.kind == "bars":
        _draw_bars(picture, axes)
    else:
        for each in picture.series:
            _draw_line(picture, each, axes)
        if len(picture.series) > 1:
            axes.legend()
    axes.set_xlabel(picture.x_title)
    # A column is less high than wide.
    axes.set_ylabel(textwrap.fill(picture.y_title, 30))
    if picture.x_log:
        axes.set_xscale("log")
    if picture.y_log:
        axes.set_yscale("log")


def _draw_bars(picture: Picture, axes: Any) -> None:
    for place, each in enumerate(picture.series):
        half = each.half[0] if each.half else None
        # A quantity that is never negative has no interval below zero.
        below = None if half is None else min(half, each.y[0]) if each.y[0] >= 0 else half
        error = None if half is None else [[below], [half]]
        axes.bar([place], each.y, width=0.7, color=each.colour, yerr=error, error_kw={"elinewidth": 0.8})
    axes.set_xticks(range(len(picture.series)), [each.name for each in picture.series], rotation=30, ha="right")
    axes.grid(visible=False, axis="x")


def _draw_line(picture: Picture, each: Series, axes: Any) -> None:
    dash: Any = (0, [length * 0.6 for length in each.dash]) if each.dash else "solid"
    marker = "o" if picture.kind == "points" or (each.half and len(each.x) < 40) else None
    options: dict[str, Any] = {
        "color": each.colour,
        "linestyle": "none" if picture.kind == "points" else dash,
        "label": each.name,
        "marker": marker,
    }
    if picture.kind == "steps":
        options["drawstyle"] = "steps-post"
    if each.half:
        axes.errorbar(each.x, each.y, yerr=[half or 0.0 for half in each.half], elinewidth=0.8, **options)
    else:
        axes.plot(each.x, each.y, **options)


# --- figures of reproduced papers

#: Grey of what a paper states, unlike the colours of disciplines.
_STATED = "#666666"


def paper_figure(data: Mapping[str, Any], *, columns: int = 1, variant: str | None = None) -> matplotlib.figure.Figure:
    """A figure of a reproduced paper, from its data: our means with 95 % intervals, and what the paper states.

    A grey bracket is the band in which a claim of the paper holds, at the point that it is about.

    Args:
        data: :meth:`giveway.Paper.figure_data`.
        columns: 1 or 2: the width of the figure in columns of a paper.
        variant: The variant of the study; by default the one that verdicts are about.
    """
    if columns not in WIDTHS:
        raise ValueError(f"columns: a figure has 1 or 2, not {columns}")
    panels: list[dict[str, Any]] = data["panels"]
    if not panels:
        raise ValueError(f"{data['heading']} has no panels: its numbers are in the claims")
    first = panels[0]["variant"] if variant is None else variant
    chosen = [panel for panel in panels if panel["variant"] == first]
    if not chosen:
        known = ", ".join(dict.fromkeys(panel["variant"] for panel in panels))
        raise KeyError(f"the figure is not drawn under the variant {variant!r}; the variants are {known}")
    module = need("matplotlib.figure", "a figure")
    across = min(len(chosen), 2 if columns == 2 else 1)
    down = -(-len(chosen) // across)
    with style():
        size = (WIDTHS[columns], WIDTHS[1] * _ASPECT * down)
        drawn = module.Figure(figsize=size, layout="constrained")
        axes = drawn.subplots(down, across, squeeze=False).flat
        for place, panel in zip(axes, chosen, strict=False):
            _draw_panel(panel, place)
        for place in list(axes)[len(chosen) :]:
            place.remove()
    return drawn


def _draw_panel(panel: Mapping[str, Any], axes: Any) -> None:
    series: list[dict[str, Any]] = panel["series"]
    measured = [each for each in series if each["kind"] == "measured"]
    looks = _giveway.looks([each["discipline"] or each["name"] for each in measured])
    colours = {id(each): (colour, dash) for each, (colour, _, dash) in zip(measured, looks, strict=True)}
    bars = panel["mark"] == "bars"
    width = 0.8 / max(len(series), 1)
    places: dict[str, float] = {}
    for number, each in enumerate(series):
        colour, dash = colours.get(id(each), ("#000000", [2, 2] if each["kind"] == "formula" else [6, 2]))
        if bars:
            shift = (number - (len(series) - 1) / 2) * width
            places[each["name"]] = shift
            error = [half or 0.0 for half in each["half_width"]]
            x = [at + shift for at in each["x"]]
            axes.bar(
                x, each["y"], width=width, color=colour, label=each["name"], yerr=error, error_kw={"elinewidth": 0.8}
            )
            continue
        kind = {"line": "lines", "steps": "steps", "points": "points"}[panel["mark"]]
        half = each["half_width"] if any(each["half_width"]) else None
        line = Series(each["name"], each["x"], each["y"], half, colour, dash)
        _draw_line(Picture("", "", "", kind, []), line, axes)
    labelled = False
    for stated in panel["stated"]:
        low, high = stated["at_least"], stated["at_most"]
        if low is None and high is None:
            continue
        bottom, top = axes.get_ylim()
        ends = (bottom if low is None else low, top if high is None else high)
        x = stated["x"] + places.get(stated["series"], 0.0)
        label = None if labelled else "stated by the paper"
        axes.plot([x, x], ends, color=_STATED, linewidth=2.4, alpha=0.5, solid_capstyle="butt", label=label)
        for end in (low, high):
            if end is not None:
                axes.plot([x], [end], marker="_", color=_STATED, markersize=6)
        labelled = True
    for axis, which in ((axes.xaxis, panel["x"]), (axes.yaxis, panel["y"])):
        axis.set_label_text(which["title"])
        if which["logarithmic"]:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        if which["categories"]:
            axis.set_ticks(range(len(which["categories"])), which["categories"])
    if panel["x"]["categories"]:
        axes.tick_params("x", rotation=30 if max(map(len, panel["x"]["categories"])) > 6 else 0)
        axes.grid(visible=False, axis="x")
    if panel["title"]:
        axes.set_title(panel["title"])
    if len(series) > 1 or labelled:
        axes.legend()


# --- Altair


def chart(picture: Picture) -> altair.TopLevelMixin:
    """The picture as a chart of Altair."""
    alt = need("altair", "a chart")
    names = [each.name for each in picture.series]
    colour = alt.Color("name:N", title=None, sort=names).scale(
        domain=names, range=[each.colour for each in picture.series]
    )
    values = [
        {"name": each.name, "x": x, "y": y, "low": y - (half or 0.0), "high": y + (half or 0.0)}
        for each in picture.series
        for x, y, half in zip(each.x, each.y, each.half or [None] * len(each.x), strict=True)
    ]
    base = alt.Chart(alt.Data(values=values), title=picture.title)
    if picture.kind == "bars":
        x: Any = alt.X("x:N", title=None, sort=names)
        bars = base.mark_bar().encode(
            x=x, y=alt.Y("y:Q", title=picture.y_title), color=colour.legend(None), tooltip=["name:N", "y:Q"]
        )
        rule = base.mark_rule().encode(x=x, y="low:Q", y2="high:Q")
        return bars + rule
    dashes = alt.StrokeDash("name:N", title=None, sort=names).scale(
        domain=names, range=[each.dash or [1, 0] for each in picture.series]
    )
    x = alt.X("x:Q", title=picture.x_title).scale(type="log" if picture.x_log else "linear")
    y = alt.Y("y:Q", title=picture.y_title).scale(type="log" if picture.y_log else "linear")
    mark = base.mark_line(interpolate="step-after") if picture.kind == "steps" else base.mark_line()
    keep = alt.selection_point(fields=["name"], bind="legend")
    lines = mark.encode(
        x=x,
        y=y,
        color=colour,
        strokeDash=dashes,
        opacity=alt.condition(keep, alt.value(1), alt.value(0.1)),
        tooltip=["name:N", "x:Q", "y:Q"],
    )
    return lines.add_params(keep).interactive()
