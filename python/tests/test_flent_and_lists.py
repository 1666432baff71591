"""Data files of flent, which flent itself opens; lists of transfers; traces of links."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import giveway
from giveway import flent, lists


@pytest.fixture(scope="module")
def both():
    """A network with uploads, a download and a call, whose link is measured in both directions."""
    net = giveway.Network(duration="10 s", title="Up and down", disciplines=["fq_codel"])
    net.link("home", "isp", "10mbit", "10ms", qdisc="compare", back={"rate": "20mbit", "qdisc": "compare"})
    net.bulk("home", "isp", name="backup").bulk("home", "isp", name="photos").bulk("isp", "home", name="film")
    net.audio("home", "isp", name="call")
    return net.run(seeds=2)


def open_with_flent(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "MPLCONFIGDIR": str(folder), "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "flent", *words],
        capture_output=True, text=True, cwd=folder, env=environment, timeout=120, check=False,
    )  # fmt: skip


def test_flent_prints_the_numbers_of_the_simulation(both, tmp_path):
    both.to_flent(tmp_path / "both.flent.gz", "fq_codel", seed=1)
    done = open_with_flent(tmp_path, "-i", "both.flent.gz", "-f", "summary")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout + done.stderr
    assert "Summary of rrul_var test run" in printed
    assert "Title: 'fq_codel: Up and down'" in printed
    made = flent.measurement(both, "fq_codel", seed=1)
    rows = {
        line.partition(" : ")[0].strip(): line.partition(" : ")[2].split()
        for line in printed.splitlines()
        if " : " in line
    }
    for name in ("TCP upload::backup", "TCP download::film", "TCP upload sum", "TCP totals", "Ping (ms)::UDP call"):
        row = next(words for label, words in rows.items() if label.startswith(name))
        assert float(row[0]) == pytest.approx(made.mean(name), abs=0.006), name
        assert ("ms" in row) == name.startswith("Ping")


@pytest.mark.parametrize("plot", ["totals", "all_scaled", "ping_cdf", "box_totals"])
def test_flent_draws_its_plots(both, plot, tmp_path):
    both.to_flent(tmp_path / "both.flent.gz")
    done = open_with_flent(tmp_path, "-i", "both.flent.gz", "-p", plot, "-o", "plot.svg")
    assert "ERROR" not in done.stdout + done.stderr
    assert (tmp_path / "plot.svg").read_text().count("<path") > 10


def test_flent_reads_equal_series(both, tmp_path):
    pytest.importorskip("flent.resultset")
    made = flent.write(both, tmp_path / "both.flent.gz", seed=2)
    program = (
        "import json, sys; from flent.resultset import load; found = load(sys.argv[1]); "
        "series = {name: list(found.series(name)) for name in found.series_names}; "
        "print(json.dumps({'x': list(found.x_values), 'series': series}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "both.flent.gz")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["x"] == made.x
    assert {name: values for name, values in found["series"].items() if name in made.series} == made.series


def test_a_file_that_flent_writes_is_read(both, tmp_path):
    made = flent.write(both, tmp_path / "both.flent.gz")
    program = "import sys; from flent.resultset import load; load(sys.argv[1]).dump(open(sys.argv[2], 'w'))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "both.flent.gz"), str(tmp_path / "again.flent")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = flent.read(tmp_path / "again.flent")
    assert (found.x, found.series, found.units, found.title) == (made.x, made.series, made.units, made.title)
    assert found.raw["Ping (ms)::UDP call"] == flent.read(tmp_path / "both.flent.gz").raw["Ping (ms)::UDP call"]


def test_the_series_are_those_of_the_tables(both):
    made = flent.measurement(both, seed=2)
    assert made.units["TCP upload::backup"] == "Mbits/s"
    sent = [
        row
        for row in both.shares.rows()
        if (row["seed"], row["port"]) == (2, "home->isp") and row["source"] == "backup"
    ]
    assert made.x == [row["time_s"] for row in sent]
    expected = [row["bytes"] * 8 / 1e6 / row["duration_s"] for row in sent]
    assert made.series["TCP upload::backup"] == pytest.approx(expected)
    total = (
        made.series["TCP upload::backup"][7]
        + made.series["TCP upload::photos"][7]
        + made.series["TCP download::film"][7]
    )
    assert made.series["TCP totals"][7] == pytest.approx(total)
    assert made.mean("TCP upload sum") < 10
    assert made.mean("Ping (ms) avg") > 10
    # Datagrams are pings, and acknowledgements alone do not count as throughput.
    assert "TCP upload::call" not in made.series
    assert "TCP upload::film" not in made.series
    assert "TCP download::backup" not in made.series


def test_a_run_without_datagrams_has_the_delays_of_tcp(tmp_path):
    net = giveway.Network(duration="5 s", disciplines=["fifo limit 50p"]).link(
        "a", "b", "10mbit", "10ms", qdisc="compare"
    )
    made = flent.write(net.bulk("a", "b", name="load").run(), tmp_path / "one.flent.gz")
    assert "Ping (ms)::load" in made.series
    assert made.mean("Ping (ms) avg") > 10
    assert "TCP download sum" not in made.series
    assert "ERROR" not in open_with_flent(tmp_path, "-i", "one.flent.gz", "-f", "summary").stderr


def test_what_is_written_reads_back(both, tmp_path):
    made = flent.write(both, tmp_path / "both.flent.gz")
    found = flent.read(tmp_path / "both.flent.gz")
    assert (found.x, found.series, found.units, found.title) == (made.x, made.series, made.units, made.title)
    assert found.metadata["NAME"] == "rrul_var"
    assert "seed 1" in found.metadata["NOTE"]
    assert found.raw["TCP upload::backup"][0]["val"] == made.series["TCP upload::backup"][0]
    assert set(found.to_dict()) == {"time_s", *made.series}
    import polars

    assert polars.DataFrame(found.to_dict()).height == len(made.x)
    plain = tmp_path / "both.flent"
    flent.write(both, plain)
    assert flent.read(plain).series == made.series


def test_equal_results_are_equal_files(both, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    flent.write(both, tmp_path / "a.flent.gz")
    first = (tmp_path / "a.flent.gz").read_bytes()
    flent.write(both, tmp_path / "a.flent.gz")
    assert (tmp_path / "a.flent.gz").read_bytes() == first


def test_a_simulation_and_a_measurement_are_drawn_in_one_figure(both, tmp_path):
    made = flent.measurement(both)
    # A measurement of flent itself: another test, without sums, with missing values.
    content = {
        "version": 4,
        "metadata": {"NAME": "tcp_nup", "TITLE": "measured", "TIME": "2026-01-01T00:00:00.0Z"},
        "x_values": [0.0, 0.2, 0.4],
        "results": {
            "TCP upload::1": [1.0, None, 3.0],
            "TCP upload::2": [1.0, 2.0, 3.0],
            "Ping (ms) ICMP": [20.0, None, 30.0],
        },
    }
    path = tmp_path / "measured.flent.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    measured = flent.read(path)
    assert measured.series["TCP upload::1"] == [1.0, None, 3.0]
    figure = flent.figure(made, path, labels=["simulated", "measured"])
    upper, lower = figure.axes
    assert [line.get_label() for line in upper.lines] == ["simulated", "measured"]
    assert list(upper.lines[1].get_ydata()) == [2.0, 2.0, 6.0]
    assert list(lower.lines[1].get_ydata()) == [20.0, 30.0]
    assert list(upper.lines[0].get_ydata()) == made.series["TCP totals"]
    figure.savefig(tmp_path / "both.pdf")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"text",
        b"[]",
        b"{}",
        b"\x1f\x8bbroken",
        b"BZhbroken",
        b'{"version": 4, "metadata": 3, "x_values": [], "results": {}}',
    ],
)
def test_a_file_that_is_not_of_flent_is_refused(content, tmp_path):
    path = tmp_path / "wrong.flent.gz"
    path.write_bytes(content)
    with pytest.raises(giveway.GivewayError, match=r"wrong\.flent\.gz is not a data file of flent"):
        flent.read(path)


def test_a_newer_or_damaged_file_is_refused(tmp_path):
    path = tmp_path / "x.flent"
    good = {"version": 4, "metadata": {}, "x_values": [0.0], "results": {"TCP upload": [1.0]}}
    path.write_text(json.dumps(good))
    assert flent.read(path).series == {"TCP upload": [1.0]}
    path.write_text(json.dumps({**good, "version": 5}))
    with pytest.raises(giveway.GivewayError, match="version 5"):
        flent.read(path)
    path.write_text(json.dumps({**good, "x_values": [0.0, 1.0]}))
    with pytest.raises(giveway.GivewayError, match="damaged"):
        flent.read(path)
    with pytest.raises(FileNotFoundError):
        flent.read(tmp_path / "nothing.flent")


def test_wrong_choices_are_refused(both):
    with pytest.raises(ValueError, match="seed 7 did not run"):
        flent.measurement(both, seed=7)
    with pytest.raises(KeyError, match="no discipline is 'cake'"):
        flent.measurement(both, "cake")
    with pytest.raises(KeyError, match="no series 'TCP'"):
        flent.measurement(both).mean("TCP")
    with pytest.raises(ValueError, match="at least one measurement"):
        flent.figure()
    with pytest.raises(ValueError, match="labels: give 1"):
        flent.figure(flent.measurement(both), labels=[])
    switch = giveway.run(ROOT / "scenarios" / "switch" / "short-first.toml", short=True)
    with pytest.raises(giveway.GivewayError, match="no throughput over time"):
        flent.measurement(switch, switch.disciplines[0])


# --- lists


def test_transfers_of_a_run_are_the_traffic_of_another_scenario(tmp_path):
    net = giveway.Network(duration="10 s", disciplines=["fq_codel"])
    net.link("home", "isp", "10mbit", "10ms", qdisc="compare")
    net.transfers("home", "isp", load="4mbit", size={"fixed": "50kb"}, name="files").bulk("home", "isp", name="endless")
    run = net.run(seeds=1)
    count = lists.write_flow_list(run, tmp_path / "flows.csv", source="files")
    sent = [row for row in run.flows.rows() if row["source"] == "files"]
    assert count == len(sent) > 10
    text = (tmp_path / "flows.csv").read_text()
    assert text.splitlines()[0] == "start_s,src,dst,size_bytes"
    keys = {
        "duration": "10 s",
        "phase": "exact",
        "disciplines": ["fq_codel"],
        "link": net.to_dict()["link"],
        "traffic": [
            {"kind": "flow_list", "file": "flows.csv", "name": "files"},
            {"kind": "bulk", "from": "home", "to": "isp", "name": "endless"},
        ],
    }
    again = giveway.run(giveway.Scenario(keys, folder=tmp_path), seeds=1)
    listed = [row for row in again.flows.rows() if row["source"] == "files"]
    assert [row["bytes"] for row in listed] == [row["bytes"] for row in sent]
    assert [row["start_s"] for row in listed] == pytest.approx([row["start_s"] for row in sent], abs=1e-9)
    # All transfers of the run; the endless one is left out.
    assert lists.write_flow_list(run, tmp_path / "all.csv") == count
    with pytest.raises(ValueError, match="no source 'nobody'"):
        lists.write_flow_list(run, tmp_path / "flows.csv", source="nobody")


def test_a_list_of_ns3_and_back(tmp_path):
    net = giveway.Network(duration="10 s", disciplines=["fq_codel"])
    net.link("home", "isp", "10mbit", "10ms", qdisc="compare")
    net.transfers("home", "isp", load="4mbit", size={"fixed": "50kb"}, name="files")
    run = net.run(seeds=1)
    ns3, csv = tmp_path / "flow.txt", tmp_path / "flows.csv"
    count = lists.write_ns3(run, ns3, hosts=["isp", "home"])
    assert ns3.read_text().splitlines()[0] == str(count)
    assert {tuple(line.split()[:4]) for line in ns3.read_text().splitlines()[1:]} == {("1", "0", "3", "100")}
    assert lists.flow_list_from_ns3(ns3, csv, hosts=["isp", "home"]) == count
    lists.write_flow_list(run, tmp_path / "direct.csv")
    assert csv.read_text() == (tmp_path / "direct.csv").read_text()
    with pytest.raises(ValueError, match="'home' sends or receives"):
        lists.write_ns3(run, ns3, hosts=["isp"])


def test_a_list_of_ns3_names_nodes_by_a_pattern(tmp_path):
    path = tmp_path / "flow.txt"
    path.write_text("2\n0 7 3 100 1500 2.000000001\n3 1 9 2.5\n")
    assert lists.read_ns3(path) == [
        lists.Flow(2.000000001, "h0", "h7", 1500),
        lists.Flow(2.5, "h3", "h1", 9),
    ]
    assert lists.read_ns3(path, "node{}")[0].dst == "node7"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "first line"), ("0 1 3 100 9 2\n", "first line"), ("2\n0 1 3 100 9 2\n", "says 2 flows, and there are 1"),
        ("1\n0 1 3 9 2\n", "line 2"), ("1\n0 x 3 100 9 2\n", "line 2"), ("1\n0 1 3 100 9 nan\n", "line 2"),
        ("1\n0 1 3 100 0 2\n", "line 2"), ("1\n0 1\n", "line 2"), ("1\n0 5 3 100 9 2\n", "names only 2 nodes"),
    ],
)  # fmt: skip
def test_a_wrong_list_of_ns3_is_refused_with_its_line(text, reason, tmp_path):
    path = tmp_path / "flow.txt"
    path.write_text(text)
    with pytest.raises(giveway.GivewayError, match=reason):
        lists.read_ns3(path, ["a", "b"])


def test_a_trace_of_mahimahi_has_times_and_rates(tmp_path):
    path = tmp_path / "link.mahi"
    path.write_text("0\n0\n5\n\n1500\n2000\n")
    times = lists.read_mahimahi(path)
    assert times == [0, 0, 5, 1500, 2000]
    assert lists.trace_rates(times) == [(0.0, 36_000.0), (1.0, 12_000.0), (2.0, 12_000.0)]
    assert lists.trace_rates([100, 200, 300], window=0.1) == [
        (0.0, 0.0),
        (0.1, 120_000.0),
        (0.2, 120_000.0),
        (pytest.approx(0.3), 120_000.0),
    ]
    assert lists.trace_rates([]) == []


@pytest.mark.parametrize(
    ("text", "reason"), [("1\nx\n", "line 2"), ("-1\n", "line 1"), ("5\n4\n", "is before"), ("\n", "no line")]
)
def test_a_wrong_trace_is_refused_with_its_line(text, reason, tmp_path):
    path = tmp_path / "link.mahi"
    path.write_text(text)
    with pytest.raises(giveway.GivewayError, match=reason):
        lists.read_mahimahi(path)
    with pytest.raises(ValueError, match="window"):
        lists.trace_rates([1], window=0)
