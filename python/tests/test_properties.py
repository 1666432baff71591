"""Public functions with any arguments: a result, or an error that the documentation names."""

from __future__ import annotations

import contextlib
import os
import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

import giveway

numbers = (
    some.booleans()
    | some.integers()
    | some.floats()
    | some.sampled_from([1e-12, 1e-300, 1e308, 2**63, 2**64, -1, 0, 10**30])
    | some.builds(np.int64, some.integers(-(2**63), 2**63 - 1))
    | some.builds(np.float32, some.floats(width=32))
    | some.builds(np.bool_, some.booleans())
)
texts = some.text(max_size=8) | some.sampled_from(
    ["5ms", "1mbit", "10p", "5 %", "lin(1p,9p)", "log(1,9,3)", "1..8", "=", ","]
)
plain = some.none() | numbers | texts | some.binary(max_size=4)
arrays = some.builds(np.array, some.lists(some.integers(-9, 9) | some.floats(), max_size=4))
anything = (
    plain | arrays | some.lists(plain, max_size=4) | some.dictionaries(texts, plain, max_size=2) | some.just(object)
)

#: What a wrong argument may raise: `GivewayError`, or the errors of Python for arguments.
REFUSED = (giveway.GivewayError, TypeError, ValueError, KeyError, OverflowError)
#: Few in the gate; ``GIVEWAY_EXAMPLES=1000`` searches.
many = settings(max_examples=int(os.environ.get("GIVEWAY_EXAMPLES", "20")))
pytestmark = pytest.mark.filterwarnings("ignore::giveway.GivewayWarning", "ignore::RuntimeWarning")


def network() -> giveway.Network:
    net = giveway.Network(duration="20 ms", warmup="0 s", disciplines=["fifo limit 60p"])
    net.link("home", "isp", "10mbit", "40 ms", qdisc="compare")
    return net.cbr("home", "isp", "5mbit", name="mine", packet="1000b")


READ = network().check()


@pytest.fixture(scope="module")
def table() -> giveway.Table:
    return READ and giveway.run(READ, ["fifo limit 60p", "fq_codel limit 60p"], seeds=3).metrics


@many
@given(cut=some.builds(slice, *[some.none() | some.integers(-400, 400)] * 3))
def test_slices_of_tables_are_those_of_lists(table, cut):
    rows = list(range(len(table)))
    try:
        expected = rows[cut]
    except ValueError:
        with pytest.raises(ValueError, match="step"):
            table[cut]
        return
    part = table[cut]
    values, whole = part["metric"], table["metric"]
    assert values == [whole[row] for row in expected]
    assert pickle.loads(pickle.dumps(part))["metric"] == values


@many
@given(index=anything)
def test_any_index_of_a_table_has_a_value_or_an_error(table, index):
    try:
        found = table[index]
    except (TypeError, KeyError, IndexError):
        return
    assert isinstance(found, dict) or isinstance(index, str)


@many
@given(rows=anything)
def test_any_head_and_tail(table, rows):
    try:
        assert len(table.head(rows)) <= len(table)
        assert len(table.tail(rows)) <= len(table)
    except (TypeError, OverflowError):
        pass


@many
@given(seeds=anything)
@example(np.array(3))
@example([np.int8(1), 1])
def test_any_seeds(seeds):
    try:
        found = READ.with_seeds(seeds)
    except REFUSED:
        return
    assert found.seeds
    assert all(type(seed) is int for seed in found.seeds)
    assert pickle.loads(pickle.dumps(found)) == found


@many
@given(
    words=some.dictionaries(some.sampled_from(["seeds", "jobs", "threads", "short", "progress", "traffic"]), anything)
)
def test_any_options_of_a_run(words):
    if words.get("seeds") is not None:
        # A valid number of seeds could take hours.
        words["seeds"] = [words["seeds"]]
    with contextlib.suppress(*REFUSED):
        assert giveway.run(READ, ["fifo limit 60p"], **words).complete


@many
@given(
    over=some.dictionaries(texts | some.sampled_from(["qdisc.limit", "link.0.rate", "duration"]), anything, max_size=2)
)
@example({"qdisc.limit": np.array([5.0, 9.0])})
@example({"qdisc.limit": (np.int64(5), np.float32(9))})
@example({"qdisc.limit": [True]})
@example({"qdisc.limit": []})
@example({"duration": [np.nan]})
def test_any_axes_of_a_sweep(tmp_path_factory, over):
    out = tmp_path_factory.mktemp("sweep")
    try:
        found = giveway.sweep(READ, over, out=out, seeds=1, design="grid", jobs=1)
    except REFUSED:
        return
    assert found.complete


@many
@given(over=some.dictionaries(some.just("qdisc.limit") | texts, anything | some.tuples(plain, plain), max_size=2))
def test_any_ranges_of_a_search(over):
    pytest.importorskip("optuna")
    with contextlib.suppress(*REFUSED):
        giveway.tune(READ, over, objective="sojourn_p95_s", trials=1, seeds=1, confirm=0, jobs=1)


@many
@given(rate=anything, delay=anything, loss=anything, time=anything)
def test_any_change_of_a_port(rate, delay, loss, time):
    sim = giveway.Simulation(READ, series=False)
    port = sim.port()
    for change, value in ((port.set_rate, rate), (port.set_delay, delay), (port.set_loss, loss), (port.change, rate)):
        try:
            change(value)
        except REFUSED:
            continue
    with contextlib.suppress(*REFUSED):
        sim.step(time)
    assert sim.finish().seeds == [1]


@many
@given(rank=anything, limit=anything)
@example(np.float32(2), np.int64(9))
@example(float("nan"), 5)
def test_any_rank(rank, limit):
    try:
        mine = giveway.rank(lambda packet: rank, limit=limit, name="mine")
        run = giveway.run(READ, [mine], seeds=1)
    except giveway.DisciplineError as error:
        assert "mine at home->isp" in str(error)
    except REFUSED:
        pass
    else:
        assert run.complete


@many
@given(wait=anything, size=anything, flow=some.integers(-2, 3), until=some.booleans(), answer=some.none() | anything)
@example(1e-12, 1000, 0, False, None)
@example(np.float32(0.001), np.int64(500), 1, False, None)
def test_any_packets_and_waits_of_a_source(wait, size, flow, until, answer):
    class Any:
        def wake(self, cx):
            cx.send(size, flow=flow)
            return answer or (cx.wait_until(wait) if until else cx.wait(wait))

    class Held(Any):
        """The same waits of a queue."""

        def __init__(self):
            self.packets = []

        def enqueue(self, packet, cx):
            self.packets.append(packet)

        def dequeue(self, cx):
            if not self.packets:
                return None
            return answer or (cx.wait_until(wait) if until else cx.wait(wait))

    try:
        assert giveway.run(READ, seeds=1, traffic={"mine": Any}).complete
    except giveway.TrafficError as error:
        assert "Any of traffic mine, home->isp" in str(error)
    try:
        assert giveway.run(READ, [Held], seeds=1).complete
    except giveway.DisciplineError as error:
        assert "Held at home->isp" in str(error)


@many
@given(action=anything | some.dictionaries(some.sampled_from(["target", "interval", "x"]), plain))
def test_any_action(action):
    pytest.importorskip("gymnasium")
    from giveway.gym import QueueEnv

    env = QueueEnv(READ, "codel", {"target": ("1 ms", "50 ms"), "interval": ("50 ms", "200 ms")})
    env.reset(seed=1)
    try:
        observation, *_ = env.step(action)
    except REFUSED:
        observation, *_ = env.step([0.0, 0.0])
    assert observation.shape == env.observation_space.shape


@many
@given(name=anything, low=anything, high=anything)
def test_any_parameter_of_an_environment(name, low, high):
    pytest.importorskip("gymnasium")
    from giveway.gym import QueueEnv

    try:
        env = QueueEnv(READ, "codel", {name: (low, high)})
        env.reset(seed=1)
        env.step([0.5])
    except REFUSED:
        pass
