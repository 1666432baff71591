"""A simulation that runs step by step, is read and changed."""

from __future__ import annotations

import pytest

import giveway


def network() -> giveway.Network:
    net = giveway.Network(duration="4 s", warmup="1 s", disciplines=["codel"])
    net.link("home", "isp", "5mbit", "10ms", qdisc="compare")
    return net.bulk("home", "isp", flows=2, name="upload").audio("home", "isp", name="call")


def test_a_simulation_to_which_nothing_is_done_is_a_run() -> None:
    whole = network().run(seeds=1)
    sim = giveway.Simulation(network())
    while not sim.done:
        sim.step("7 ms")
        assert sim.port().backlog == sim.port().state.backlog_packets
    run = sim.finish()
    assert run.fingerprint == whole.fingerprint
    assert list(run.flows.rows()) == list(whole.flows.rows())


def test_times_are_seconds_or_texts_with_a_unit() -> None:
    sim = giveway.Simulation(network())
    assert sim.step("250 ms").now == 0.25
    assert sim.step(0.5).now == 0.75
    assert sim.step(until="1 s").now == 1.0
    assert sim.step(until=1.5).now == 1.5
    assert sim.step().done and sim.now == sim.end == 4.0
    assert sim.step("1 s").now == 4.0, "a run does not go on after its end"
    for wrong in ["5", "fast", "-1 s", "1 kg", float("nan"), -1.0]:
        with pytest.raises(ValueError, match="time"):
            giveway.Simulation(network()).step(wrong)
    with pytest.raises(ValueError, match="in the past"):
        giveway.Simulation(network()).step("2 s").step(until="1 s")
    with pytest.raises(ValueError, match="not both"):
        giveway.Simulation(network()).step("2 s", until="1 s")


def test_counters_add_up_at_each_step() -> None:
    port = giveway.Simulation(network(), "fifo limit 20p")
    sim, port = port, port.port()
    sent = dropped = 0
    while not sim.done:
        sim.step("50 ms")
        did, state = port.since(), port.state
        sent, dropped = sent + did.sent_packets, dropped + did.dropped_packets
        assert state.arrived_packets == state.sent_packets + state.dropped_packets + state.backlog_packets
        assert (sent, dropped) == (state.sent_packets, state.dropped_packets)
        assert did.sojourn_mean <= did.sojourn_max <= 20 * 1500 * 8 / 5e6 + 0.01
    assert dropped > 0


def test_gauges_are_those_of_the_discipline() -> None:
    sim = giveway.Simulation(network(), "fq_codel").step("2 s")
    assert sim.port().gauges["flow_table"] >= 1


def test_a_watched_queue_lists_its_packets_in_order() -> None:
    sim = giveway.Simulation(network(), "fifo limit 50p")
    sim.port().watch()
    for _ in range(20):
        sim.step("100 ms")
        queue = sim.port().queue
        assert len(queue) == sim.port().backlog
        arrivals = [packet.arrived_ps for packet in queue]
        assert arrivals == sorted(arrivals)
        assert sum(packet.bytes for packet in queue) == sim.port().state.backlog_bytes
    with pytest.raises(RuntimeError, match="watch"):
        _ = giveway.Simulation(network(), "fifo limit 50p").step("2 s").port().queue


def test_a_changed_rate_changes_the_throughput() -> None:
    def sent(rate: str | float | None) -> int:
        sim = giveway.Simulation(network(), "fifo limit 50p").step("2 s")
        if rate is not None:
            sim.port().set_rate(rate)
        before = sim.port().state.sent_bytes
        return sim.step("2 s").port().state.sent_bytes - before

    assert sent("2500kbit") == sent(2.5e6) == pytest.approx(sent(None) / 2, rel=0.05)


def test_the_delay_and_the_loss_of_a_link_change() -> None:
    sim = giveway.Simulation(network()).step("1 s")
    sim.port().set_delay("50 ms")
    sim.port().set_loss(0.05)
    sim.step()
    lossy = sim.finish()
    assert lossy.estimate("goodput_bps").mean < network().run(seeds=1).estimate("goodput_bps").mean


def test_a_change_of_the_discipline_loses_no_packet() -> None:
    sim = giveway.Simulation(network(), "fifo limit 30p").step("2 s")
    before = sim.port().state
    sim.port().change("fq_codel")
    assert sim.port().state == before, "queued packets stay"
    sim.step()
    after = sim.port().state
    assert after.arrived_packets == after.sent_packets + after.dropped_packets + after.backlog_packets


def test_the_discipline_may_become_one_in_python() -> None:
    class Lifo:
        def __init__(self) -> None:
            self.packets: list[giveway.Packet] = []

        def enqueue(self, packet: giveway.Packet, cx: giveway.Context) -> None:
            self.packets.append(packet) if len(self.packets) < 30 else cx.drop(packet)

        def dequeue(self, cx: giveway.Context) -> giveway.Packet | None:
            return self.packets.pop() if self.packets else None

    sim = giveway.Simulation(network(), "fifo limit 30p").step("2 s")
    sim.port().change(Lifo)
    assert sim.step().finish().complete


def test_wrong_names_and_values_are_named() -> None:
    sim = giveway.Simulation(network())
    with pytest.raises(KeyError, match="home->isp"):
        sim.port("isp->mars")
    with pytest.raises(ValueError, match="fq_codel"):
        sim.port().change("fq_codle")
    with pytest.raises(ValueError, match="rate"):
        sim.port().set_rate("fast")
    with pytest.raises(ValueError, match="seeds: -1"):
        giveway.Simulation(network(), seed=-1)
    with pytest.raises(ValueError, match="probability"):
        sim.port().set_loss(1.5)
    sim.finish()
    with pytest.raises(RuntimeError, match="has ended"):
        sim.step("1 s")
