"""The program of the page "A discipline in Python" of the book: EFD in Python equals the built-in EFD."""

from __future__ import annotations

import importlib.util
import re

import pytest
from conftest import ROOT

import giveway

EXAMPLE = ROOT / "python" / "examples" / "efd.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("efd_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(run, table):
    return [{key: value for key, value in row.items() if key != "qdisc"} for row in run.table(table).rows()]


@pytest.mark.parametrize(
    ("scenario", "limit", "threshold", "changes"),
    [
        ("quickstart.toml", 300, 20, {}),
        ("quickstart.toml", 20, 3, {}),
        ("quickstart.toml", 1, 0, {}),
        ("quickstart.toml", 50, 5, {"tcp.ecn": True}),
        ("disciplines/efd.toml", 300, 20, {}),
        ("links/lte.toml", 100, 20, {}),
        ("outage.toml", 30, 20, {}),
    ],
)
# Some of these limits are too large or too small for their links, which EFD remarks.
@pytest.mark.filterwarnings("ignore::giveway.GivewayWarning")
def test_efd_in_python_equals_the_built_in_packet_for_packet(example, scenario, limit, threshold, changes):
    class Mine(example.Efd):
        pass

    Mine.limit, Mine.threshold = limit, threshold
    path = ROOT / "scenarios" / scenario
    words = {"seeds": [1, 5], "short": True, "changes": {**changes, "record.senders": True}}
    mine = giveway.run(path, [Mine], **words)
    theirs = giveway.run(path, [f"efd limit {limit}p threshold {threshold}p"], **words)
    for table in ("flows", "queue", "sojourn", "shares", "delays", "links", "senders"):
        assert rows(mine, table) == rows(theirs, table), table
    assert len(mine.flows) > 0
    assert mine.events == theirs.events

    def levels(run):
        return [row for row in rows(run, "gauges") if row["gauge"] in ("high_packets", "low_packets")]

    assert levels(mine) == levels(theirs)
    # Only the memory of its table is known of the built-in discipline alone.
    assert {row["metric"] for row in rows(theirs, "metrics") if row not in rows(mine, "metrics")} <= {
        "flow_table_mean",
        "flow_table_max",
        "flow_table_entry_bytes",
        "flow_table_bytes",
    }


def test_the_comparison_notices_a_threshold_that_differs_by_one_packet(example):
    class Other(example.Efd):
        limit, threshold = 20, 4

    path = ROOT / "scenarios" / "quickstart.toml"
    mine, theirs = giveway.run(path, [Other], short=True), giveway.run(path, ["efd limit 20p threshold 3p"], short=True)
    for table in ("flows", "queue", "sojourn"):
        assert rows(mine, table) != rows(theirs, table), table


def test_the_program_prints_what_the_book_shows(example, capsys):
    example.main()
    assert capsys.readouterr().out == EXAMPLE.with_suffix(".out").read_text()
    assert "different" not in EXAMPLE.with_suffix(".out").read_text()


def test_each_step_is_a_discipline_that_runs(example):
    own = [example.SmallFirst, example.TwoQueues, example.PushOut, example.Efd]
    run = giveway.run(example.SCENARIO, [*own, giveway.rank(example.new_flows_first)], seeds=1, short=True)
    assert run.complete


def test_the_discipline_of_ten_lines_has_ten_lines(example):
    text = EXAMPLE.read_text()
    for anchor, lines in [("small_first", 10), ("rank", 2)]:
        part = text.partition(f"# ANCHOR: {anchor}\n")[2].partition(f"# ANCHOR_END: {anchor}\n")[0]
        assert len([line for line in part.splitlines() if line.strip()]) == lines


def test_the_book_includes_parts_that_exist():
    pages = [path for path in (ROOT / "docs" / "book").glob("*.md") if "{{#include" in path.read_text()]
    assert pages
    for page in pages:
        for name, anchor in re.findall(r"\{\{#include ([^:}]+):?([^}]*)\}\}", page.read_text()):
            text = (page.parent / name).read_text()
            assert not anchor or (f"ANCHOR: {anchor}\n" in text and f"ANCHOR_END: {anchor}\n" in text), (page, anchor)
