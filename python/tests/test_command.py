"""The command `giveway` of the package, and lists of what there is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from conftest import QUICKSTART, ROOT, environment

import giveway


def test_the_command_explains_itself(python):
    done = python("-m", "giveway", "--help")
    assert done.returncode == 0
    assert "Usage: giveway <COMMAND>" in done.stdout
    version = python("-m", "giveway", "--version")
    assert version.stdout.split()[:2] == ["giveway", giveway.__version__.split()[0]]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["nonsense"], 2, "unrecognized subcommand"),
        (["check", "/nothing.toml"], 2, "No such file"),
        (["explain", "nothing"], 2, "unknown name"),
    ],
)
def test_a_wrong_command_ends_with_its_exit_code_and_a_message(words, code, text, python):
    done = python("-m", "giveway", *words)
    assert done.returncode == code
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_the_command_checks_all_shipped_scenarios(python):
    done = python("-m", "giveway", "check", *(str(path) for path in sorted((ROOT / "scenarios").glob("*.toml"))))
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_the_command():
    process = subprocess.Popen(
        [sys.executable, "-m", "giveway", "run", str(QUICKSTART), "--seeds", "5000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in errors


def test_a_closed_pipe_is_no_error(python):
    done = subprocess.run(
        f"{sys.executable} -m giveway explain efd | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        env=environment(),
    )
    assert "Traceback" not in done.stderr
    assert "panicked" not in done.stderr
    assert done.stdout.count("\n") == 1


def test_lists_and_explanations_agree_with_the_command(python):
    names = [entry.name for entry in giveway.disciplines()]
    assert {"fifo", "fq_codel", "cake", "efd"} <= set(names)
    printed = json.loads(python("-m", "giveway", "list", "disciplines", "--json").stdout)
    assert [each["name"] for each in printed] == names
    efd = next(entry for entry in giveway.disciplines() if entry.name == "efd")
    assert "NETWORKING 2011" in efd.explain()
    assert {"cubic", "bbr"} <= {entry.name for entry in giveway.congestion_controls()}
    assert {"bulk", "web"} <= {entry.name for entry in giveway.traffic()}
    assert {"islip"} <= {entry.name for entry in giveway.arbiters()}
    assert "bytes per second" in giveway.explain("units")


@pytest.mark.parametrize("name", ["nothing", "", "--help", "fifo\0", "é"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises((giveway.GivewayError, ValueError)):
        giveway.explain(name)


def test_a_bound_is_known_without_a_run():
    net = giveway.Network(duration="10 s").link("a", "b", "10mbit", "1ms", qdisc="compare")
    net.cbr("a", "b", "1mbit", name="voice", reserved="2mbit")
    found = giveway.bound(net, disciplines=["wfq", "fifo limit 100p"])
    assert [(each.traffic, each.discipline) for each in found] == [("voice", "wfq"), ("voice", "fifo limit 100p")]
    assert found[0].reserved == 2_000_000
    assert 0 < found[0].delay < 0.1
    assert found[1].delay is None
    assert found[1].reason
    with pytest.raises(giveway.GivewayError, match="quickstart.toml has no reservation"):
        giveway.bound(QUICKSTART)


def test_a_file_that_is_no_trace_is_refused(tmp_path):
    path = tmp_path / "no.trace"
    path.write_bytes(os.urandom(100))
    with pytest.raises(giveway.GivewayError, match=r"no\.trace"):
        giveway.replay_check(path)


def test_closed_forms_have_their_known_values():
    from giveway import theory

    assert theory.jain([1, 1, 1, 1]) == 1.0
    assert theory.jain([1, 0, 0, 0]) == 0.25
    assert theory.mm1_response(0.5, 1.0) == pytest.approx(2.0)
    assert theory.md1_waiting(0.5, 1.0) == pytest.approx(0.5)
    assert theory.mm1_response(2.0, 1.0) is None
    assert theory.fair_share([1, 10, 10], 9) == pytest.approx(4.0)
    assert theory.reno_mean_window(0.015) == pytest.approx(10.0)
