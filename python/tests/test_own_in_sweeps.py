"""Disciplines in Python in sweeps and in tuning."""

from __future__ import annotations

import hashlib
import linecache
import sys
import types
from functools import partial
from pathlib import Path

import pytest
from disciplines_to_send import SHORTEST, Dies, Faulty, HeadDrop

import giveway

OVER = {"link.0.rate": ["2mbit", "5mbit"], "qdisc.limit": [5, 40]}


def network(**keys) -> giveway.Network:
    net = giveway.Network(duration="1 s", warmup="200 ms", **keys)
    net.link("home", "isp", "5mbit", "40 ms", qdisc="compare")
    return net.bulk("home", "isp", name="upload").audio("home", "isp", name="call")


def digests(folder: Path) -> dict[str, str]:
    parts = sorted((folder / "trials").glob("*.parquet"))
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> giveway.Sweep:
    out = tmp_path_factory.mktemp("sweeps") / "alone"
    return giveway.sweep(network(), OVER, out=out, seeds=2, disciplines=["fifo limit 9p", HeadDrop, SHORTEST])


def test_a_class_is_swept_with_its_parameters_beside_the_built_in(alone):
    # The rank has no parameter, and runs once for each rate and seed.
    assert alone.counts == {"ran": 2 * (4 + 4 + 2), "had": 0, "reused": 0, "failed": 0}
    assert alone.disciplines == ["fifo limit 9p", "HeadDrop", "shortest"]
    frame = alone.trials.to_polars()
    assert set(frame["qdisc"]) >= {"HeadDrop limit 5p", "HeadDrop limit 40p", "shortest", "fifo limit 5p"}
    row = next(
        row for row in alone.trials
        if (row["qdisc"], row["seed"], row["link_0_rate_bps"]) == ("HeadDrop limit 5p", 2, 5e6)
    )  # fmt: skip
    run = network().run([partial(HeadDrop, limit=5)], seeds=[2])
    assert row["goodput_bps"] == run.estimate("goodput_bps").mean
    assert alone.answers("goodput_bps")


def test_processes_give_the_same_bytes(alone, tmp_path):
    compared = ["fifo limit 9p", HeadDrop, SHORTEST]
    apart = giveway.sweep(network(), OVER, out=tmp_path / "apart", seeds=2, disciplines=compared, jobs=2)
    assert apart.counts == alone.counts
    assert digests(apart.folder) == digests(alone.folder)
    again = giveway.sweep(network(), OVER, out=tmp_path / "apart", seeds=2, disciplines=compared)
    assert again.counts == {"ran": 0, "had": 20, "reused": 0, "failed": 0}


def test_only_a_class_runs_without_a_stand_in(tmp_path):
    found = giveway.sweep(network(), {"qdisc.limit": [5, 40]}, out=tmp_path / "one", seeds=1, disciplines=[HeadDrop])
    assert found.disciplines == ["HeadDrop"]
    assert sorted(found.trials["qdisc"]) == ["HeadDrop limit 40", "HeadDrop limit 5"]


def test_a_changed_class_runs_again_and_the_others_do_not(tmp_path, monkeypatch):
    file = tmp_path / "mine.py"
    module = types.ModuleType("mine_of_this_test")
    module.__file__, module.HeadDrop = str(file), HeadDrop
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def once(limit):
        # The text of a class is that of its file.
        file.write_text(f"class Mine(HeadDrop):\n    def __init__(self):\n        super().__init__({limit})\n")
        linecache.clearcache()
        exec(compile(file.read_text(), str(file), "exec"), vars(module))
        return giveway.sweep(
            network(), {"link.0.rate": ["2mbit", "5mbit"]}, out=tmp_path / "out", seeds=1,
            disciplines=["fifo limit 9p", module.Mine],
        ).counts  # fmt: skip

    assert once(5)["ran"] == 4
    assert once(5) == {"ran": 0, "had": 4, "reused": 0, "failed": 0}
    changed = once(6)
    assert (changed["ran"], changed["had"] + changed["reused"]) == (2, 2)


def test_a_mistake_ends_the_sweep_and_keeps_what_has_finished(tmp_path):
    for jobs in (1, 2):
        with pytest.raises(giveway.DisciplineError, match="Faulty at home->isp.*the fiftieth"):
            giveway.sweep(
                network(), {"link.0.rate": ["2mbit", "5mbit"]}, out=tmp_path / str(jobs), seeds=1, disciplines=[Faulty],
                jobs=jobs,
            )  # fmt: skip
    with pytest.raises(giveway.GivewayError, match="a process ended before its work.*Finished trials are in"):
        giveway.sweep(
            network(), {"link.0.rate": ["2mbit"]}, out=tmp_path / "dies", seeds=1, disciplines=[Dies, HeadDrop], jobs=2
        )
    again = giveway.sweep(
        network(), {"link.0.rate": ["2mbit"]}, out=tmp_path / "dies", seeds=1, disciplines=[HeadDrop], jobs=1
    )
    assert again.complete


def test_wrong_parameters_are_named(tmp_path):
    with pytest.raises(giveway.GivewayError, match="no compared discipline has the parameter limits.*did you mean"):
        giveway.sweep(network(), {"qdisc.limits": [1, 2]}, out=tmp_path / "a", disciplines=[HeadDrop])
    with pytest.raises(giveway.GivewayError, match="limit is a number, as its default 30, not '5ms'"):
        giveway.sweep(network(), {"qdisc.limit": ["5ms", "6ms"]}, out=tmp_path / "b", disciplines=[HeadDrop])
    with pytest.raises(ValueError, match="two disciplines have the name 'HeadDrop'"):
        giveway.sweep(network(), {"link.0.rate": ["2mbit"]}, out=tmp_path / "c", disciplines=[HeadDrop, HeadDrop])


def test_a_class_is_tuned_here_and_in_processes():
    pytest.importorskip("optuna")
    asked = {"objective": "src.call.delay_p95_s", "trials": 8, "seeds": 1, "confirm": 1, "prune": False}
    here = giveway.tune(network(), {"qdisc.limit": (2, 40)}, discipline=HeadDrop, **asked)
    assert here.discipline == "HeadDrop"
    assert int(here.best["qdisc.limit"]) < 20
    apart = giveway.tune(network(), {"qdisc.limit": (2, 40)}, discipline=HeadDrop, jobs=2, **asked)
    assert here == apart


def test_a_class_that_fails_at_each_value_says_so():
    pytest.importorskip("optuna")
    with pytest.raises(giveway.GivewayError, match="no candidate could run: Faulty limit \\d+ at home->isp"):
        giveway.tune(
            network(), {"qdisc.limit": (2, 40)}, objective="goodput_bps", discipline=Faulty, trials=2, seeds=1,
            confirm=0,
        )  # fmt: skip


def test_a_class_is_compared_at_its_own_best():
    pytest.importorskip("optuna")
    found = giveway.compare_tuned(
        network(), {HeadDrop: {"limit": (2, 40)}, "fifo limit 30p": {"limit": ("20p", "40p")}},
        objective="src.call.delay_p95_s", trials=4, seeds=1, confirm=1,
    )  # fmt: skip
    best = found.tuned["HeadDrop"].best["qdisc.limit"]
    assert found.run.disciplines[:2] == ["HeadDrop", f"HeadDrop limit {best}"]
