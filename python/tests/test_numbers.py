"""Numbers of numpy are numbers everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from disciplines_to_send import HeadDrop

import giveway


def network() -> giveway.Network:
    net = giveway.Network(duration="1 s", warmup="200 ms", disciplines=["fifo limit 60p"])
    net.link("home", "isp", "5mbit", "40 ms", qdisc="compare")
    return net.bulk("home", "isp", name="upload")


def equal(one, other):
    assert one.fingerprint == other.fingerprint


def test_seeds_jobs_and_threads():
    expected = network().run(["fifo limit 30p"], seeds=2)
    for seeds in (np.int64(2), np.uint8(2), np.array([1, 2]), [np.int32(1), np.int64(2)], np.array(2), (1, np.int8(2))):
        equal(network().run(["fifo limit 30p"], seeds=seeds, jobs=np.int64(2), threads=np.int32(1)), expected)
    assert giveway.Simulation(network(), "fifo limit 60p", seed=np.int64(3)).seed == 3
    for wrong in (np.bool_(True), np.float64(2), np.array([1.0]), np.array([[1], [2]]), np.nan):
        with pytest.raises((TypeError, ValueError), match="seeds"):
            network().run(["fifo limit 60p"], seeds=wrong)
        with pytest.raises((TypeError, ValueError), match="jobs"):
            network().run(["fifo limit 60p"], jobs=wrong)


def test_flags_and_keys():
    net = giveway.Network(duration="1 s", seeds=np.int64(1), record={"senders": np.bool_(True)})
    net.link("a", "b", "5mbit", "40 ms", qdisc="compare", loss=np.float32(0.25), cost=np.int8(2))
    net.bulk("a", "b", flows=np.int16(2))
    assert net.run(["fifo limit 60p"], short=np.bool_(False), progress=np.bool_(False)).seeds == [1]
    changed = giveway.Scenario(
        net, changes={"traffic.bulk.flows": np.uint8(3), "disciplines": np.array(["fifo limit 60p"])}
    )
    assert changed.to_dict()["traffic"][0]["flows"] == 3


def test_ports_and_times():
    sim = giveway.Simulation(network(), "codel", seed=1)
    sim.step(np.float32(0.25)).step(until=np.float64(0.5))
    assert sim.now == 0.5
    port = sim.port()
    port.set_rate(np.float32(4e6))
    port.set_rate(np.int64(4_000_000))
    assert port.rate == 4_000_000
    port.set_delay(np.float32(0.25))
    port.set_loss(np.float64(0.1))
    sim.step(np.float32(0.25))


def test_ranks_waits_and_gauges():
    for number in (np.int64, np.float32, np.float64, np.bool_, np.uint8):
        ranked = giveway.rank(lambda packet, number=number: number(packet.bytes > 100), limit=np.int64(30), name="r")
        plain = giveway.rank(lambda packet: packet.bytes > 100, limit="30p", name="r")
        equal(network().run([ranked], seeds=1), network().run([plain], seeds=1))

    class Waits(HeadDrop):
        until = 0

        def dequeue(self, cx):
            if not self.packets:
                return None
            if cx.now_ps < self.until:
                return cx.wait(np.float32(0.001))
            self.until = cx.now_ps + 10**9
            return super().dequeue(cx)

        def gauges(self):
            return {np.str_("held"): np.float32(len(self.packets)), "more": np.int64(1)}

    run = network().run([Waits], seeds=1)
    assert {"held", "more"} <= set(run.gauges["gauge"])


def test_sweeps_and_tuning(tmp_path):
    pytest.importorskip("optuna")
    for number, values in enumerate((np.array([10, 20]), [np.int64(10), np.int32(20)], (np.float64(10), 20), [10, 20])):
        found = giveway.sweep(
            network(), {"qdisc.limit": values}, out=tmp_path / str(number), seeds=np.int64(1), jobs=np.int64(1),
        )  # fmt: skip
        assert sorted(found.trials["qdisc_limit_packets"]) == [10, 20], number
    tuned = giveway.tune(
        network(), {"qdisc.limit": (np.int64(5), np.int64(6))}, objective="sojourn_p95_s", discipline="fifo limit 60p",
        trials=np.int64(2), seeds=np.int32(1), confirm=np.int8(0), sampler_seed=np.int64(2), prune=np.bool_(False),
    )  # fmt: skip
    assert {each.values["qdisc.limit"] for each in tuned.candidates} <= {"5", "6", "5p", "6p"}
    for name, wrong in (("trials", 1.5), ("seeds", True), ("confirm", -1), ("trials", np.bool_(True)), ("seeds", 0)):
        with pytest.raises((TypeError, ValueError), match=name):
            giveway.tune(
                network(),
                {"qdisc.limit": (5, 6)},
                objective="sojourn_p95_s",
                discipline="fifo limit 60p",
                **{name: wrong},
            )
    with pytest.raises(TypeError, match="over is a dict"):
        giveway.sweep(network(), ["qdisc.limit"], out=tmp_path / "x")
