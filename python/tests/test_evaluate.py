"""Cards of built-in disciplines, and of a class."""

from __future__ import annotations

import threading
from collections import deque

import pytest

import giveway

CELLS = ["rrul/tcp-8-down", "rfc7928/ecn-on"]
ASKED = {"cells": CELLS, "seeds": 4, "short": True, "timing": False, "tune": 0, "sensitivity": False}
PING = "src.ping.delay_p95_s"
#: The threads in which the class below was called.
threads: set[int] = set()


class Short:
    """A fifo of 20 packets."""

    def __init__(self):
        threads.add(threading.get_ident())
        self.queue = deque()

    def enqueue(self, packet, cx):
        if len(self.queue) == 20:
            cx.drop(packet)
        else:
            self.queue.append(packet)

    def dequeue(self, cx):
        return self.queue.popleft() if self.queue else None


@pytest.fixture(scope="module")
def card() -> giveway.Card:
    return giveway.evaluate("fq_codel", against=["fifo limit 200p"], **ASKED)


def test_a_card_has_verdicts_by_question_and_by_metric(card, tmp_path):
    assert card.verdict("rrul/tcp-8-down", PING) == "better"
    assert {each["question"] for each in card.matrix} == {"delay", "use", "fair", "safe", "cost"}
    assert "keeps delays low" in str(card)
    assert "<td" in card._repr_html_()
    card.save(tmp_path / "card")
    assert (tmp_path / "card" / "cells" / "rfc7928" / "ecn-on.toml").exists()
    assert "Card of fq_codel" in (tmp_path / "card" / "card.html").read_text()
    with pytest.raises(KeyError, match="no metric"):
        card.verdict("rrul/tcp-8-down", "jitter")


def test_a_cell_reproduces_the_runs_of_a_card(card):
    again = giveway.run(giveway.Scenario.from_toml(card.scenarios["rfc7928/ecn-on"]), seeds=4, short=True)
    [line] = [each for each in card.lines if (each["cell"], each["metric"]) == ("rfc7928/ecn-on", PING)]
    assert again.estimate(PING, "fq_codel").mean == pytest.approx(line["value"], rel=1e-12)
    assert again.estimate(PING, "fifo limit 200p").mean == line["baseline_value"]


def test_a_class_has_a_card():
    card = giveway.evaluate(Short, against=["fifo limit 20p", "fifo limit 200p"], **ASKED)
    # It decides as the built-in one does.
    lines = [line for line in card.lines if line["baseline"] == "fifo limit 20p" and line["cell"] is not None]
    assert {line["verdict"] for line in lines} == {"same"}
    assert all(line["difference"] == 0 for line in lines)
    assert card.verdict("rrul/tcp-8-down", PING, "fifo limit 200p") == "better"
    # Nobody has counted its instructions.
    assert {each["verdict"] for each in card.matrix if each["question"] == "cost"} == {"undecided"}
    assert "# | class Short" in card.scenarios["rrul/tcp-8-down"]
    assert threads == {threading.get_ident()}


def test_each_discipline_is_compared_at_its_own_best(card):
    assert card.own_best is None
    tuned = giveway.evaluate("fifo limit 200p", against=["codel"], **{**ASKED, "tune": 4})
    mine, other = tuned.own_best["settings"]
    assert (mine["discipline"], other["discipline"]) == ("fifo limit 200p", "codel")
    assert len(mine["tried"]) <= 4
    assert all(each["setting"].startswith("fifo") for each in mine["tried"])
    assert len(tuned.own_best["lines"]) == len([line for line in tuned.lines if line["cell"] is not None])
    assert "At their own best of 4 settings" in str(tuned)
    assert "At its own best" in tuned.report()


def test_parameters_change_by_a_fifth(card):
    assert card.sensitivity == []
    changed = giveway.evaluate("codel", against=["fifo limit 200p"], **{**ASKED, "sensitivity": True})
    shown = [(row["parameter"], row["from"], row["to"]) for row in changed.sensitivity]
    assert ("target", "5ms", "6ms") in shown
    assert len(shown) == 6
    assert "a parameter of codel that changes by 20 %" in str(changed)


def test_the_parameters_of_a_class_are_not_known():
    asked = {**ASKED, "cells": ["rfc7928/ecn-on"], "tune": 2, "sensitivity": True}
    card = giveway.evaluate(Short, against=["fifo limit 200p"], **asked)
    assert card.sensitivity == []
    assert not card.data["sensitivity"]["parameters_known"]
    assert card.own_best["settings"][0]["tried"] == []
    assert "parameters of a discipline in code are not known" in str(card)
    with pytest.raises(ValueError, match="number of settings"):
        giveway.evaluate("efd", tune=-1)


def test_a_class_that_breaks_the_contract_ends_the_card():
    class Forgets(Short):
        def enqueue(self, packet, cx):
            pass

    with pytest.raises(giveway.DisciplineError, match="Forgets"):
        giveway.evaluate(Forgets, against=["fifo"], **ASKED)


def test_runs_are_kept_and_taken(card, tmp_path):
    first = giveway.evaluate("fq_codel", against=["fifo limit 200p"], **ASKED, out=tmp_path / "card")
    assert first.data == card.data
    assert sorted(path.suffix for path in (tmp_path / "card" / "trials").iterdir()) == [".parquet"] * len(CELLS)
    again = giveway.evaluate("fq_codel", against=["fifo limit 200p"], **ASKED, reuse=[tmp_path / "card"])
    assert again.data == card.data
    with pytest.raises(ValueError, match="has no trials: name the folder of a sweep, of a card or of a run"):
        giveway.evaluate("fifo", **ASKED, reuse=[tmp_path])


def test_mistakes_are_named():
    with pytest.raises(giveway.ScenarioError, match="fq_codel"):
        giveway.evaluate("fq_codle", against=["fifo"], **ASKED)
    with pytest.raises(ValueError, match="did you mean rrul"):
        giveway.evaluate("efd", cells=["rrull"])
    with pytest.raises(ValueError, match="two seeds"):
        giveway.evaluate("efd", seeds=1, cells=["rrul"], short=True)
    with pytest.raises(TypeError, match="against is a list"):
        giveway.evaluate("efd", against="fifo")
    assert giveway.evaluation_cells()["rrul/rrul-be"] == "Four downloads and four uploads"
