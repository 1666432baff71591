"""Tables of results, and the libraries of data frames that take them over."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import giveway

NAMES = ["summary", "metrics", "flows", "queue", "gauges", "sojourn", "shares", "delays", "links"]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_in_memory_equals_the_table_of_a_run_folder(quick, folder, name):
    one, other = quick.table(name).to_polars(), folder.table(name).to_polars()
    assert one.height > 0
    assert one.equals(other)
    assert one.schema == other.schema
    assert quick.table(name).columns == folder.table(name).columns


@pytest.mark.parametrize("name", NAMES)
def test_every_library_sees_the_same_rows(quick, name):
    table = given = quick.table(name)
    rows = list(table.rows())
    assert len(rows) == len(table)
    assert table.to_polars().to_dicts() == rows
    assert pyarrow.table(table).to_pylist() == rows
    assert table.to_arrow().schema.names == [column.name for column in table.columns]
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.shape == (len(rows), len(table.columns))
    # The query names a variable of this function.
    found = duckdb.sql("select * from given").fetchall()
    assert given is table
    assert [dict(zip((column.name for column in table.columns), row, strict=True)) for row in found] == rows


def test_polars_pandas_and_duckdb_take_a_table_without_help(quick):
    flows = quick.flows
    by_polars = polars.DataFrame(flows)["fct_s"].drop_nulls().sum()
    by_pandas = pandas.DataFrame.from_arrow(flows)["fct_s"].sum()
    by_duckdb = duckdb.sql("select sum(fct_s) from flows").fetchall()[0][0]
    by_hand = sum(value for value in flows["fct_s"] if value is not None)
    assert by_polars == pytest.approx(by_hand)
    assert by_pandas == pytest.approx(by_hand)
    assert by_duckdb == pytest.approx(by_hand)


def test_a_table_is_a_collection_of_rows(quick):
    rows = list(quick.flows)
    assert rows == list(quick.flows.rows())
    assert len(rows) == len(quick.flows)
    assert pandas.DataFrame(quick.flows)["source"].to_list() == quick.flows["source"]


def test_a_stream_can_be_taken_more_than_once(quick):
    flows = quick.flows
    assert polars.DataFrame(flows).equals(polars.DataFrame(flows))


def test_a_frame_stays_valid_when_the_run_is_freed():
    run = giveway.run(
        {
            "duration": "1 s",
            "disciplines": ["fifo limit 10p"],
            "link": [{"from": "a", "to": "b", "rate": "1mbit", "delay": "1ms", "qdisc": "compare"}],
            "traffic": [{"kind": "cbr", "from": "a", "to": "b", "rate": "500kbit"}],
        }
    )
    expected = run.queue["time_s"]
    frame = polars.DataFrame(run.queue)
    del run
    assert frame["time_s"].to_list() == expected


def test_columns_have_units_and_descriptions(quick):
    # A value without a unit, such as a name, has an empty text as its unit.
    for name in NAMES:
        for column in quick.table(name).columns:
            if not column.name.startswith(("param.", "src.", "at.", "class.")):
                assert column.description, f"{name}.{column.name}"
            if column.name.endswith("_s"):
                assert column.unit == "s", f"{name}.{column.name}"
            if column.name.endswith("_bps"):
                assert column.unit == "bit/s", f"{name}.{column.name}"
    arrow = quick.flows.to_arrow()
    assert arrow.schema.field("fct_s").metadata[b"unit"] == b"s"
    assert arrow.schema.field("fct_s").metadata[b"description"]


def test_missing_values_are_null(quick):
    flows = quick.flows
    endless = [row for row in flows.rows() if row["source"] == "backup"]
    assert endless
    assert all(row["fct_s"] is None for row in endless)


def test_metrics_and_estimates_agree(quick):
    metrics = quick.metrics.to_polars()
    one = metrics.filter(
        polars.col("metric") == "goodput_bps", polars.col("source").is_null(), polars.col("qdisc") == "efd"
    ).sort("seed")
    assert one["value"].to_list() == quick.estimate("goodput_bps", "efd").per_seed
    assert set(one["unit"]) == {"bit/s"}
    summary = quick.summary.to_polars().filter(polars.col("qdisc") == "efd").sort("seed")
    assert summary["goodput_bps"].to_list() == one["value"].to_list()


def test_a_table_describes_itself(quick):
    flows = quick.flows
    assert repr(flows).startswith(f"<giveway.Table flows: {len(flows)} rows of qdisc, seed")
    page = flows._repr_html_()
    assert f"flows: {len(flows):,} rows" in page
    assert "<script" not in page
    with pytest.raises(KeyError, match="flows has no column 'nothing'; it has qdisc, seed"):
        flows["nothing"]
    with pytest.raises(TypeError, match="indexed by the name of a column"):
        flows[0.0]
    assert set(giveway.Run.tables()) > set(NAMES)


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [
        ("polars", "run.flows.to_polars()", "polars"),
        ("pandas", "run.flows.to_pandas()", "pandas"),
        ("pyarrow", "run.flows.to_arrow()", "arrow"),
        ("matplotlib", "run.figure()", "figure"),
        ("altair", "run.chart()", "chart"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, call, extra, quick, monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    # None in this dict makes an import fail.
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(giveway.MissingExtra) as caught:
        eval(call, {"run": quick})
    assert f'pip install "giveway[{extra}]"' in str(caught.value)
    assert package in str(caught.value)
    assert isinstance(caught.value, ImportError)


def test_the_package_imports_no_other_package(python):
    program = (
        "import sys; before = set(sys.modules); import giveway; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - sys.stdlib_module_names))"
    )
    done = python("-c", program)
    assert done.stdout.split() == ["giveway"], done.stdout + done.stderr


def test_a_slice_is_a_table_of_its_rows(quick):
    table = quick.table("metrics")
    rows, whole = list(table.rows()), table.to_polars()
    size = len(rows)
    for cut in (
        slice(None), slice(3), slice(2, 9), slice(-4, None), slice(5, 2), slice(size, size + 9), slice(0, 0),
        slice(None, None, 3), slice(None, None, -1), slice(-2, 1, -5), slice(np.int64(1), np.int8(4)),
    ):  # fmt: skip
        part = table[cut]
        assert isinstance(part, giveway.Table)
        assert (list(part), len(part), part.columns) == (rows[cut], len(rows[cut]), table.columns)
        assert part.to_polars().equals(whole[list(range(size))[cut]])
    assert list(table[2:9][1:3]) == rows[2:9][1:3]
    with pytest.raises(ValueError, match="step"):
        table[::0]


def test_a_number_is_a_row(quick):
    rows = list(quick.flows)
    assert (quick.flows[0], quick.flows[-1], quick.flows[np.int64(2)]) == (rows[0], rows[-1], rows[2])
    for wrong in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError, match=f"no row {wrong}"):
            quick.flows[wrong]
    for wrong in (True, 1.0, None, np.array([1, 2])):
        with pytest.raises(TypeError):
            quick.flows[wrong]


def test_head_and_tail(quick):
    rows = list(quick.flows)
    assert (list(quick.flows.head()), list(quick.flows.tail())) == (rows[:5], rows[-5:])
    for many in (0, 1, 3, len(rows), len(rows) + 5, -2, -len(rows), np.int64(4)):
        assert list(quick.flows.head(many)) == rows[:many]
        assert list(quick.flows.tail(many)) == (rows[-many:] if many > 0 else rows[-many:] if many else [])
    assert "3 rows" in repr(quick.flows.head(3))
    assert "<td>" in quick.flows.head(3)._repr_html_()
