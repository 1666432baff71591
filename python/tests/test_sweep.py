"""Sweeps: their data set, answers, queries, and the workers of a cluster."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import polars
import pytest
from conftest import QUICKSTART
from distributed import Client, LocalCluster

import giveway
from giveway import _cluster

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
    printed = python("-m", "giveway", "query", str(done.folder), "select count(*) as n from trials", "--csv")
    assert printed.stdout == "n\n24\n", printed.stderr
    wrong = python("-m", "giveway", "query", str(done.folder), "selct")
    assert wrong.returncode == 2
    assert "the query is wrong" in wrong.stderr


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


# --- a cluster


def workers() -> LocalCluster:
    """Processes of their own, as on other machines."""
    return LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0")


@pytest.fixture(scope="module")
def client():
    with workers() as cluster, Client(cluster) as client:
        yield client


def test_a_cluster_has_the_same_bytes(client, tmp_path):
    asked = {"seeds": 4, "short": True}
    here = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "here", **asked)
    there = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=client, **asked)
    assert there.counts == here.counts
    assert digests(here.folder) == digests(there.folder)
    again = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=client, **asked)
    assert again.counts["ran"] == 0


def test_a_killed_worker_costs_only_its_own_trials(tmp_path):
    asked = {"seeds": 40}
    here = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "here", **asked)
    with workers() as cluster, Client(cluster) as client:
        killed = []

        def kill(share):
            if share > 0.2 and not killed:
                killed.append(client.run(os.getpid).popitem()[1])
                os.kill(killed[0], signal.SIGKILL)

        there = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=client, progress=kill, **asked)
    assert killed
    assert there.counts == here.counts
    assert digests(here.folder) == digests(there.folder)


def test_files_of_the_scenario_travel_by_their_content(client, tmp_path):
    scenario = tmp_path / "mine" / "flows.toml"
    scenario.parent.mkdir()
    (scenario.parent / "flows.csv").write_text("start_s,src,dst,size_bytes\n0.1,a,b,20000\n0.2,a,b,30000\n")
    scenario.write_text(
        'duration = "2 s"\ndisciplines = ["fifo limit 20p"]\n'
        '[[link]]\nfrom = "a"\nto = "b"\nrate = "10mbit"\ndelay = "20ms"\nqdisc = "compare"\n'
        '[[traffic]]\nkind = "flow_list"\nfile = "flows.csv"\nname = "files"\n'
    )
    over = {"link.0.rate": ["10mbit", "20mbit"]}
    here = giveway.sweep(scenario, over, out=tmp_path / "here")
    there = giveway.sweep(scenario, over, out=tmp_path / "there", client=client)
    shared = giveway.sweep(scenario, over, out=tmp_path / "shared", client=client, share=str(tmp_path / "share"))
    assert digests(here.folder) == digests(there.folder) == digests(shared.folder)
    assert len(list((tmp_path / "share").iterdir())) == 1
    absolute = giveway.Scenario(scenario, changes={"traffic.files.file": str(scenario.parent / "flows.csv")})
    with pytest.raises(giveway.GivewayError, match="name it relative"):
        giveway.sweep(absolute, over, out=tmp_path / "absolute", client=client)


def test_a_worker_of_another_version_is_refused_by_name(client, tmp_path, monkeypatch):
    made = _cluster.Spec.of

    def older(*words):
        found = made(*words)
        return _cluster.Spec(**{**vars(found), "version": "0.0.9, sources 1234", "seeds": [7]})

    monkeypatch.setattr(_cluster.Spec, "of", older)
    with pytest.raises(giveway.GivewayError, match=r"the worker tcp://.* has Giveway .*0\.0\.9, sources 1234"):
        giveway.sweep(QUICKSTART, OVER, out=tmp_path / "out", seeds=2, short=True, client=client)
