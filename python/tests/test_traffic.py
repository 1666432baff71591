"""Sources of traffic that are written in Python."""

from __future__ import annotations

import random

import pytest

import giveway


class Every10ms:
    """A packet of 500 bytes every 10 ms."""

    def wake(self, cx):
        cx.send(500)
        return cx.wait_until(cx.now + 0.01)


class Poisson:
    """Packets at random times."""

    def __init__(self, flow):
        self.random = random.Random(flow.seed)

    def wake(self, cx):
        cx.send(1000)
        return cx.wait(self.random.expovariate(200))


def network(**keys) -> giveway.Network:
    net = giveway.Network(duration="1 s", warmup="0 s", phase="exact", **keys)
    net.link("home", "isp", "10mbit", "40 ms", qdisc="compare")
    # The stand-in for a source in Python: its kind and its rate do not matter.
    net.cbr("home", "isp", "1mbit", name="mine", start="100 ms", stop="600 ms")
    return net.audio("home", "isp", name="call")


def of(run, name):
    return next(row for row in run.flows if row["source"] == name)


def test_a_source_sends_what_it_says_at_the_times_that_it_says():
    run = network().run(["fifo limit 100p"], seeds=1, traffic={"mine": Every10ms})
    flow = of(run, "mine")
    # From 100 ms on, every 10 ms, before 600 ms. Headers of IP and UDP are not counted.
    assert (flow["sent_packets"], flow["bytes"]) == (50, 50 * (500 - 28))
    assert flow["start_s"] == pytest.approx(0.1)
    # A packet takes 40 ms and the time of its bits on the link. Packets of the call may delay it.
    assert 0.0404 - 1e-9 <= flow["delay_mean_s"] < 0.0406
    # The other traffic is that of the scenario.
    assert of(run, "call")["sent_packets"] == of(network().run(["fifo limit 100p"], seeds=1), "call")["sent_packets"]


def test_a_source_gets_its_flow():
    noted = []

    class Noted:
        def __init__(self, flow):
            noted.append(flow)

        def wake(self, cx):
            return None

    network().run(["fifo limit 60p", "fq_codel"], seeds=2, traffic={"mine": Noted})
    assert {(each.name, each.source, each.destination, each.stop) for each in noted} == {("mine", "home", "isp", 0.6)}
    assert all(each.start == pytest.approx(0.1) for each in noted)
    # Equal for all disciplines, and another one for each seed.
    assert [each.seed for each in noted[:2]] == [each.seed for each in noted[2:]]
    assert noted[0].seed != noted[1].seed


def test_random_sources_repeat_and_are_independent_of_others():
    def sent(**traffic):
        return of(network().run(["fifo limit 100p"], seeds=[5], traffic=traffic), "mine")

    assert sent(mine=Poisson) == sent(mine=Poisson)
    assert sent(mine=Poisson)["sent_packets"] == sent(mine=Poisson, call=Every10ms)["sent_packets"]


def test_each_pair_of_nodes_has_its_object_and_flows_have_numbers():
    class TwoFlows:
        def wake(self, cx):
            cx.send(100, flow=0)
            cx.send(200, flow=7)

    net = giveway.Network(duration="1 s").link("s[1-3]", "hub", "10mbit", "40 ms")
    net.link("hub", "isp", "10mbit", "1 ms", qdisc="compare")
    net.cbr("s[1-3]", "isp", "1mbit", name="mine")
    run = net.run(["fifo limit 100p"], seeds=1, traffic={"mine": TwoFlows})
    assert sorted(row["bytes"] for row in run.flows) == [72, 72, 72, 172, 172, 172]


def test_a_source_runs_beside_a_discipline_in_python_and_step_by_step():
    shortest = giveway.rank(lambda packet: packet.bytes, limit="100p", name="shortest")
    run = network().run([shortest], seeds=[3], traffic={"mine": Poisson})
    sim = giveway.Simulation(network(), shortest, seed=3, traffic={"mine": Poisson})
    while not sim.done:
        sim.step("70 ms")
    assert of(sim.finish(), "mine") == of(run, "mine")


def test_the_source_text_is_saved_with_the_results(tmp_path):
    run = network().run(["fifo limit 60p"], seeds=1, traffic={"mine": Every10ms})
    run.save(tmp_path / "run")
    assert "# | class Every10ms:" in (tmp_path / "run" / "scenario.toml").read_text()


def raising(cx):
    raise KeyError("oh")


@pytest.mark.parametrize(
    ("wake", "text"),
    [
        (lambda self, cx: 0.01, "wake returned <class 'float'>; return cx.wait"),
        (lambda self, cx: cx.wait(0), "wake waits until 0.1 s, which is not in the future"),
        (lambda self, cx: cx.wait_until(0.05), "which is not in the future"),
        (lambda self, cx: cx.wait(1e-12), "wake was called 10000 times within 1us"),
        (lambda self, cx: cx.wait(float("nan")), "wake raised ValueError: NaN s is not a time"),
        (lambda self, cx: cx.send(20), "wake raised ValueError: 20 bytes are not the length"),
        (lambda self, cx: cx.send(-1), "wake raised OverflowError"),
        (lambda self, cx: cx.send("1000"), "wake raised TypeError"),
        (lambda self, cx: cx.send(100, flow=100_000), "flow 100000: flows have the numbers"),
        (lambda self, cx: [cx.send(100) for _ in range(100_001)], "sends at most 100000 packets"),
        (lambda self, cx: raising(cx), r"wake raised KeyError: 'oh' \(test_traffic.py, line \d+\)"),
    ],
)
def test_a_mistake_names_the_source_its_traffic_and_the_time(wake, text):
    wrong = type("Wrong", (), {"wake": wake})
    with pytest.raises(
        giveway.TrafficError, match="^Wrong of traffic mine, home->isp, 0.1000.* s: .*" + text
    ) as caught:
        network().run(["fifo limit 60p"], seeds=1, traffic={"mine": wrong})
    if "raised" in text:
        assert caught.value.__cause__ is not None


def test_wrong_sources_are_refused():
    def run(traffic):
        return network().run(["fifo limit 60p"], seeds=1, traffic=traffic)

    with pytest.raises(giveway.GivewayError, match='no traffic "hers"; the traffic is mine, call'):
        run({"hers": Every10ms})
    with pytest.raises(TypeError, match="traffic is a dict"):
        run([Every10ms])
    with pytest.raises(TypeError, match="is not a class with a method wake"):
        run({"mine": Every10ms()})
    with pytest.raises(TypeError, match="has no method wake"):
        run({"mine": object})
    with pytest.raises(TypeError, match="Late.wake is an `async def`"):
        run({"mine": type("Late", (), {"wake": _late})})
    with pytest.raises(TypeError, match="Yields.wake has a `yield`"):
        run({"mine": type("Yields", (), {"wake": _yields})})
    with pytest.raises(ValueError, match="not resumed from a folder"):
        network().run(["fifo limit 60p"], traffic={"mine": Every10ms}, out="x")
    with pytest.raises(ZeroDivisionError):
        run({"mine": lambda: 1 // 0})


async def _late(self, cx):
    return None


def _yields(self, cx):
    yield cx.wait(1)


def test_an_interruption_of_a_source_ends_the_run():
    class Interrupts:
        def wake(self, cx):
            raise KeyboardInterrupt

    with pytest.raises(giveway.Interrupted):
        network().run(["fifo limit 60p"], seeds=1, traffic={"mine": Interrupts})
