"""Arbiters of a switch that are written in Python."""

from __future__ import annotations

import random

import pytest
from conftest import ROOT

import giveway

SWITCH = ROOT / "scenarios" / "switch" / "short-first.toml"


class LongestQueueFirst:
    """Greedy: the request with the longest queue first."""

    def match(self, requests, slot):
        pairs, inputs, outputs = [], set(), set()
        for request in sorted(requests, key=lambda request: (-request.cells, request.input, request.output)):
            if request.input not in inputs and request.output not in outputs:
                pairs.append((request.input, request.output))
                inputs.add(request.input)
                outputs.add(request.output)
        return pairs


def small(**changes):
    return {"duration": "2000 slots", "warmup": "200 slots", "switch.ports": 4, "seeds": 2, **changes}


def test_an_arbiter_runs_beside_those_that_are_built_in():
    run = giveway.run(SWITCH, ["islip", LongestQueueFirst], changes=small())
    assert run.disciplines[1] == "LongestQueueFirst"
    assert run.complete
    assert len(run.summary) == 4


def test_equal_seeds_give_equal_results_and_random_numbers_come_from_the_switch():
    class Random:
        def __init__(self, switch):
            assert switch.ports == 4
            self.random = random.Random(switch.seed)

        def match(self, requests, slot):
            requests = list(requests)
            self.random.shuffle(requests)
            pairs, used = [], set()
            for each in requests:
                if not {("in", each.input), ("out", each.output)} & used:
                    pairs.append((each.input, each.output))
                    used |= {("in", each.input), ("out", each.output)}
            return pairs

    one, two = (giveway.run(SWITCH, [Random], changes=small()) for _ in range(2))
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (lambda requests: [(99, 0)], "not one of ports 0 to 3"),
        (lambda requests: [(requests[0].input, requests[0].output)] * 2, "in two pairs"),
        (lambda requests: "nonsense", "match raised"),
        (lambda requests: 1 / 0, "match raised ZeroDivisionError"),
    ],
)
def test_a_mistake_names_the_slot(pairs, message):
    class Wrong:
        def match(self, requests, slot):
            return pairs(requests)

    with pytest.raises(giveway.DisciplineError, match=f"(?s)slot \\d+.*{message}"):
        giveway.run(SWITCH, [Wrong], changes=small())


def test_a_class_without_match_is_refused():
    with pytest.raises(giveway.DisciplineError, match="no method match"):
        giveway.run(SWITCH, [type("Nothing", (), {})], changes=small())
