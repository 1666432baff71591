"""Tuning: searches that are repeatable, race their candidates, and confirm the winner."""

from __future__ import annotations

import matplotlib
import pytest
from conftest import QUICKSTART

import giveway

matplotlib.use("agg")

#: On a slow link, the delay of a call grows with the limit of a fifo: the best limit is the smallest.
SLOW = {
    "duration": "4 s",
    # A slow start that fills the queue at once, and the same starts under each seed.
    "phase": "exact",
    "tcp": {"preset": "rfc"},
    "disciplines": ["fifo limit 30p"],
    "link": [{"from": "home", "to": "isp", "rate": "2mbit", "delay": "10ms", "qdisc": "compare"}],
    "traffic": [
        {"kind": "bulk", "from": "home", "to": "isp", "name": "up"},
        {"kind": "audio", "from": "home", "to": "isp", "name": "call"},
    ],
}
DELAY = "src.call.delay_p95_s"


def test_the_best_limit_of_a_fifo_for_a_call_is_the_smallest():
    found = giveway.tune(SLOW, {"qdisc.limit": ("2p", "100p")}, objective=DELAY, trials=24, seeds=4, confirm=6)
    assert len(found.candidates) == 24
    assert int(found.best["qdisc.limit"].removesuffix("p")) <= 6
    [confirmed] = found.confirmed
    # Measurably better on seeds that the search has not seen.
    assert confirmed.change is not None
    assert confirmed.ci95 is not None
    assert confirmed.change < -confirmed.ci95
    assert len(confirmed.after.per_seed) == 6
    # Hopeless candidates ended early, and the winner did not.
    assert any(each.ended_early and each.seeds < 4 for each in found.candidates)
    assert found.front[0].seeds == 4
    assert "fifo limit 30p: qdisc.limit" in str(found)
    assert found.figure().axes[0].get_ylabel() == f"best {DELAY}"


def test_a_hopeless_candidate_ends_in_the_middle_of_its_first_run():
    asked = {"objective": DELAY, "trials": 24, "seeds": 4, "confirm": 0}
    found = giveway.tune(SLOW, {"qdisc.limit": ("2p", "100p")}, **asked)
    cut = [each for each in found.candidates if each.seeds == 0]
    assert cut
    # Only long queues, whose delay shows at once.
    assert min(int(each.values["qdisc.limit"].removesuffix("p")) for each in cut) > 30
    assert all(each.ended_early for each in cut)
    whole = giveway.tune(SLOW, {"qdisc.limit": ("2p", "100p")}, prune=False, **asked)
    assert all(each.seeds > 0 for each in whole.candidates)
    # The candidates of the first round are the same, and none of them is cut.
    assert whole.candidates[:8] == found.candidates[:8]


def test_the_result_does_not_depend_on_the_jobs():
    asked = {"objective": DELAY, "trials": 10, "seeds": 3, "confirm": 2}
    one = giveway.tune(SLOW, {"qdisc.limit": "log(2p,100p)"}, jobs=1, **asked)
    two = giveway.tune(SLOW, {"qdisc.limit": "log(2p,100p)"}, jobs=3, **asked)
    assert one == two
    other = giveway.tune(SLOW, {"qdisc.limit": "log(2p,100p)"}, sampler_seed=2, **asked)
    assert [each.values for each in one.candidates] != [each.values for each in other.candidates]


def test_several_objectives_have_a_front():
    found = giveway.tune(
        SLOW, {"qdisc.limit": ("2p", "60p")}, objective=[DELAY, "utilization"], trials=16, seeds=2, confirm=2
    )
    assert len(found.front) >= 2
    front = sorted(found.front, key=lambda each: each.metrics[DELAY])
    # Less delay costs use of the link.
    assert [each.metrics["utilization"] for each in front] == sorted(each.metrics["utilization"] for each in front)
    assert {each.metric for each in found.confirmed} == {DELAY, "utilization"}
    assert found.figure().axes[0].get_xlabel() == DELAY


def test_the_winner_is_confirmed_on_scenarios_that_it_has_not_seen():
    fast = {**SLOW, "title": "fast", "link": [{**SLOW["link"][0], "rate": "5mbit"}]}
    found = giveway.tune(
        SLOW, {"qdisc.limit": ["4p", "40p"]}, objective=DELAY, trials=4, seeds=2, confirm=2, confirm_on=[fast]
    )
    assert [each.scenario for each in found.confirmed] == ["scenario", "fast"]
    assert len({each.values["qdisc.limit"] for each in found.candidates}) <= 2


def test_disciplines_are_compared_each_at_its_own_best():
    found = giveway.compare_tuned(
        SLOW,
        {"fifo limit 30p": {"limit": ("2p", "60p")}, "codel target 20ms": {"target": "lin(6ms,60ms)"}},
        objective=DELAY, trials=8, seeds=2, confirm=3,
    )  # fmt: skip
    assert set(found.tuned) == {"fifo limit 30p", "codel target 20ms"}
    assert len(found.run.disciplines) == 4
    assert min(found.run.seeds) > 1_000_000
    best = found.run.disciplines[1]
    assert found.run.estimate(DELAY, best).mean < found.run.estimate(DELAY, "fifo limit 30p").mean
    assert "codel" in str(found)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="discipline: give one of fifo"):
        giveway.tune(QUICKSTART, {"qdisc.threshold": (5, 20)}, objective="fct_p95_s")
    with pytest.raises(ValueError, match="give at least one key"):
        giveway.tune(SLOW, {}, objective=DELAY)
    with pytest.raises(ValueError, match="a range has two ends"):
        giveway.tune(SLOW, {"qdisc.limit": (1, 2, 3)}, objective=DELAY)
    with pytest.raises(ValueError, match="trials is a whole number: give at least 1, not 0"):
        giveway.tune(SLOW, {"qdisc.limit": (2, 9)}, objective=DELAY, trials=0)
    for objective, message in [
        ("fct_p98_s", "there is no metric fct_p98_s; did you mean fct_p9._s"),
        ("marks", "neither a high nor a low marks is better"),
    ]:
        with pytest.raises(ValueError, match=message):
            giveway.tune(SLOW, {"qdisc.limit": ("2p", "9p")}, objective=objective, trials=2, seeds=1)
    with pytest.raises(giveway.GivewayError, match="no candidate could run.*treshold"):
        giveway.tune(SLOW, {"qdisc.treshold": (2, 9)}, objective=DELAY, trials=2, seeds=1)
