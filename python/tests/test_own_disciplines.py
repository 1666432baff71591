"""Disciplines that are written in Python, and their contract."""

from __future__ import annotations

import heapq
import random
from collections import deque
from functools import partial

import pytest
from conftest import QUICKSTART

import giveway


class Fifo:
    """The base of the disciplines of these tests: first in, first out, with 300 packets."""

    def __init__(self) -> None:
        self.queue: deque[giveway.Packet] = deque()

    def enqueue(self, packet, cx):
        if len(self.queue) == 300:
            cx.drop(packet)
        else:
            self.queue.append(packet)

    def dequeue(self, cx):
        return self.queue.popleft() if self.queue else None


def short(*disciplines, **words):
    return giveway.run(QUICKSTART, list(disciplines), **{"short": True, "seeds": 1, **words})


def rows(run, table):
    """The rows of a table without the name of the discipline."""
    return [{key: value for key, value in row.items() if key != "qdisc"} for row in run.table(table).rows()]


# --- results


def test_a_fifo_in_python_equals_the_built_in_fifo():
    mine, theirs = short(Fifo, seeds=2), short("fifo limit 300p", seeds=2)
    assert mine.disciplines == ["Fifo"]
    assert mine.fingerprint == theirs.fingerprint
    for table in ("flows", "queue", "sojourn", "shares", "delays", "links", "metrics"):
        assert rows(mine, table) == rows(theirs, table), table


def test_disciplines_in_python_keep_their_place_among_the_others():
    run = short("fifo limit 300p", Fifo, "efd", giveway.rank(lambda packet: packet.remaining, name="my_srpt"))
    assert run.disciplines == ["fifo limit 300p", "Fifo", "efd", "my_srpt"]
    assert run.estimate("goodput_bps", "Fifo") == run.estimate("goodput_bps", "fifo limit 300p")
    assert [row["qdisc"] for row in run.summary.rows()] == run.disciplines


def test_the_source_of_a_discipline_is_saved_with_the_results(tmp_path):
    run = short(Fifo)
    saved = run.save(tmp_path / "saved")
    assert saved.fingerprint == run.fingerprint
    text = (tmp_path / "saved" / "scenario.toml").read_text()
    assert "class Fifo" in text
    assert "self.queue.popleft()" in text


def test_a_name_for_results_can_be_given():
    class Other(Fifo):
        discipline_name = "my fifo!"

    assert short(Other).disciplines == ["my_fifo"]
    with pytest.raises(ValueError, match="two disciplines have the name 'Fifo'"):
        short(Fifo, Fifo)


def test_a_discipline_learns_its_link_and_draws_reproducible_numbers():
    seen = []

    class Lottery(Fifo):
        def __init__(self, link):
            super().__init__()
            seen.append(link)
            self.random = random.Random(link.seed)

        def enqueue(self, packet, cx):
            if self.random.random() < 0.02:
                cx.drop(packet, "early")
            else:
                super().enqueue(packet, cx)

    first, second = short(Lottery, seeds=2), short(Lottery, seeds=2)
    assert first.fingerprint == second.fingerprint
    assert [(link.name, link.rate) for link in seen] == [("home->isp", 10_000_000)] * 4
    assert seen[0] == seen[2]
    assert seen[0].seed != seen[1].seed
    assert seen[0].mtu >= 1500
    row = next(row for row in first.links.rows() if row["port"] == "home->isp")
    assert row["drops_early"] > 0


def test_gauges_are_in_the_table():
    class Counted(Fifo):
        def gauges(self):
            return {"queued": len(self.queue), "half": len(self.queue) / 2}

    found = [row for row in short(Counted).gauges.rows() if row["port"] == "home->isp"]
    queued = [row["value"] for row in found if row["gauge"] == "queued"]
    half = [row["value"] for row in found if row["gauge"] == "half"]
    assert max(queued) > 100
    assert [value / 2 for value in queued] == half


def test_a_change_of_the_rate_is_announced():
    seen = []

    class Watching(Fifo):
        def rate_changed(self, rate, cx):
            seen.append((round(cx.now, 6), rate))

    short(Watching, changes={"link.0.rate": {"steps": [["0 s", "10mbit"], ["2 s", "5mbit"], ["4 s", "8mbit"]]}})
    assert seen[-2:] == [(2.0, 5_000_000), (4.0, 8_000_000)]


def test_a_mark_reaches_the_sender():
    class Marking(Fifo):
        def enqueue(self, packet, cx):
            if len(self.queue) > 20 and packet.ecn != "not-ect":
                assert cx.mark(packet)
            elif len(self.queue) > 20:
                assert not cx.mark(packet)
            super().enqueue(packet, cx)

    words = {"changes": {"tcp.ecn": True}}
    marked, plain = short(Marking, **words), short(Fifo, **words)
    assert marked.estimate("marks").mean > 0
    assert plain.estimate("marks").mean == 0
    assert marked.estimate("backlog_mean_packets").mean < plain.estimate("backlog_mean_packets").mean / 2


def test_a_token_bucket_in_python_shapes_to_its_rate():
    class Bucket(Fifo):
        """2 Mbit/s with a burst of 3000 bytes."""

        rate = 2e6 / 8
        burst = 3000.0

        def __init__(self):
            super().__init__()
            self.tokens, self.at = self.burst, 0.0

        def dequeue(self, cx):
            if not self.queue:
                return None
            self.tokens = min(self.burst, self.tokens + (cx.now - self.at) * self.rate)
            self.at = cx.now
            missing = self.queue[0].bytes - self.tokens
            if missing > 1e-6:
                return cx.wait(missing / self.rate)
            self.tokens -= self.queue[0].bytes
            return self.queue.popleft()

    run = short(Bucket)
    row = next(row for row in run.links.rows() if row["port"] == "home->isp")
    sent = sum(each["bytes"] for each in run.shares.rows() if each["port"] == "home->isp" and each["time_s"] >= 1)
    assert sent * 8 / 5 == pytest.approx(2e6, rel=0.01)
    assert row["sent_packets"] > 0


def test_packets_have_the_attributes_of_the_documentation():
    seen = {}

    class Looking(Fifo):
        def enqueue(self, packet, cx):
            assert packet.arrived == cx.now
            assert packet.arrived_ps == cx.now_ps
            assert packet.number == len(seen)
            assert 0 < packet.bytes <= 1500
            assert packet.ecn in ("not-ect", "ect0", "ect1", "ce")
            assert 0 <= packet.dscp < 64
            assert packet.source != packet.destination
            assert f"packet {packet.number} ({packet.bytes} bytes of flow {packet.flow:x})" in repr(packet)
            seen[packet.number] = (packet.flow, packet.offset, packet.remaining, packet.traffic_class, packet.reserved)
            super().enqueue(packet, cx)

    short(Looking)
    assert len({flow for flow, *_ in seen.values()}) > 3
    assert any(offset > 0 for _, offset, *_ in seen.values())


# --- ranks


def test_a_constant_rank_is_a_fifo():
    run = short(giveway.rank(lambda packet: 1, limit="300p", name="constant"))
    assert rows(run, "flows") == rows(short("fifo limit 300p"), "flows")


def test_a_rank_serves_the_smallest_first_and_pushes_out_the_largest():
    by_size = giveway.rank(lambda packet: packet.bytes, limit="100p", name="small_first")
    run = short(by_size, "fifo limit 100p")
    assert (
        run.estimate("small_sojourn_p99_s", "small_first").mean < run.estimate("small_sojourn_p99_s", "fifo").mean / 5
    )
    row = next(row for row in run.links.rows() if row["qdisc"] == "small_first" and row["port"] == "home->isp")
    assert row["drops_pushout"] > 0


def test_a_rank_has_the_name_of_its_function_and_a_limit_in_packets_or_bytes():
    def oldest(packet):
        return packet.arrived

    run = short(giveway.rank(oldest, limit="100kb"))
    assert run.disciplines == ["oldest"]
    assert max(run.queue["backlog_bytes"]) <= 100 * 1024


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda packet: float("nan"), ValueError),
        (lambda packet: "first", TypeError),
        (lambda packet: None, TypeError),
        (lambda packet: 1 / 0, ZeroDivisionError),
    ],
)
def test_a_rank_that_is_no_number_names_the_packet(function, cause):
    with pytest.raises(
        giveway.DisciplineError, match=r"bad at home->isp, 0\.\d+ s, packet 0 \(.*the rank raised"
    ) as caught:
        short(giveway.rank(function, name="bad"))
    assert isinstance(caught.value.__cause__, cause)


def test_a_wrong_rank_is_refused():
    with pytest.raises(TypeError, match="a rank is a function"):
        giveway.rank(5)
    with pytest.raises(giveway.GivewayError, match="limit of bad.*needs a unit"):
        short(giveway.rank(lambda packet: 1, limit="3 apples", name="bad"))


# --- the contract


class RaisesAtEnqueue(Fifo):
    def enqueue(self, packet, cx):
        raise KeyError("flow")


class RaisesAtDequeue(Fifo):
    def dequeue(self, cx):
        raise IndexError("empty")


class Forgets(Fifo):
    def enqueue(self, packet, cx):
        pass


class ForgetsLater(Fifo):
    def enqueue(self, packet, cx):
        self.queue.append(packet)
        if len(self.queue) == 5:
            self.queue.pop()


class SendsTwice(Fifo):
    def dequeue(self, cx):
        return self.queue[0] if self.queue else None


class SendsDropped(Fifo):
    def enqueue(self, packet, cx):
        cx.drop(packet)
        self.queue.append(packet)


class DropsTwice(Fifo):
    def enqueue(self, packet, cx):
        cx.drop(packet)
        cx.drop(packet)


class DropsForNoReason(Fifo):
    def enqueue(self, packet, cx):
        cx.drop(packet, "because")


class MarksSent(Fifo):
    last = None

    def enqueue(self, packet, cx):
        if self.last is not None:
            cx.mark(self.last)
        super().enqueue(packet, cx)

    def dequeue(self, cx):
        self.last = super().dequeue(cx)
        return self.last


class Sleeps(Fifo):
    def dequeue(self, cx):
        return None


class WaitsForThePast(Fifo):
    def dequeue(self, cx):
        return cx.wait_until(cx.now / 2) if self.queue else None


class WaitsForNoTime(Fifo):
    def dequeue(self, cx):
        return cx.wait(0) if self.queue else None


class WaitsBackwards(Fifo):
    def dequeue(self, cx):
        return cx.wait(-1)


class WaitsForNaN(Fifo):
    def dequeue(self, cx):
        return cx.wait(float("nan"))


class ReturnsANumber(Fifo):
    def dequeue(self, cx):
        return 5


class GaugesAList(Fifo):
    def gauges(self):
        return [1]


class GaugesAText(Fifo):
    def gauges(self):
        return {"queued": "many"}


PACKET = r"packet \d+ \(\d+ bytes of flow [0-9a-f]+\)"


@pytest.mark.parametrize(
    ("discipline", "text", "cause"),
    [
        (RaisesAtEnqueue, rf"{PACKET}: enqueue raised KeyError: 'flow'", KeyError),
        (RaisesAtDequeue, "dequeue raised IndexError: empty", IndexError),
        (Forgets, "packet 0 was forgotten", None),
        (ForgetsLater, r"packet \d+ was forgotten", None),
        (SendsTwice, rf"{PACKET}: dequeue returned a packet that was sent or dropped before", None),
        (SendsDropped, rf"{PACKET}: dequeue returned a packet that was sent or dropped before", None),
        (DropsTwice, rf"{PACKET}: enqueue raised ValueError: {PACKET} was sent or dropped before", ValueError),
        (DropsForNoReason, 'unknown reason "because"; the reasons are overlimit', ValueError),
        (MarksSent, rf"{PACKET} was sent or dropped before", ValueError),
        (Sleeps, r"dequeue returned None, and \d+ packets are queued", None),
        (WaitsForThePast, r"dequeue waits until 0\.\d+ s, which is not in the future", None),
        (WaitsForNoTime, "which is not in the future", None),
        (WaitsBackwards, "-1 s is not a time of a simulation", ValueError),
        (WaitsForNaN, "NaN s is not a time of a simulation", ValueError),
        (ReturnsANumber, "dequeue returned <class 'int'>; return a packet", None),
        (GaugesAList, "gauges raised TypeError: gauges returns a dict", TypeError),
        (GaugesAText, "gauges raised TypeError: must be real number", TypeError),
    ],
)
def test_a_violation_of_the_contract_names_discipline_link_time_and_reason(discipline, text, cause):
    with pytest.raises(giveway.DisciplineError, match=text) as caught:
        short(discipline)
    assert str(caught.value).startswith(f"{discipline.__name__} at home->isp, 0.")
    assert type(caught.value.__cause__) is (cause or type(None))


def test_an_exception_of_rate_changed_is_reported():
    class Bad(Fifo):
        def rate_changed(self, rate, cx):
            raise RuntimeError(f"{rate} is too slow")

    steps = {"link.0.rate": {"steps": [["0 s", "10mbit"], ["2 s", "5mbit"]]}}
    with pytest.raises(giveway.DisciplineError, match=r"rate_changed raised RuntimeError: \d+ is too slow"):
        short(Bad, changes=steps)


def test_a_packet_of_another_queue_is_refused():
    stolen = []

    class Thief(Fifo):
        def enqueue(self, packet, cx):
            stolen.append(packet)
            super().enqueue(packet, cx)

        def dequeue(self, cx):
            # The first packet of the first seed, in the second seed.
            return stolen[0] if cx.now > 0 and second else super().dequeue(cx)

    second = False
    short(Thief)
    second = True
    with pytest.raises(giveway.DisciplineError, match="a packet of another queue"):
        short(Thief)


def test_the_traceback_of_the_cause_leads_to_the_line_in_python():
    with pytest.raises(giveway.DisciplineError) as caught:
        short(RaisesAtEnqueue)
    trace = caught.value.__cause__.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    assert trace.tb_frame.f_code.co_name == "enqueue"
    assert trace.tb_frame.f_code.co_filename == __file__


def test_a_class_without_the_methods_is_refused():
    class NoDequeue:
        def enqueue(self, packet, cx): ...

    with pytest.raises(TypeError, match="NoDequeue.* has no method dequeue"):
        short(NoDequeue)
    with pytest.raises(TypeError, match="give the class instead of an object"):
        short(Fifo())


def test_an_exception_of_the_constructor_is_raised_as_it_is():
    class Broken(Fifo):
        def __init__(self):
            raise LookupError("no table")

    with pytest.raises(LookupError, match="no table"):
        short(Broken)


def test_the_package_can_be_used_after_a_failure():
    with pytest.raises(giveway.DisciplineError):
        short(Forgets)
    assert short(Fifo).fingerprint == short("fifo limit 300p").fingerprint


def test_results_of_python_cannot_be_resumed_from_a_folder(tmp_path):
    with pytest.raises(ValueError, match=r"run\.save"):
        short(Fifo, out=tmp_path / "out")


class Careless(Fifo):
    """Does something random at each call, right or wrong, with numbers from a seed."""

    seed = 0
    #: How often a call does something wrong.
    wrong = 0.05

    def __init__(self):
        super().__init__()
        self.random = random.Random(self.seed)
        self.sent: list[giveway.Packet] = []

    def enqueue(self, packet, cx):
        if self.random.random() > self.wrong:
            return super().enqueue(packet, cx)
        action = self.random.choice(
            ["forget", "twice", "steal", "raise", "mark", "drop", "drop others", "clear", "type"]
        )
        if action == "twice":
            cx.drop(packet)
            cx.drop(packet)
        elif action == "steal":
            self.queue.append(packet)
            self.queue.append(packet)
        elif action == "raise":
            raise RuntimeError("careless")
        elif action == "mark":
            cx.mark(packet)
            cx.mark(packet)
            cx.drop(packet)
        elif action == "drop":
            cx.drop(packet, self.random.choice(["early", "reset", "wire", ""]))
        elif action == "drop others":
            self.queue.append(packet)
            while self.queue:
                cx.drop(self.queue.pop(), "pushout")
        elif action == "clear":
            self.queue.clear()
        elif action == "type":
            cx.drop(self.random.choice([None, 5, "packet", self]))
        return None

    def dequeue(self, cx):
        if self.random.random() > self.wrong:
            packet = super().dequeue(cx)
            self.sent.append(packet)
            return packet
        action = self.random.choice(["sleep", "wait", "again", "raise", "type", "drop", "wait wrong"])
        if action == "wait":
            return cx.wait(self.random.random() / 100)
        if action == "wait wrong":
            return cx.wait(self.random.choice([-1.0, 0.0, 1e300, float("inf"), float("nan")]))
        if action == "again":
            return self.random.choice(self.sent or [None])
        if action == "raise":
            raise self.random.choice([ValueError("careless"), StopIteration(), RecursionError(), MemoryError()])
        if action == "type":
            return self.random.choice([0, "", object, giveway])
        if action == "drop" and self.queue:
            packet = self.queue.popleft()
            cx.drop(packet)
            return self.random.choice([packet, None])
        return None

    def gauges(self):
        return {self.random.choice(["a", "ü", "", "a b"]): self.random.choice([1, 2.5, True])}


@pytest.mark.parametrize("wrong", [0.0, 0.001, 0.05, 0.5])
def test_no_discipline_however_wrong_ends_in_anything_but_its_error(wrong):
    ended = []
    for seed in range(40):
        discipline = type("Careless", (Careless,), {"seed": seed, "wrong": wrong})
        try:
            ended.append(short(discipline).complete)
        except giveway.DisciplineError as error:
            assert "home->isp" in str(error)
            ended.append(False)
    assert all(ended) == (wrong == 0.0)
    # The package works afterwards.
    assert short(Fifo).fingerprint == short("fifo limit 300p").fingerprint


def test_a_run_within_a_discipline_is_possible():
    inner = []

    class Nested(Fifo):
        def enqueue(self, packet, cx):
            if not inner:
                inner.append(short("efd").fingerprint)
            super().enqueue(packet, cx)

    assert short(Nested).fingerprint == short("fifo limit 300p").fingerprint
    assert inner == [short("efd").fingerprint]


def test_packets_and_contexts_that_outlive_the_run_do_no_harm():
    kept = []

    class Keeping(Fifo):
        def enqueue(self, packet, cx):
            kept.append((packet, cx))
            super().enqueue(packet, cx)

    run = short(Keeping)
    packet, cx = kept[-1]
    assert packet.bytes > 0
    assert 0 < cx.now <= 6
    with pytest.raises(ValueError, match="sent or dropped before"):
        cx.drop(kept[0][0])
    kept.clear()
    assert run.fingerprint == short("fifo limit 300p").fingerprint


def little() -> giveway.Network:
    net = giveway.Network(duration="1 s").link("home", "isp", "5mbit", "40 ms", qdisc="compare")
    return net.bulk("home", "isp", flows=2)


def test_packets_are_in_the_order_of_their_numbers():
    found = []

    class Heap:
        def __init__(self):
            self.heap = []

        def enqueue(self, packet, cx):
            heapq.heappush(self.heap, (0, packet))

        def dequeue(self, cx):
            if len(self.heap) > 2 and not found:
                packets = [packet for _, packet in self.heap]
                one, two = sorted(packets)[:2]
                found.append([packet.number for packet in sorted(packets, reverse=True)][::-1])
                found.append((one < two, one <= two, one > two, one >= two, one == two, one != two, one <= one))
                found.append((one == one, one in packets, len({one, two, one}), max(one, two) is two))
                with pytest.raises(TypeError):
                    assert one < 3
            return heapq.heappop(self.heap)[1] if self.heap else None

    run = little().run([Heap, "fifo limit 200p"], seeds=1)
    assert found[0] == sorted(found[0])
    assert found[1:] == [(True, True, False, False, False, True, True), (True, True, 2, True)]
    for table in ("flows", "links", "queue"):
        every = rows(run, table)
        assert every[: len(every) // 2] == every[len(every) // 2 :]


def test_a_wait_of_a_picosecond_ends_in_an_error():
    class Impatient(Fifo):
        def dequeue(self, cx):
            return cx.wait(1e-12) if self.queue else None

    with pytest.raises(giveway.DisciplineError, match="Impatient at .*has waited 10000 times within 1ms"):
        little().run([Impatient], seeds=1)


def test_a_discipline_may_look_often_at_a_queue_that_it_holds_back():
    class Polls(Fifo):
        def dequeue(self, cx):
            if self.queue and cx.now_ps % 10**9:
                return cx.wait(200e-9)
            return self.queue.popleft() if self.queue else None

    # A packet leaves only at whole milliseconds, which a step of 200 ns meets by chance.
    net = giveway.Network(duration="20 ms").link("a", "b", "10mbit", "1 ms", qdisc="compare").bulk("a", "b")
    assert net.run([Polls], seeds=1).complete


@pytest.mark.parametrize("method", ["enqueue", "dequeue", "gauges", "rate_changed"])
@pytest.mark.parametrize("kind", ["async", "generator"])
def test_a_method_whose_call_does_not_run_it_is_refused_by_its_name(method, kind):
    async def later(self, *_):
        return None

    def yields(self, *_):
        yield None

    wrong = type("Wrong", (Fifo,), {method: later if kind == "async" else yields})
    with pytest.raises(
        TypeError, match=f"Wrong.{method} {'is an `async def`' if kind == 'async' else 'has a `yield`'}"
    ):
        little().run([wrong], seeds=1)
    with pytest.raises(TypeError, match=f"Wrong.{method}"):
        giveway.Simulation(little(), wrong)
    with pytest.raises(TypeError, match="the rank slow is an `async def`"):
        giveway.rank(later, name="slow")


def test_an_error_has_the_line_of_its_cause():
    class Raises(Fifo):
        def enqueue(self, packet, cx):
            raise ValueError("here")

    with pytest.raises(giveway.DisciplineError, match=r"enqueue raised ValueError: here \(test_own_.*.py, line \d+\)"):
        little().run([Raises], seeds=1)


def test_partial_sets_parameters():
    class Short(Fifo):
        def __init__(self, most=100):
            super().__init__()
            self.most = most

        def enqueue(self, packet, cx):
            if len(self.queue) < self.most:
                self.queue.append(packet)
            else:
                cx.drop(packet)

    run = little().run([Short, partial(Short, most=5), "fifo limit 5p"], seeds=1)
    assert run.disciplines == ["Short", "Short most 5", "fifo limit 5p"]
    every = rows(run, "flows")
    third = len(every) // 3
    assert every[third : 2 * third] == every[2 * third :] != every[:third]
