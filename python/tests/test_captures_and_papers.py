"""Comparisons on a capture, and reproduced papers."""

from __future__ import annotations

import gc

import pytest
from conftest import CAPTURE

import giveway


@pytest.fixture(scope="module")
def compared():
    return giveway.compare(CAPTURE, rate_up="2mbit", rate_down="16mbit", seeds=1)


def test_a_comparison_has_findings_and_a_recommendation(compared):
    (link,) = compared
    assert isinstance(link, giveway.Run)
    assert (link.rate_up, link.rate_down, link.hours) == (2_000_000, 16_000_000, None)
    assert "fq_codel" in link.disciplines
    assert link.findings
    assert link.complete
    found = link.recommendation
    assert found.summary in str(found)
    assert any("tc qdisc" in line for _, lines in found.commands for line in lines)
    assert dict(found.reasons)["Why"]
    names = {name for name, *_ in found.effects}
    assert "99th percentile of the delay of calls upstream" in names
    assert {sure for *_, sure in found.effects} <= {"better", "price of the shaper", "worse", "not certain"}
    assert link.capture.facts["packets"] == 17172
    assert len(link.flows) > 0
    assert "<script" not in link._repr_html_()


def test_a_capture_gives_a_comparison_for_each_rate():
    links = giveway.compare(CAPTURE, rate=["4mbit", "8mbit"], disciplines=["fifo limit 100p", "efd"], seeds=1)
    assert [(link.rate_up, link.rate_down) for link in links] == [(4_000_000,) * 2, (8_000_000,) * 2]
    assert [link.disciplines for link in links] == [["fifo limit 100p", "efd"]] * 2


def test_directions_may_have_their_own_disciplines():
    pair = ("fifo limit 60p", "fifo limit 400p")
    (link,) = giveway.compare(CAPTURE, rate="4mbit", disciplines=["cake", pair], seeds=1)
    assert link.disciplines == ["fifo limit 60p", "cake"]


def test_a_temporary_comparison_stays_readable_as_long_as_it_is_used(compared):
    gc.collect()
    assert giveway.open(compared[0].folder).fingerprint == compared[0].fingerprint
    one = giveway.compare(CAPTURE, rate="4mbit", disciplines=["fifo limit 100p"], seeds=1)[0]
    gc.collect()
    assert len(one.queue) > 0


def test_a_comparison_can_be_kept(tmp_path):
    link = giveway.compare(CAPTURE, rate="4mbit", disciplines=["fifo limit 100p"], seeds=1, out=tmp_path / "kept")[0]
    assert giveway.open(tmp_path / "kept").fingerprint == link.fingerprint
    assert link.folder == tmp_path / "kept"


@pytest.mark.parametrize(
    ("captures", "words", "error", "text"),
    [
        ([], {}, ValueError, "give at least one capture"),
        (["/nothing.pcap"], {}, giveway.GivewayError, "No such file"),
        ([__file__], {}, giveway.GivewayError, "is a text file: give a capture"),
        ([CAPTURE], {"rate": "10 apples"}, ValueError, "rate_up: .*apples"),
        ([CAPTURE], {"rate": 10}, TypeError, "a rate is a text with a unit"),
        ([CAPTURE], {"rate": None, "rate_up": "1mbit"}, ValueError, "rate_down is missing"),
        ([CAPTURE], {"mode": "both"}, ValueError, 'write "flows" or "replay"'),
        ([CAPTURE], {"target": "router"}, ValueError, "unknown target"),
        ([CAPTURE], {"seeds": 0}, ValueError, "seeds is a number of runs"),
        ([CAPTURE], {"disciplines": "fifo"}, TypeError, r'\["fifo"\]'),
        ([CAPTURE], {"disciplines": ["fifoo"]}, giveway.GivewayError, "fifoo"),
        ([CAPTURE], {"disciplines": [("fifo", "pie", "cake")]}, ValueError, "a pair of the one upstream"),
        ([CAPTURE], {"overhead": "dsl"}, ValueError, "not a kind of line"),
        ([CAPTURE], {"bootstrap": "often"}, ValueError, "bootstrap"),
        ([CAPTURE], {"since": "yesterday"}, ValueError, "since"),
    ],
)
def test_wrong_arguments_of_a_comparison_are_refused(captures, words, error, text):
    with pytest.raises(error, match=text):
        giveway.compare(*captures, **{"rate": "4mbit", **words})


def test_the_papers_are_listed():
    papers = {each.id: each for each in giveway.papers()}
    assert papers["efd"].claims == 48
    assert "5" in papers["efd"].figures
    assert "Networking 2011" in papers["efd"].reference


def test_a_paper_has_a_verdict_for_each_claim(tmp_path):
    study = giveway.reproduce("efd", quick=True, figure=5)
    assert study.claims
    assert {claim.verdict for claim in study.claims} <= {"reproduces", "differs", "could not be tested"}
    assert all(claim.statement and claim.paper and claim.ours and claim.source for claim in study.claims)
    assert study.title in str(study)
    assert study.quick
    page = study.report(tmp_path / "efd.html")
    assert (tmp_path / "efd.html").read_text(encoding="utf-8") == page
    assert "<script" not in study._repr_html_()


def test_a_paper_is_run_once_in_a_process(monkeypatch):
    from giveway import _papers

    monkeypatch.setitem(_papers._READ, ("efd", True), "kept")
    assert giveway.paper("efd") == "kept"


def test_an_unknown_paper_or_figure_is_refused():
    with pytest.raises(KeyError, match="unknown paper.*efd"):
        giveway.reproduce("nothing")
    with pytest.raises(KeyError, match="unknown figure 99"):
        giveway.reproduce("efd", figure=99)
    with pytest.raises(ValueError, match="jobs"):
        giveway.reproduce("efd", jobs=0)
