"""Runs of scenarios, and their results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import QUICKSTART, ROOT

import giveway


def test_a_run_has_each_discipline_with_each_seed(quick):
    assert quick.disciplines == ["fifo limit 300p", "fq_codel", "efd"]
    assert quick.seeds == [1, 2]
    assert quick.complete
    assert quick.ports == ["home->isp"]
    assert quick.events > 0
    assert quick.folder is None
    assert "Home uplink" in repr(quick)
    assert "6 runs" in repr(quick)


def test_printing_a_run_gives_the_table_of_the_command_line(quick):
    lines = str(quick).splitlines()
    assert any(line.startswith("fq_codel") for line in lines)
    assert "goodput" in str(quick)
    assert all(len(line) <= 120 for line in lines)


def test_the_command_line_has_the_same_results(quick, python):
    done = python(
        "-m", "giveway", "run", str(QUICKSTART), "--short", "--seeds", "2", "--json", "--quiet",
        "--set", 'disciplines=["fifo limit 300p", "fq_codel", "efd"]',
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["fingerprint"] == quick.fingerprint
    row = next(row for row in printed["results"] if row["qdisc"] == "fq_codel")
    estimate = quick.estimate("goodput_bps", "fq_codel")
    assert row["metrics"]["goodput_bps"]["mean"] == estimate.mean
    assert row["metrics"]["goodput_bps"]["per_seed"] == estimate.per_seed


def test_results_do_not_depend_on_the_number_of_jobs(quick):
    for jobs in [1, 2, 5]:
        again = giveway.run(QUICKSTART, ["fifo limit 300p", "fq_codel", "efd"], seeds=2, short=True, jobs=jobs)
        assert again.fingerprint == quick.fingerprint
        assert list(again.flows.rows()) == list(quick.flows.rows())
        assert str(again) == str(quick)


def test_results_do_not_depend_on_the_number_of_threads():
    path = ROOT / "scenarios" / "bench" / "fat-tree-8.toml"
    words = {
        "disciplines": ["fifo limit 225p"],
        "seeds": 1,
        "changes": {"duration": "6 ms", "warmup": "0 s", "cooldown": "0 s"},
    }
    one = giveway.run(path, threads=1, **words)
    with pytest.warns(giveway.GivewayWarning, match="each trial runs on 2 threads"):
        two = giveway.run(path, threads=2, **words)
    assert one.fingerprint == two.fingerprint
    # A small network is not worth a second thread.
    with pytest.warns(giveway.GivewayWarning, match="has one thread"):
        giveway.run(QUICKSTART, ["fifo limit 100p"], seeds=1, short=True, threads=2)


def test_other_seeds_give_other_results(quick):
    other = giveway.run(QUICKSTART, ["fifo limit 300p", "fq_codel", "efd"], seeds=[3, 4], short=True)
    assert other.seeds == [3, 4]
    assert other.fingerprint != quick.fingerprint


def test_a_seed_has_the_same_results_alone_and_among_others(quick):
    alone = giveway.run(QUICKSTART, ["fq_codel"], seeds=[2], short=True)
    assert alone.estimate("goodput_bps").per_seed[0] == quick.estimate("goodput_bps", "fq_codel").per_seed[1]


def test_an_estimate_has_mean_interval_and_each_seed(quick):
    estimate = quick.estimate("fct_p95_s", "fifo")
    assert estimate.mean == pytest.approx(sum(estimate.per_seed) / 2)
    assert estimate.ci95 > 0
    assert float(estimate) == estimate.mean
    assert "±" in repr(estimate)
    assert f"{estimate:.3f}" == f"{estimate.mean:.3f}"
    assert f"{estimate}" == repr(estimate)
    one = giveway.run(QUICKSTART, ["efd"], seeds=1, short=True).estimate("goodput_bps")
    assert one.ci95 is None
    assert "±" not in repr(one)


def test_names_of_metrics_and_disciplines_are_checked(quick):
    with pytest.raises(KeyError, match="no metric 'fct_p95'.*fct_p95_s"):
        quick.estimate("fct_p95", "efd")
    with pytest.raises(KeyError, match="no discipline is 'cake'.*fq_codel"):
        quick.estimate("fct_p95_s", "cake")
    with pytest.raises(KeyError, match="several disciplines begin with 'f'"):
        quick.estimate("fct_p95_s", "f")
    with pytest.raises(ValueError, match="give one of the disciplines"):
        quick.estimate("fct_p95_s")
    with pytest.raises(KeyError, match='no table "flow".*flows'):
        quick.table("flow")
    with pytest.raises(KeyError, match=r"senders = true in \[record\]"):
        _ = quick.senders


def test_changes_of_the_scenario_take_effect_and_are_in_its_text():
    run = giveway.run(
        QUICKSTART, ["fifo limit 100p"], seeds=1, short=True, changes={"link.0.rate": "8mbit", "record.senders": True}
    )
    assert run.estimate("goodput_bps").mean < 8e6
    assert len(run.senders) > 0
    assert 'rate = "8mbit"' in run.scenario


def test_a_folder_of_results_is_resumed_and_has_the_same_results(quick, tmp_path):
    words = {"seeds": 2, "short": True, "out": tmp_path / "kept"}
    names = ["fifo limit 300p", "fq_codel", "efd"]
    first = giveway.run(QUICKSTART, names, **words)
    assert first.folder == tmp_path / "kept"
    assert first.fingerprint == quick.fingerprint
    shares: list[float] = []
    again = giveway.run(QUICKSTART, names, **words, progress=shares.append)
    assert again.fingerprint == quick.fingerprint
    with pytest.raises(giveway.GivewayError, match="force"):
        giveway.run(QUICKSTART, ["fifo limit 100p"], **words)
    assert giveway.run(QUICKSTART, ["fifo limit 100p"], **words, force=True).disciplines == ["fifo limit 100p"]


def test_progress_is_a_share_that_grows_and_an_exception_of_it_stops_the_runs():
    shares: list[float] = []
    giveway.run(QUICKSTART, ["fifo limit 100p", "efd"], seeds=3, progress=shares.append)
    assert shares == sorted(shares)
    assert all(0 <= share <= 1 for share in shares)

    class Enough(Exception):
        pass

    def stop(share: float) -> None:
        raise Enough(share)

    with pytest.raises(Enough):
        giveway.run(QUICKSTART, ["fifo limit 100p"], seeds=20, progress=stop)


def test_a_saved_run_opens_with_the_same_text_findings_and_report(quick, folder, tmp_path):
    assert str(folder) == str(quick)
    assert folder.findings == quick.findings
    assert folder.fingerprint == quick.fingerprint
    assert folder.events == quick.events
    assert folder.complete
    opened = giveway.open(str(folder.folder))
    assert opened.fingerprint == quick.fingerprint
    page = opened.report(tmp_path / "report.html")
    assert page == (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "Home uplink" in page


def test_a_folder_that_is_no_run_folder_is_refused(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        giveway.open(tmp_path / "nothing")
    with pytest.raises(giveway.GivewayError, match="is not a run folder"):
        giveway.open(tmp_path)
    with pytest.raises(giveway.GivewayError, match="copy this folder"):
        folder.save(tmp_path / "second")


def test_a_damaged_folder_is_refused(quick, tmp_path):
    saved = quick.save(tmp_path / "damaged")
    file = Path(saved.folder) / "flows.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(giveway.GivewayError, match="flows.parquet"):
        giveway.open(tmp_path / "damaged")


def test_html_for_notebooks_has_no_script_and_escapes_names():
    run = giveway.run(
        QUICKSTART, ["fifo limit 100p", "efd"], seeds=2, short=True, changes={"title": "<script>alert(1)</script> & co"}
    )
    for page in (run._repr_html_(), run.flows._repr_html_(), giveway.Scenario(QUICKSTART)._repr_html_()):
        assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in run._repr_html_()
    assert "<svg" in run._repr_html_()


def test_a_switch_runs_with_arbiters():
    run = giveway.run(ROOT / "scenarios" / "switch" / "short-first.toml", short=True)
    assert len(run.disciplines) > 1
    assert len(run.summary) == len(run.disciplines)
    assert str(run)
    assert "<script" not in run._repr_html_()


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        ({"disciplines": "fifo"}, TypeError, r'disciplines=\["fifo"\]'),
        ({"disciplines": []}, ValueError, "give at least one"),
        ({"disciplines": [3]}, TypeError, "a discipline is a text, a class or a giveway.rank, not int"),
        ({"disciplines": ["fifoo"]}, giveway.ScenarioError, 'did you mean "fifo"'),
        ({"disciplines": ["fifo", "fifo"]}, giveway.ScenarioError, "is compared with itself"),
        ({"seeds": 0}, ValueError, "seeds: 0"),
        ({"seeds": []}, ValueError, "at least one"),
        ({"seeds": [1, 1]}, ValueError, "each once"),
        ({"seeds": True}, TypeError, "seeds is a number"),
        ({"seeds": 1.5}, TypeError, "seeds is a number"),
        ({"seeds": "3"}, TypeError, "seeds is a number"),
        ({"seeds": [-1]}, ValueError, "seeds: -1"),
        ({"jobs": 0}, ValueError, "jobs: 0"),
        ({"jobs": "2"}, TypeError, "jobs is a number"),
        ({"threads": 0}, ValueError, "threads: 0"),
        ({"progress": 5}, TypeError, "progress is True, False or a function"),
        ({"changes": ["a"]}, TypeError, "changes is a dict"),
        ({"changes": {"lnk.0.rate": "5mbit"}}, giveway.ScenarioError, "lnk"),
    ],
)
def test_wrong_arguments_are_refused_with_the_reason(words, error, text):
    with pytest.raises(error, match=text):
        giveway.run(QUICKSTART, **{"short": True, **words})


def test_a_scenario_for_a_test_bed_is_not_simulated_by_accident():
    path = ROOT / "scenarios" / "testbed" / "quickstart.toml"
    with pytest.raises(ValueError, match=r"giveway\.testbed"):
        giveway.run(path)


def test_a_warning_of_a_scenario_points_to_the_line_of_the_caller():
    with pytest.warns(giveway.GivewayWarning) as caught:
        giveway.run(QUICKSTART, ["efd limit 10p threshold 20p"], seeds=1, short=True)
    assert "threshold 20p is not below limit 10p" in str(caught[0].message)
    assert Path(caught[0].filename).name == "test_runs.py"
