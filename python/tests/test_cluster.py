"""Sweeps on a cluster: worker processes with folders of their own, of Dask and of Ray."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import ray
from conftest import QUICKSTART, environment
from distributed import Client, LocalCluster

import giveway
from giveway import _cluster, _dask

OVER = {"link.0.rate": ["2mbit", "10mbit"], "qdisc.threshold": "log(5p,200p,3)"}
SHORT = {"seeds": 4, "short": True}


def digests(folder: Path) -> dict[str, str]:
    parts = sorted((folder / "trials").glob("*.parquet"))
    return {part.name: hashlib.sha256(part.read_bytes()).hexdigest() for part in parts}


@dataclass
class DaskCluster:
    """A scheduler, and workers that are processes of their own."""

    client: Client
    workers: list[subprocess.Popen[bytes]]


@contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    """Two workers with a thread each. Each has its own working folder, and nothing of the sources."""
    scheduler = LocalCluster(n_workers=0, dashboard_address=":0")
    workers: list[subprocess.Popen[bytes]] = []
    with scheduler, Client(scheduler) as client:
        for number in range(2):
            own = folder / f"worker-{number}"
            own.mkdir()
            words = ["-m", "distributed.cli.dask_worker", scheduler.scheduler_address, "--nthreads", "1", "--no-nanny"]
            words += ["--no-dashboard", "--local-directory", str(own), "--name", f"worker-{number}"]
            with (own / "log").open("wb") as log:
                command = [sys.executable, *words]
                workers.append(subprocess.Popen(command, cwd=own, env=environment(), stdout=log, stderr=log))
        try:
            client.wait_for_workers(2, timeout=60)
            yield DaskCluster(client, workers)
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
                worker.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with dask_cluster(tmp_path_factory.mktemp("dask")) as cluster:
        yield cluster.client


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The module ray, connected to a cluster of two workers in other processes."""
    # Workers import from the working folder of this process. That of the sources has no compiled part.
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("ray"))
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": environment()})
    yield ray
    ray.shutdown()
    os.chdir(before)


@pytest.fixture(params=["dask", "connected"], ids=["dask", "ray"])
def client(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_a_cluster_has_the_same_bytes(client: Any, tmp_path: Path) -> None:
    here = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "here", **SHORT)
    shares: list[float] = []
    there = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=client, progress=shares.append, **SHORT)
    assert there.counts == here.counts
    assert digests(here.folder) == digests(there.folder)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    again = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=client, **SHORT)
    assert again.counts["ran"] == 0


def test_seeds_end_with_a_precision_on_a_cluster(client: Any, tmp_path: Path) -> None:
    asked = {"until": "utilization within 10 %", "seeds": 12, "short": True}
    here = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "here", **asked)
    there = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=client, **asked)
    assert there.complete
    assert digests(here.folder) == digests(there.folder)


def test_a_search_on_a_cluster_has_the_same_result(client: Any) -> None:
    asked = {"objective": "goodput_bps", "discipline": "efd limit 300p", "trials": 10, "seeds": 2, "confirm": 2}
    here = giveway.tune(QUICKSTART, {"qdisc.threshold": (5, 200)}, short=True, **asked)
    there = giveway.tune(QUICKSTART, {"qdisc.threshold": (5, 200)}, short=True, client=client, **asked)
    assert here == there


def test_files_of_the_scenario_travel_by_their_content(client: Any, tmp_path: Path) -> None:
    scenario = tmp_path / "mine" / "flows.toml"
    scenario.parent.mkdir()
    (scenario.parent / "flows.csv").write_text("start_s,src,dst,size_bytes\n0.1,a,b,20000\n0.2,a,b,30000\n")
    scenario.write_text(
        'duration = "2 s"\ndisciplines = ["fifo limit 20p"]\n'
        '[[link]]\nfrom = "a"\nto = "b"\nrate = "10mbit"\ndelay = "20ms"\nqdisc = "compare"\n'
        '[[traffic]]\nkind = "flow_list"\nfile = "flows.csv"\nname = "files"\n'
    )
    over = {"link.0.rate": ["10mbit", "20mbit"]}
    here = giveway.sweep(scenario, over, out=tmp_path / "here")
    there = giveway.sweep(scenario, over, out=tmp_path / "there", client=client)
    shared = giveway.sweep(scenario, over, out=tmp_path / "shared", client=client, share=str(tmp_path / "share"))
    assert digests(here.folder) == digests(there.folder) == digests(shared.folder)
    assert len(list((tmp_path / "share").iterdir())) == 1
    absolute = giveway.Scenario(scenario, changes={"traffic.files.file": str(scenario.parent / "flows.csv")})
    with pytest.raises(giveway.GivewayError, match="name it relative"):
        giveway.sweep(absolute, over, out=tmp_path / "absolute", client=client)


def test_a_worker_of_another_version_is_refused_by_name(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _cluster.Spec.of

    def older(*words: Any) -> _cluster.Spec:
        return _cluster.Spec(**{**vars(made(*words)), "version": "0.0.9, sources 1234", "seeds": [7]})

    monkeypatch.setattr(_cluster.Spec, "of", older)
    with pytest.raises(
        giveway.GivewayError, match=r"the worker (tcp://|\w+ on ).* has Giveway .*0\.0\.9, sources 1234"
    ):
        giveway.sweep(QUICKSTART, OVER, out=tmp_path / "out", seeds=2, short=True, client=client)


def test_a_lost_folder_keeps_what_has_finished(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))

    def lose(share: float) -> None:
        if share > 0.2:
            # A renamed folder is not lost: what finishes goes into it.
            shutil.rmtree(out, ignore_errors=True)

    with pytest.raises(giveway.GivewayError, match=r"the last finished trials \(\d+\) are in .*reuse=\["):
        giveway.sweep(QUICKSTART, OVER, out=out, client=client, progress=lose, **SHORT)
    [kept] = temporary.glob("giveway-rescued-*")
    again = giveway.sweep(QUICKSTART, OVER, out=out, client=client, reuse=[kept], **SHORT)
    assert again.counts["reused"] > 0
    assert again.complete


def test_something_else_than_a_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="is not a cluster: give a client of Dask"):
        giveway.sweep(QUICKSTART, OVER, out=tmp_path / "out", client="localhost:8786")  # pyright: ignore


# --- workers that fail


def disturbed(tmp_path: Path, disturb: Callable[[DaskCluster], None]) -> None:
    """A sweep in the middle of which something happens to the workers has the bytes of one without."""
    asked = {"seeds": 16}
    here = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "here", **asked)
    happened: list[float] = []
    with dask_cluster(tmp_path) as cluster:

        def watch(share: float) -> None:
            if share > 0.2 and not happened:
                happened.append(share)
                disturb(cluster)

        there = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=cluster.client, progress=watch, **asked)
    assert happened
    assert there.counts == here.counts
    assert digests(here.folder) == digests(there.folder)


def test_a_killed_worker_costs_only_its_own_trials(tmp_path: Path) -> None:
    disturbed(tmp_path, lambda cluster: cluster.workers[0].kill())


def test_a_worker_that_stands_still_does_not_hold_the_end_up(tmp_path: Path) -> None:
    # The scheduler gives such a worker up after minutes. The batches that it has run elsewhere before.
    began = time.monotonic()
    disturbed(tmp_path, lambda cluster: cluster.workers[0].send_signal(signal.SIGSTOP))
    assert time.monotonic() - began < 120, "the scheduler has given it up"


def test_a_killed_worker_of_ray_costs_only_its_own_trials(connected: Any, tmp_path: Path) -> None:
    here = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "here", seeds=16)
    killed: list[int] = []

    def kill(share: float) -> None:
        if share > 0.2 and not killed:
            # A worker of Ray names itself so while it runs one of our batches.
            names = ((int(each.name), (each / "cmdline").read_bytes()) for each in Path("/proc").glob("[0-9]*"))
            killed.extend(pid for pid, name in names if name.startswith(b"ray::_work"))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    there = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "there", client=connected, progress=kill, seeds=16)
    assert killed
    assert there.counts == here.counts
    assert digests(here.folder) == digests(there.folder)


# --- clusters that are lost


def lost(tmp_path: Path, client: Any, lose: Callable[[], None]) -> None:
    """A sweep in the middle of which the cluster is lost. It says so, and the same call goes on without it."""
    asked = {"seeds": 16, "short": True}
    happened: list[float] = []

    def watch(share: float) -> None:
        if share > 0.1 and not happened:
            happened.append(share)
            lose()

    with pytest.raises(giveway.GivewayError, match="the same call goes on there") as caught:
        giveway.sweep(QUICKSTART, OVER, out=tmp_path / "out", client=client, progress=watch, **asked)
    assert str(tmp_path / "out") in str(caught.value)
    again = giveway.sweep(QUICKSTART, OVER, out=tmp_path / "out", **asked)
    assert again.complete
    assert again.counts["had"] > 0


def test_a_cluster_of_dask_without_workers_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dask, "_WITHOUT", 3.0)
    with dask_cluster(tmp_path) as cluster:
        lost(tmp_path, cluster.client, lambda: [worker.kill() for worker in cluster.workers])


def test_a_scheduler_of_dask_that_ends_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dask, "_WITHOUT", 3.0)
    with dask_cluster(tmp_path) as cluster:
        lost(tmp_path, cluster.client, cluster.client.cluster.close)


def test_a_search_on_a_lost_cluster_is_an_error_and_no_failed_candidate(tmp_path: Path) -> None:
    with dask_cluster(tmp_path) as cluster:
        client, closed = cluster.client, []

        def watch(share: float) -> None:
            if not closed:
                closed.append(share)
                client.close()

        with pytest.raises(giveway.GivewayError, match="the cluster was lost"):
            giveway.tune(
                QUICKSTART, {"qdisc.threshold": (5, 200)}, objective="goodput_bps", discipline="efd limit 300p",
                trials=24, seeds=2, short=True, client=client, progress=watch,
            )  # fmt: skip


# --- disciplines in Python


def test_a_class_travels_to_a_cluster(client: Any, tmp_path: Path) -> None:
    class Fifo:
        def __init__(self, limit=30):
            self.queue: list[giveway.Packet] = []
            self.limit = limit

        def enqueue(self, packet, cx):
            if len(self.queue) < self.limit:
                self.queue.append(packet)
            else:
                cx.drop(packet)

        def dequeue(self, cx):
            return self.queue.pop(0) if self.queue else None

    asked = {"seeds": 1, "short": True, "disciplines": [Fifo, "fifo limit 30p"]}
    over = {"qdisc.limit": [10, 20]}
    here = giveway.sweep(QUICKSTART, over, out=tmp_path / "here", **asked)
    there = giveway.sweep(QUICKSTART, over, out=tmp_path / "there", client=client, **asked)
    assert there.counts == here.counts
    assert digests(here.folder) == digests(there.folder)


# --- the last, since it ends the cluster of Ray


def test_a_lost_cluster_of_ray_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ray.shutdown()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": environment()})
    try:
        lost(tmp_path, ray, ray.shutdown)
    finally:
        ray.shutdown()
