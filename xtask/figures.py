"""Writes figures of a report as SVG files, for the book.

    python3 xtask/figures.py runs/bsq/report.html docs/book/papers/bsq "Figure ablation" ...

A figure is named by the beginning of its title; "Figure ablation" becomes docs/book/papers/bsq-ablation.svg. The report has a Vega-Lite
specification and the numbers of every panel; they are put side by side and drawn with vl-convert-python (pip install vl-convert-python).
"""

import html
import json
import re
import sys
from pathlib import Path


def rows(columns):
    """Columns, as the report has them, as the rows that Vega-Lite takes."""
    names = list(columns)
    return [dict(zip(names, values)) for values in zip(*columns.values())] if names else []


def with_key(spec):
    """The panel with a key of its own: in the report the page draws one for all panels."""
    if isinstance(spec, dict):
        for name, value in spec.items():
            if name in ("color", "strokeDash", "shape") and isinstance(value, dict) and value.get("legend", 0) is None:
                value["legend"] = {"orient": "bottom", "columns": 2, "title": None, "symbolStrokeWidth": 2.5}
            else:
                with_key(value)
    elif isinstance(spec, list):
        for value in spec:
            with_key(value)
    return spec


def read(page):
    """The panels of each figure: its title, and for each panel its title and its specification."""
    charts = json.loads(re.search(r'<script[^>]*id="charts"[^>]*>(.*?)</script>', page, re.S).group(1))
    figures = {}
    for figure in re.findall(r"<figure.*?</figure>", page, re.S):
        title = html.unescape(re.search(r"<h3>(.*?)</h3>", figure, re.S).group(1))
        panels = re.findall(r'<h4>(.*?)</h4>\s*<div class="plot" data-chart="([^"]+)"', figure, re.S)
        figures[title] = [(html.unescape(name), charts[chart]) for name, chart in panels]
    return figures


# The colours of the page, which a picture has to bring along.
PAGE = {"var(--ink)": "#1a1a1a", "var(--soft)": "#5c5c5c", "var(--faint)": "#9a9a9a"}


def draw(panels):
    """One picture of all panels, two side by side."""
    import vl_convert

    concat = []
    for title, chart in panels:
        spec = with_key(chart["spec"])
        spec.pop("autosize", None)
        spec["title"] = {"text": title, "anchor": "start", "fontSize": 13}
        spec["width"], spec["height"] = 330, 230
        spec["datasets"] = {name: rows(columns) for name, columns in chart["data"].items()}
        concat.append(spec)
    # Data sets of a part are known to all of them: each has its own names.
    together = {}
    for number, spec in enumerate(concat):
        named = json.dumps({name: value for name, value in spec.items() if name != "datasets"})
        for of_page, colour in PAGE.items():
            named = named.replace(of_page, colour)
        for name, values in spec["datasets"].items():
            together[f"{name}{number}"] = values
            named = named.replace(f'"data": {{"name": "{name}"}}', f'"data": {{"name": "{name}{number}"}}')
        concat[number] = json.loads(named)
    picture = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "padding": 12,
        "concat": concat,
        "columns": 2,
        "spacing": 28,
        "resolve": {"scale": {"color": "independent", "strokeDash": "independent", "x": "independent", "y": "independent"}},
        "datasets": together,
        "config": {"view": {"stroke": None}, "font": "sans-serif"},
    }
    return vl_convert.vegalite_to_svg(picture)


def slug(beginning):
    """What a figure is called in the name of its file: "Figure table 1" is table-1."""
    return re.sub("[^a-z0-9]+", "-", beginning.lower().removeprefix("figure ")).strip("-")


def main(report, stem, *wanted):
    figures = read(Path(report).read_text(encoding="utf-8"))
    for beginning in wanted:
        found = [title for title in figures if slug(title.partition(":")[0]) == slug(beginning)]
        if not found:
            sys.exit(f"{report} has no {beginning}; it has: {', '.join(figures)}")
        target = Path(f"{stem}-{slug(beginning)}.svg")
        target.write_text(draw(figures[found[0]]), encoding="utf-8")
        print(target)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except ModuleNotFoundError as missing:
        sys.exit(f"{missing}: figures are drawn with it; pip install vl-convert-python")
