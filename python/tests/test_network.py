"""Scenarios that are built in Python."""

from __future__ import annotations

import tempfile
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import QUICKSTART
from hypothesis import given, settings
from hypothesis import strategies as some

import giveway
from giveway import _giveway


def home() -> giveway.Network:
    """The network of the documentation, for five seconds."""
    net = giveway.Network(duration="5 s", title="Built in Python")
    net.link("home", "isp", "10mbit", "10ms", qdisc="compare")
    return net.bulk("home", "isp", flows=2).audio("home", "isp")


def test_the_example_of_the_documentation_runs():
    run = home().run(["fifo limit 100p", "fq_codel"], seeds=2)
    assert run.disciplines == ["fifo limit 100p", "fq_codel"]
    assert run.estimate("voice_delay_p99_s", "fq_codel").mean < run.estimate("voice_delay_p99_s", "fifo").mean


def test_a_network_prints_toml_that_the_command_line_accepts(python, tmp_path):
    net = home().compare("fifo limit 100p", "fq_codel")
    path = tmp_path / "built.toml"
    path.write_text(str(net))
    done = python("-m", "giveway", "check", str(path))
    assert done.returncode == 0, done.stderr
    assert giveway.run(path).fingerprint == net.run().fingerprint


def test_a_network_a_dict_and_toml_are_the_same():
    net = home().compare("fifo limit 100p")
    assert giveway.Network.from_dict(net.to_dict()) == net
    assert giveway.Network.from_toml(net.to_toml()) == net
    assert giveway.Network.from_scenario(net) == net
    assert net.check().to_dict() == net.to_dict()


def test_a_shipped_scenario_can_be_built_upon():
    net = giveway.Network.from_scenario(QUICKSTART).video("server", "home", name="film")
    assert len(net.to_dict()["traffic"]) == len(giveway.Scenario(QUICKSTART).to_dict()["traffic"]) + 1
    assert net.check().disciplines == giveway.Scenario(QUICKSTART).disciplines


def test_a_network_does_not_share_its_parts_with_the_caller():
    back = {"rate": "50mbit"}
    net = giveway.Network().link("a", "b", "10mbit", "10ms", back=back)
    back["rate"] = "1mbit"
    net.to_dict()["link"].clear()
    assert net.to_dict()["link"][0]["back"] == {"rate": "50mbit"}


def test_every_kind_of_traffic_has_its_keys():
    net = giveway.Network(duration="1 s")
    net.link("a", "b", "10mbit", "10ms", qdisc="compare").compare("fifo limit 40p")
    net.bulk("a", "b", flows=2, size="100kb").transfers("a", "b", load="2mbit", size="web_search").web(
        "a", "b", users=1, think="1s"
    )
    net.audio("a", "b").video("a", "b").cbr("a", "b", "100kbit").quic("a", "b")
    kinds = [each["kind"] for each in net.to_dict()["traffic"]]
    assert kinds == ["bulk", "transfers", "web", "audio", "video", "cbr", "quic"]
    assert set(kinds) <= {entry.name for entry in giveway.traffic()}
    assert net.check().duration == 1.0


def test_a_topology_makes_its_links():
    net = giveway.Network(duration="1 s").set(disciplines=["fifo limit 40p"])
    net.topology(
        "dumbbell", hosts=2, host_rate="100mbit", host_delay="1ms", rate="10mbit", delay="5ms", qdisc="compare"
    )
    net.bulk("h1", "h3")
    try:
        links = net.check().links
    except giveway.ScenarioError as error:
        pytest.fail(str(error))
    assert len(links) == 10


def test_a_mistake_is_shown_with_its_line_in_the_printed_toml():
    net = home().cbr("home", "isp", "fast").compare("fifo limit 100p")
    with pytest.raises(giveway.ScenarioError) as caught:
        net.check()
    assert "fast" in net.to_toml().splitlines()[caught.value.line - 1]
    with pytest.raises(giveway.ScenarioError, match="a network needs links"):
        giveway.Network().check()


def test_a_network_describes_itself():
    assert repr(home()) == "<giveway.Network: 1 links, 2 kinds of traffic; print it for its TOML>"
    assert "<script" not in giveway.Network(title="<script>")._repr_html_()


names = some.text(some.characters(), min_size=1, max_size=8)
rates = some.builds("{}{}".format, some.integers(1, 500), some.sampled_from(["mbit", " Mbit/s", "kbps"]))
times = some.builds("{}{}".format, some.integers(1, 90), some.sampled_from(["ms", " us", " ms"]))


@some.composite
def networks(draw):
    """A chain of nodes with traffic between its ends and its neighbours."""
    nodes = draw(
        some.lists(some.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True), min_size=2, max_size=5, unique=True)
    )
    net = giveway.Network(duration=draw(times), title=draw(some.none() | some.text("ab \"'\\\n\tü#=[]", max_size=12)))
    compared = draw(some.integers(0, len(nodes) - 2))
    for number, (a, b) in enumerate(pairwise(nodes)):
        back = draw(some.none() | some.fixed_dictionaries({"rate": rates}))
        net.link(a, b, draw(rates), draw(times), qdisc="compare" if number == compared else None, back=back)
    for number in range(draw(some.integers(1, 4))):
        a, b = draw(some.sampled_from([(nodes[0], nodes[-1]), (nodes[-1], nodes[0]), (nodes[0], nodes[1])]))
        kind = draw(some.sampled_from(["bulk", "cbr", "audio", "web"]))
        name = f"{kind}{number}"
        if kind == "bulk":
            net.bulk(a, b, flows=draw(some.none() | some.integers(1, 9)), name=name)
        elif kind == "cbr":
            net.cbr(a, b, draw(rates), name=name)
        elif kind == "audio":
            net.audio(a, b, name=name)
        else:
            net.web(a, b, users=draw(some.integers(1, 5)), think="1 s", name=name)
    return net.compare(
        *draw(some.lists(some.sampled_from(["fifo", "efd", "fq_codel limit 99p"]), min_size=1, unique=True))
    )


@given(networks())
def test_random_networks_are_valid_and_read_back(net):
    assert giveway.Network.from_toml(net.to_toml()) == net
    assert giveway.Network.from_dict(net.to_dict()) == net
    scenario = net.check()
    assert scenario.to_dict() == net.to_dict()
    assert giveway.Network.from_scenario(scenario) == net
    assert giveway.Scenario.from_toml(str(scenario)) == scenario


@settings(max_examples=20)
@given(networks())
def test_random_networks_pass_the_check_of_the_command_line(net):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.toml"
        path.write_text(str(net), encoding="utf-8")
        assert "random.toml" in _giveway.answer(["check", str(path)])


@given(names, names, names, some.text())
def test_any_names_are_kept_or_refused(a, b, source, title):
    net = giveway.Network(duration="100 ms", title=title)
    net.link(a, b, "10mbit", "1ms", qdisc="compare").cbr(a, b, "1mbit", name=source).compare("fifo limit 9p")
    try:
        scenario = net.check()
    except ValueError as refused:
        assert str(refused)
    else:
        assert tomllib.loads(scenario.to_toml()) == net.to_dict()
        assert scenario.links[0].name == f"{a}->{b}"
        run = giveway.run(scenario)
        assert set(run.flows["source"]) <= {source}
