"""Scenarios: from files, texts and dicts, with changes; and the mistakes in them."""

from __future__ import annotations

import math
import tomllib
from fractions import Fraction
from pathlib import Path

import numpy
import pytest
from conftest import QUICKSTART
from hypothesis import given
from hypothesis import strategies as some

import giveway
from giveway._scenario import to_toml

TEXT = """\
duration = "2 s"
disciplines = ["fifo limit 20p"]

[[link]]
from = "a"
to = "b"
rate = "10mbit"
delay = "5ms"
qdisc = "compare"

[[traffic]]
kind = "bulk"
from = "a"
to = "b"
"""


def test_a_file_a_text_a_dict_and_a_scenario_are_the_same_scenario(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    by_text = giveway.Scenario.from_toml(TEXT)
    for source in (str(path), path, tomllib.loads(TEXT), by_text):
        scenario = giveway.Scenario(source)
        assert scenario == by_text
        assert scenario.links == by_text.links
        assert giveway.Scenario(scenario.to_dict()) == by_text
        assert giveway.Scenario.from_toml(scenario.to_toml()) == by_text
    assert giveway.Scenario(path).name == "small"
    assert giveway.run(path).fingerprint == giveway.run(tomllib.loads(TEXT)).fingerprint


def test_a_scenario_describes_itself():
    scenario = giveway.Scenario(QUICKSTART)
    assert scenario.name == "quickstart"
    assert scenario.title.startswith("Home uplink")
    assert "upstream" in scenario.description
    assert scenario.backend == "network"
    assert scenario.disciplines == ["fifo limit 300p", "fq_codel", "drr limit 300p", "efd"]
    assert (scenario.duration, scenario.warmup, scenario.seeds) == (60.0, 10.0, [1, 2, 3])
    assert scenario.links[0] == giveway.Link("home->isp", 10_000_000, measured=True, compared=True)
    assert str(scenario) == QUICKSTART.read_text()
    assert "seeds [1, 2, 3]" in repr(scenario)
    assert scenario.warnings == []


def test_changes_keep_the_seeds_and_the_short_settings():
    scenario = giveway.Scenario(QUICKSTART).short().with_seeds([7, 9])
    assert (scenario.duration, scenario.seeds) == (6.0, [7, 9])
    changed = giveway.Scenario(scenario, changes={"link.0.rate": "5mbit"})
    assert (changed.duration, changed.seeds, changed.links[0].rate) == (6.0, [7, 9], 5_000_000)
    assert giveway.Scenario(scenario, changes={"seeds": 2}).seeds == [1, 2]
    run = giveway.run(scenario, ["efd"])
    assert run.seeds == [7, 9]
    assert run.fingerprint == giveway.run(QUICKSTART, ["efd"], short=True, seeds=[7, 9]).fingerprint


def test_seeds_are_a_number_or_a_list():
    scenario = giveway.Scenario(QUICKSTART)
    assert scenario.with_seeds(2).seeds == [1, 2]
    assert scenario.with_seeds(range(4, 7)).seeds == [4, 5, 6]
    assert scenario.with_seeds(numpy.int64(2)).seeds == [1, 2]
    assert scenario.with_seeds(numpy.array([3, 8])).seeds == [3, 8]
    assert scenario.with_seeds([0, 2**64 - 1]).seeds == [0, 2**64 - 1]
    for wrong in (0, -1, 2**32, [], [1, 1], [2**64]):
        with pytest.raises(ValueError, match="seeds"):
            scenario.with_seeds(wrong)
    for wrong in (True, 2.0, "2", None, [1.5], ["1"], object()):
        with pytest.raises(TypeError, match="seeds"):
            scenario.with_seeds(wrong)


@pytest.mark.parametrize(
    ("value", "rate"),
    [
        ("5mbit", 5_000_000),
        ("5 Mbit/s", 5_000_000),
        ("100kibit", 102_400),
        ("125kbps", 1_000_000),
        (numpy.str_("5mbit"), 5_000_000),
    ],
)
def test_a_rate_is_a_text_with_a_unit(value, rate):
    scenario = giveway.Scenario(QUICKSTART, changes={"link.0.rate": value})
    assert scenario.links[0].rate == rate


@pytest.mark.parametrize("value", [5_000_000, 5e6, True, [1], {}, numpy.int64(5), numpy.float32(5.0), "5", "5 apples"])
def test_a_rate_without_a_unit_is_refused(value):
    with pytest.raises(giveway.ScenarioError, match="rate"):
        giveway.Scenario(QUICKSTART, changes={"link.0.rate": value})


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (math.nan, ValueError),
        (math.inf, ValueError),
        (numpy.float64("nan"), ValueError),
        (2**63, ValueError),
        ("\ud800", ValueError),
        (b"5mbit", TypeError),
        (None, TypeError),
        (Fraction(1, 2), TypeError),
        ({1: 2}, TypeError),
        ([object()], TypeError),
        (5j, TypeError),
    ],
)
def test_a_value_that_no_scenario_can_have_is_refused_with_its_key(value, error):
    with pytest.raises(error, match=r"link\.0\.rate"):
        giveway.Scenario(QUICKSTART, changes={"link.0.rate": value})


@pytest.mark.parametrize(
    ("key", "error"),
    [(5, TypeError), ("title=x", ValueError), ("title\n", ValueError), ("", ValueError), ("link.9.rate", ValueError)],
)
def test_a_wrong_key_is_refused(key, error):
    with pytest.raises(error):
        giveway.Scenario(QUICKSTART, changes={key: "5mbit"})


def test_numbers_lists_and_truth_values_of_numpy_are_those_of_python():
    changes = {"seeds": numpy.array([3, 5]), "traffic.web.users": numpy.int32(2), "record.senders": numpy.bool_(True)}
    plain = {"seeds": [3, 5], "traffic.web.users": 2, "record.senders": True}
    assert giveway.Scenario(QUICKSTART, changes=changes) == giveway.Scenario(QUICKSTART, changes=plain)


leaves = some.booleans() | some.integers(-(2**63), 2**63 - 1) | some.floats(allow_nan=False, allow_infinity=False)
leaves |= some.text(some.characters(exclude_categories=["Cs"]))
tables = some.dictionaries(some.text(some.characters(exclude_categories=["Cs"])), leaves, max_size=4)
values = some.recursive(
    leaves, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text("ab.\"'\n é"), inner, max_size=3)
)


@given(some.dictionaries(some.text(some.characters(exclude_categories=["Cs"])), values | tables, max_size=5))
def test_any_dict_is_written_as_toml_that_reads_back(keys):
    assert tomllib.loads(to_toml(keys)) == keys


@given(some.text())
def test_any_title_is_kept_or_refused(title):
    try:
        scenario = giveway.Scenario(QUICKSTART, changes={"title": title})
    except ValueError as refused:
        assert "title" in str(refused)
    else:
        assert scenario.title == title
        assert giveway.Scenario.from_toml(scenario.to_toml()).title == title


@given(some.text(), some.text() | some.integers() | some.floats() | some.binary() | some.none() | some.booleans())
def test_any_change_is_made_or_refused(key, value):
    try:
        giveway.Scenario(QUICKSTART, changes={key: value})
    except (ValueError, TypeError) as refused:
        assert str(refused)


@given(
    some.floats(0.001, 1000).map(lambda number: round(number, 3)), some.sampled_from(["kbit", "Mbit/s", "gbit", "mbps"])
)
def test_rates_are_exact_in_every_unit(number, unit):
    factors = {"kbit": 10**3, "Mbit/s": 10**6, "gbit": 10**9, "mbps": 8 * 10**6}
    expected = Fraction(str(number)) * factors[unit]
    text = f"{number} {unit}" if unit[0].isupper() else f"{number}{unit}"
    try:
        scenario = giveway.Scenario(QUICKSTART, changes={"link.0.rate": text, "disciplines": ["fifo"]})
    except giveway.ScenarioError as refused:
        # Too slow for a packet in the duration, or too fast.
        assert expected < 10_000 or expected > 10**11, refused
    else:
        assert scenario.links[0].rate == expected


@given(some.integers(1, 10**6), some.sampled_from([("ms", 10**3), ("us", 10**6), ("s", 1)]))
def test_times_are_exact_in_every_unit(number, unit):
    name, parts = unit
    try:
        scenario = giveway.Scenario(QUICKSTART, changes={"duration": f"{number}{name}", "warmup": "0s"})
    except giveway.ScenarioError as refused:
        assert "duration" in str(refused)
    else:
        assert Fraction(scenario.duration) == pytest.approx(Fraction(number, parts), rel=1e-15)


@given(some.text())
def test_any_text_is_a_scenario_or_a_scenario_error(text):
    with pytest.raises(giveway.ScenarioError):
        giveway.Scenario.from_toml(text)


@given(some.text(max_size=30))
def test_any_discipline_runs_or_is_refused(text):
    try:
        giveway.Scenario(QUICKSTART, changes={"disciplines": [text]})
    except (giveway.ScenarioError, ValueError) as refused:
        assert str(refused)


# --- mistakes


def test_a_mistake_has_its_line_and_column_and_is_underlined():
    with pytest.raises(giveway.ScenarioError) as caught:
        giveway.Scenario.from_toml(TEXT.replace('"10mbit"', '"10 apples"'))
    error = caught.value
    assert (error.line, error.column) == (7, 8)
    assert error.diagnostics[0].message in str(error)
    assert error.diagnostics[0].file == "scenario"
    assert '7 | rate = "10 apples"\n  |        ^^^^^^^^^^^' in str(error)
    assert isinstance(error, ValueError)
    assert isinstance(error, giveway.GivewayError)


def test_all_mistakes_are_reported_at_once_in_the_order_of_their_places():
    wrong = TEXT.replace('"10mbit"', "3").replace('kind = "bulk"', 'kind = "bulky"').replace('"5ms"', '"5 years"')
    with pytest.raises(giveway.ScenarioError) as caught:
        giveway.Scenario.from_toml(wrong)
    lines = [each.line for each in caught.value.diagnostics]
    assert lines == [7, 8, 12]
    assert caught.value.line == 7
    assert all(each.severity == "error" and each.message for each in caught.value.diagnostics)
    assert any("bulk" in (each.help or "") for each in caught.value.diagnostics)


def test_a_mistake_in_a_change_has_no_line():
    with pytest.raises(giveway.ScenarioError) as caught:
        giveway.Scenario.from_toml(TEXT).with_seeds(1)
        giveway.Scenario(QUICKSTART, changes={"link.0.rate": "fast"})
    assert caught.value.line is None
    assert caught.value.column is None
    assert "fast" in str(caught.value)
    assert "^^^^" in str(caught.value)


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("duration = \n")
    with pytest.raises(giveway.ScenarioError) as caught:
        giveway.Scenario(path)
    assert str(path) in str(caught.value)
    assert caught.value.diagnostics[0].file == str(path)
    assert caught.value.line == 1


def test_a_traceback_shows_the_underlined_place(python, tmp_path):
    program = f"import giveway; giveway.run({str(QUICKSTART)!r}, changes={{'link.0.rate': 'fast'}})"
    done = python("-c", program)
    assert done.returncode == 1
    assert "ScenarioError: \nerror: rate" in done.stderr
    assert "^^^^" in done.stderr


def test_what_is_no_scenario_is_refused(tmp_path):
    with pytest.raises(ValueError, match="from_toml reads a text"):
        giveway.Scenario(TEXT)
    with pytest.raises(FileNotFoundError, match="nothing.toml"):
        giveway.Scenario(tmp_path / "nothing.toml")
    with pytest.raises(OSError, match="it is a folder"):
        giveway.Scenario(tmp_path)
    for wrong in (None, 3, b"bytes", ["list"]):
        with pytest.raises(TypeError, match="a scenario is a path, a dict or a giveway.Network"):
            giveway.Scenario(wrong)


def test_names_of_files_in_a_dict_are_relative_to_the_folder():
    path = QUICKSTART.parent / "traffic" / "datagram_list.toml"
    keys = tomllib.loads(path.read_text())
    scenario = giveway.Scenario(keys, folder=path.parent)
    assert giveway.run(scenario).fingerprint == giveway.run(path).fingerprint
    with pytest.raises(giveway.ScenarioError, match=r"datagrams\.csv"):
        giveway.Scenario(keys, folder=Path(__file__).parent)
