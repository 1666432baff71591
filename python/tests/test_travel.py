"""Objects that are copied, pickled, and sent to other processes."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pytest
from conftest import QUICKSTART, environment
from disciplines_to_send import SHORTEST, Bursts, Faulty, HeadDrop

import giveway


def network(seeds: int = 2) -> giveway.Network:
    net = giveway.Network(duration="1 s", warmup="200 ms", seeds=seeds, disciplines=["fifo limit 30p"])
    net.link("home", "isp", "5mbit", "40 ms", qdisc="compare")
    return net.bulk("home", "isp", name="upload")


def copies(what):
    return [copy.copy(what), copy.deepcopy(what), *(pickle.loads(pickle.dumps(what, kind)) for kind in (2, 5))]


def test_a_scenario_is_copied_with_everything_that_was_set():
    scenario = giveway.Scenario(QUICKSTART, changes={"link.0.rate": "5mbit"}).short().with_seeds([7, 3])
    for other in copies(scenario):
        assert other == scenario
        assert (other.name, other.duration, other.seeds) == (scenario.name, scenario.duration, [7, 3])
        # Seeds and short settings outlive a change of another key.
        changed = giveway.Scenario(other, changes={"link.0.rate": "4mbit"})
        assert (changed.seeds, changed.duration) == ([7, 3], scenario.duration)


def test_a_scenario_takes_its_folder_along(tmp_path, monkeypatch):
    (tmp_path / "rate.csv").write_text("time_s,rate_bps\n0,2000000\n1,1000000\n")
    net = network().to_dict()
    net["link"][0]["rate"] = {"csv": "rate.csv"}
    net.pop("seeds")
    try:
        scenario = giveway.Scenario(net, folder=tmp_path)
    except giveway.ScenarioError as wrong:
        pytest.fail(str(wrong))
    packed = pickle.dumps(scenario)
    monkeypatch.chdir("/")
    assert pickle.loads(packed) == scenario


@pytest.fixture(scope="module")
def small() -> giveway.Run:
    return network().run(["fifo limit 30p", "fq_codel limit 60p"])


def test_results_in_memory_are_copied_with_their_tables(small, tmp_path):
    quick = small
    for number, other in enumerate(copies(quick)):
        assert str(other) == str(quick)
        assert (other.fingerprint, other.findings, other.scenario) == (
            quick.fingerprint,
            quick.findings,
            quick.scenario,
        )
        assert (other.disciplines, other.seeds, other.ports, other.complete) == (
            quick.disciplines, quick.seeds, quick.ports, quick.complete,
        )  # fmt: skip
        assert other.folder is None
        assert other.flows.to_polars().equals(quick.flows.to_polars())
        assert other.estimate("goodput_bps", "fq_codel") == quick.estimate("goodput_bps", "fq_codel")
        if number in (0, 2):
            saved = other.save(tmp_path / str(number))
            assert saved.queue.to_polars().equals(quick.queue.to_polars())
            assert (tmp_path / str(number) / "report.html").stat().st_size > 10_000
    travelled = pickle.loads(pickle.dumps(quick))
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine.txt").write_text("mine")
    with pytest.raises(giveway.GivewayError, match="mine.txt|not empty"):
        travelled.save(tmp_path / "taken")
    assert "html" in travelled.report()


def test_results_in_a_folder_are_opened_from_it(folder):
    for other in copies(folder):
        assert other.folder == folder.folder
        assert other.fingerprint == folder.fingerprint


@pytest.mark.parametrize("name", ["flows", "gauges", "summary"])
def test_a_table_is_copied_with_its_description(quick, name):
    table = quick.table(name)
    for other in copies(table):
        assert (other.name, other.columns) == (table.name, table.columns)
        assert other.to_polars().equals(table.to_polars())
    part = table[3:5]
    assert list(pickle.loads(pickle.dumps(part))) == list(table)[3:5]


def _described(scenario, run, table):
    return scenario.seeds, run.fingerprint, len(table), giveway.run(scenario, ["fifo limit 30p"], seeds=1)


def test_objects_travel_to_processes_and_back(small):
    quick = small
    scenario = network().check()
    mine = giveway.run(scenario, ["fifo limit 30p"], seeds=1)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = pool.submit(_described, scenario, quick, quick.flows).result()
    assert found[:3] == (scenario.seeds, quick.fingerprint, len(quick.flows))
    assert found[3].fingerprint == mine.fingerprint


def test_runs_in_processes_equal_those_in_this_process():
    compared = ["fifo limit 30p", HeadDrop, SHORTEST, partial(HeadDrop, limit=10)]
    # The source in Python takes part in the runs of the built-in discipline, too.
    alone = network().run(compared, traffic={"upload": Bursts})
    apart = network().run(compared, traffic={"upload": Bursts}, jobs=2)
    assert alone.disciplines == apart.disciplines == ["fifo limit 30p", "HeadDrop", "shortest", "HeadDrop limit 10"]
    assert alone.fingerprint == apart.fingerprint
    assert str(alone) == str(apart)
    for name in ("flows", "queue", "links", "summary"):
        assert alone.table(name).to_polars().equals(apart.table(name).to_polars())
    assert apart.folder is None and apart.complete


def test_a_mistake_in_a_process_is_the_error_of_the_run():
    with pytest.raises(giveway.DisciplineError, match="Faulty at home->isp.*the fiftieth.*to_send.py, line 32"):
        network().run([Faulty], jobs=2)


def test_what_cannot_travel_is_refused():
    class Local(HeadDrop):
        pass

    lock = __import__("threading").Lock()

    class Locked(HeadDrop):
        mine = lock

    # A class within a function travels by cloudpickle, if it is installed.
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        with pytest.raises(giveway.GivewayError, match="cannot travel.*cloudpickle"):
            network().run([Local], jobs=2)
    else:
        assert network().run([Local], jobs=2).complete
    with pytest.raises(giveway.GivewayError, match="cannot travel.*leave out jobs"):
        network().run([Locked], jobs=2)


def test_a_script_without_a_guard_has_a_message(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        "import giveway\n"
        "from collections import deque\n"
        "class Fifo:\n"
        "    def __init__(self): self.queue = deque()\n"
        "    def enqueue(self, packet, cx): self.queue.append(packet)\n"
        "    def dequeue(self, cx): return self.queue.popleft() if self.queue else None\n"
        "net = giveway.Network(duration='1 s').link('a', 'b', '5mbit', '40 ms', qdisc='compare').bulk('a', 'b')\n"
        "print(net.run([Fifo], seeds=2, jobs=2).fingerprint)\n"
    )
    words = [sys.executable, str(script)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment(), timeout=120, check=False)
    assert done.returncode == 1
    assert 'below `if __name__ == "__main__":`' in done.stderr


def test_errors_travel():
    with pytest.raises(giveway.ScenarioError) as caught:
        giveway.Scenario({"duration": "soon"})
    other = pickle.loads(pickle.dumps(caught.value))
    assert (str(other), other.line, other.diagnostics) == (
        str(caught.value),
        caught.value.line,
        caught.value.diagnostics,
    )
