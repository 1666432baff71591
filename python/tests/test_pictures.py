"""Charts and figures."""

from __future__ import annotations

import pytest
from conftest import ROOT

import giveway
from giveway import pictures

KINDS = [None, "fct_p95_s", "goodput_bps", "drops", "queue", "sojourn", "fct", "shares", "delays"]


@pytest.mark.parametrize("what", KINDS)
def test_every_picture_is_drawn_for_papers_and_for_notebooks(quick, what, tmp_path):
    figure = quick.figure(what)
    figure.savefig(tmp_path / "figure.svg")
    figure.savefig(tmp_path / "figure.pdf")
    assert (tmp_path / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert figure.get_size_inches()[0] == pytest.approx(pictures.WIDTHS[1])
    axes = figure.axes[0]
    assert axes.get_ylabel()
    chart = quick.chart(what).to_dict()
    assert chart["$schema"]


def test_a_picture_has_the_numbers_of_the_run(quick):
    bars = pictures.picture(quick, "goodput_bps")
    assert bars.y_title.endswith("Mbit/s")
    for series, name in zip(bars.series, quick.disciplines, strict=True):
        estimate = quick.estimate("goodput_bps", name)
        assert series.y == [pytest.approx(estimate.mean / 1e6)]
        assert series.half == [pytest.approx(estimate.ci95 / 1e6)]


def test_a_discipline_has_the_same_colour_in_every_picture(quick):
    colours = pictures.colours(quick.disciplines)
    for what in ("goodput_bps", "queue", "sojourn"):
        drawn = [each.colour for each in pictures.picture(quick, what).series]
        assert drawn == list(colours.values())


def test_a_figure_is_one_or_two_columns_wide(quick):
    assert quick.figure("drops", columns=2).get_size_inches()[0] == pytest.approx(7.0)
    assert quick.figure("drops", height=3).get_size_inches()[1] == pytest.approx(3)
    with pytest.raises(ValueError, match="1 or 2"):
        quick.figure("drops", columns=3)


def test_wrong_choices_of_a_picture_are_refused(quick):
    with pytest.raises(KeyError, match="no metric"):
        quick.figure("nothing")
    with pytest.raises(ValueError, match="seed 9 did not run"):
        quick.figure("queue", seed=9)
    with pytest.raises(ValueError, match="is not measured"):
        quick.figure("queue", port="a->b")
    with pytest.raises(ValueError, match="no source 'nobody'"):
        quick.figure("shares", source="nobody")


def test_the_style_does_not_leak(quick):
    import matplotlib

    before = dict(matplotlib.rcParams)
    quick.figure()
    assert dict(matplotlib.rcParams) == before


def test_a_switch_has_a_main_picture():
    run = giveway.run(ROOT / "scenarios" / "switch" / "short-first.toml", short=True)
    assert pictures.picture(run).series


def test_every_figure_of_a_paper_is_drawn_with_what_it_states() -> None:
    paper = giveway.paper("efd")
    stated = 0
    for number in paper.figures():
        data = paper.figure_data(number)
        if not data["panels"]:
            continue
        for columns in (1, 2):
            drawn = paper.figure(number, columns=columns)
            first = data["panels"][0]["variant"]
            assert len(drawn.axes) == sum(panel["variant"] == first for panel in data["panels"])
        stated += sum(len(panel["stated"]) for panel in data["panels"])
    assert stated > 0
    with pytest.raises(KeyError, match="the figures are 1b, 2"):
        paper.figure(99)
