"""Sweeps: their data set, answers and queries."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars
import pytest
from conftest import QUICKSTART

import giveway

OVER = {"link.0.rate": ["2mbit", "10mbit"], "qdisc.threshold": "log(5p,200p,3)"}


def digests(folder: Path) -> dict[str, str]:
    parts = sorted((folder / "trials").glob("*.parquet"))
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> giveway.Sweep:
    out = tmp_path_factory.mktemp("sweeps") / "rates"
    return giveway.sweep(QUICKSTART, OVER, out=out, seeds=3, short=True, disciplines=["fq_codel", "efd limit 300p"])


def test_a_sweep_has_a_row_for_each_trial(done):
    # The threshold does not concern fq_codel.
    assert done.counts == {"ran": 3 * (2 + 6), "had": 0, "reused": 0, "failed": 0}
    assert done.complete
    frame = polars.DataFrame(done.trials)
    assert frame.height == 24
    assert frame["link_0_rate_bps"].unique().sort().to_list() == [2e6, 1e7]
    assert frame.filter(polars.col("discipline") == "fq_codel")["qdisc_threshold_packets"].null_count() == 6
    assert len(done.failed) == 0
    assert done.axes == ["link.0.rate=2mbit,10mbit", "qdisc.threshold=log(5p,200p,3)"]


def test_the_same_call_runs_nothing_and_more_seeds_run_what_is_new(done, tmp_path):
    again = giveway.sweep(
        QUICKSTART, OVER, out=done.folder, seeds=3, short=True, disciplines=["fq_codel", "efd limit 300p"]
    )
    assert again.counts == {"ran": 0, "had": 24, "reused": 0, "failed": 0}
    more = giveway.sweep(
        QUICKSTART, {"link.0.rate": ["2mbit"]}, out=tmp_path / "more", seeds=4, short=True, disciplines=["fq_codel"],
        reuse=[done.folder],
    )  # fmt: skip
    assert more.counts == {"ran": 1, "had": 0, "reused": 3, "failed": 0}


def test_answers_report_and_notebook(done, tmp_path):
    assert done.answers("goodput_bps")[-1].startswith("Each point has 3 seeds.")
    assert str(done).startswith("- ")
    assert "<li>" in done._repr_html_()
    page = done.report(tmp_path / "sweep.html", metrics=["goodput_bps"])
    assert "goodput_bps by each key" in page
    assert (tmp_path / "sweep.html").read_text() == page
    with pytest.raises(giveway.GivewayError, match="has no metric goodput_bp; did you mean goodput_bps"):
        done.answers("goodput_bp")
    assert "link.0.rate" in repr(giveway.open_sweep(done.folder))
    with pytest.raises(FileNotFoundError, match="not the folder of a sweep"):
        giveway.open_sweep(tmp_path)


def test_a_query_in_sql(done, python):
    found = done.query("select discipline, count(*) as n from trials group by discipline order by n")
    assert found.fetchall() == [("fq_codel", 6), ("efd limit 300p", 18)]
    with pytest.raises(giveway.GivewayError, match="the query is wrong"):
        giveway.query(done.folder, "select nothing from trials")
    printed = python("-m", "giveway", "sweep", "query", str(done.folder), "select count(*) as n from trials", "--csv")
    assert printed.stdout == "n\n24\n", printed.stderr
    wrong = python("-m", "giveway", "query", str(done.folder), "selct")
    assert wrong.returncode == 2
    assert "the query is wrong" in wrong.stderr


def test_a_query_reads_and_writes_no_other_file(done, python, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("secret\n1\n")
    for sql in [
        f"select * from read_text('{other}')",
        f"select * from '{other}'",
        f"copy (select 1) to '{tmp_path / 'new.csv'}'",
        f"attach '{tmp_path / 'new.db'}'",
        "set enable_external_access = true",
    ]:
        with pytest.raises(giveway.GivewayError, match="the query is wrong"):
            done.query(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["other.csv"]
    for name in ["out.csv", "out.parquet"]:
        words = ["query", str(done.folder), "select count(*) as n from trials", "--out", str(tmp_path / name)]
        written = python("-m", "giveway", *words)
        assert written.returncode == 0, written.stderr
    assert (tmp_path / "out.csv").read_text() == "n\n24\n"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1, 2.5], "k=1,2.5"), (range(1, 9), "k=1..8"), (range(0, 9, 4), "k=0,4,8"), ("log(1,9,3)", "k=log(1,9,3)"),
        ([True, False], "k=true,false"), (["a,b", "c"], 'k="a,b",c'), (3, "k=3"),
    ],
)  # fmt: skip
def test_values_become_those_of_the_command_line(values, text):
    from giveway import _sweep

    assert f"k={_sweep._values('k', values)}" == text


def test_mistakes_are_raised_before_anything_runs(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(giveway.ScenarioError, match='did you mean "rate"'):
        giveway.sweep(QUICKSTART, {"link.0.rat": ["1mbit"]}, out=out)
    with pytest.raises(giveway.GivewayError, match=r"did you mean qdisc\.threshold"):
        giveway.sweep(QUICKSTART, {"qdisc.treshold": ["5p"]}, out=out)
    with pytest.raises(ValueError, match="no design mesh"):
        giveway.sweep(QUICKSTART, OVER, out=out, design="mesh")
    with pytest.raises(TypeError, match="not a number, a text or a list"):
        giveway.sweep(QUICKSTART, {"link.0.rate": [None]}, out=out)
    with pytest.raises(giveway.GivewayError, match="1,000,000,000 points"):
        giveway.sweep(QUICKSTART, {f"link.0.{key}": "lin(1ms,2ms,1000)" for key in ("a", "b", "c")}, out=out)
    assert not out.exists()


def test_ctrl_c_keeps_what_is_finished(tmp_path):
    def stop(share):
        if share > 0.3:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    with pytest.raises(giveway.Interrupted, match="the same call goes on"):
        giveway.sweep(QUICKSTART, OVER, out=out, seeds=20, short=True, progress=stop)
    kept = giveway.open_sweep(out)
    assert 0 < len(kept.trials) < 20 * 8
    assert not kept.complete
