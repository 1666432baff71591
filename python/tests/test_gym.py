"""The Gymnasium environment."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import giveway

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from giveway.gym import OBSERVED, Parameter, QueueEnv, make_vec  # noqa: E402


def network() -> giveway.Network:
    net = giveway.Network(duration="2 s", disciplines=["codel"])
    net.link("home", "isp", "5mbit", "10ms", qdisc="compare")
    return net.bulk("home", "isp", flows=2)


def env(**options: object) -> QueueEnv:
    return QueueEnv(network(), "codel", {"target": ("1 ms", "50 ms")}, **options)


def test_gymnasium_accepts_the_environment() -> None:
    with warnings.catch_warnings():
        # The checker advises against unbounded observations, and cannot close what it did not make.
        warnings.simplefilter("ignore")
        check_env(env(), skip_render_check=True)


def test_the_environment_is_registered() -> None:
    made = gymnasium.make("giveway/Queue-v0", scenario=network(), disable_env_checker=True)
    observation, _ = made.reset(seed=1)
    assert observation.shape == (len(OBSERVED),)


def test_equal_seeds_give_equal_episodes() -> None:
    def episode(seed: int) -> list[float]:
        made = env()
        made.reset(seed=seed)
        made.action_space.seed(seed)
        rewards = []
        done = False
        while not done:
            _, reward, _, done, _ = made.step(made.action_space.sample())
            rewards.append(reward)
        return rewards

    assert len(episode(1)) == 200
    assert episode(1) == episode(1) != episode(2)


def test_an_action_sets_the_parameter() -> None:
    made = env(interval="50 ms", gauges=["flow_table"])
    made.reset(seed=1)
    _, _, _, _, info = made.step(np.array([-1.0]))
    assert info["discipline"] == "codel target 1.0ms"
    _, _, _, _, info = made.step(np.array([1.0]))
    assert info["discipline"] == "codel target 50.0ms"


def test_a_smaller_target_gives_a_shorter_queue() -> None:
    def sojourn(action: float) -> float:
        made = env(interval="100 ms")
        made.reset(seed=3)
        found, done = [], False
        while not done:
            observation, _, _, done, _ = made.step(np.array([action]))
            found.append(float(observation[2]))
        return sum(found[10:]) / len(found[10:])

    assert sojourn(-1.0) < 0.5 * sojourn(1.0)


def test_a_constant_action_is_a_run_with_that_parameter() -> None:
    made = QueueEnv(network(), "codel", {"target": ("3 ms", "50 ms")}, interval="100 ms")
    _, info = made.reset(seed=5)
    done = False
    while not done:
        _, _, _, done, _ = made.step(np.array([-1.0]))
    stepped = made._port.state.sent_packets
    run = network().run(["codel target 3ms"], seeds=[info["seed"]])
    port = next(row for row in run.links.rows() if row["port"] == "home->isp")
    assert stepped == port["sent_packets"]


def test_many_environments_step_in_one_process() -> None:
    vector = make_vec(4, network(), "codel", {"target": ("1 ms", "50 ms")})
    observations, _ = vector.reset(seed=1)
    assert observations.shape == (4, len(OBSERVED))
    begun, steps = time.perf_counter(), 0
    for _ in range(50):
        observations, rewards, _, _, _ = vector.step(vector.action_space.sample())
        steps += len(rewards)
    print(f"{steps / (time.perf_counter() - begun):.0f} steps/s")
    vector.close()


def test_parameters_have_units_and_scales() -> None:
    target = Parameter("target", "1 ms", "100 ms")
    assert [target.value(x) for x in (-1.0, 0.0, 1.0)] == ["1.0ms", "10.0ms", "100.0ms"]
    limit = Parameter("limit", "10p", "1000p")
    assert [limit.value(x) for x in (-1.0, 0.0, 1.0)] == ["10p", "100p", "1000p"]
    with pytest.raises(ValueError, match="different units"):
        Parameter("target", "1 ms", "1 s")
    with pytest.raises(ValueError, match="not below"):
        Parameter("target", "5 ms", "1 ms")
    with pytest.raises(ValueError, match="not a quantity"):
        Parameter("target", "soon", "later")


def test_wrong_gauges_and_calls_are_named() -> None:
    with pytest.raises(KeyError, match="no gauge 'colour'"):
        env(gauges=["colour"]).reset(seed=1)
    with pytest.raises(RuntimeError, match="reset"):
        env().step(np.array([0.0]))


def two(**options: object) -> QueueEnv:
    return QueueEnv(network(), "codel", {"target": ("1 ms", "50 ms"), "interval": ("50 ms", "200 ms")}, **options)


def test_an_action_may_be_a_dict_by_the_names_of_parameters() -> None:
    made, other = two(interval="50 ms"), two(interval="50 ms")
    made.reset(seed=1), other.reset(seed=1)
    observation, *_, info = made.step({"interval": np.float32(1.0), "target": -1})
    expected, *_, text = other.step(np.array([-1.0, 1.0]))
    assert info == text
    assert info["discipline"] == "codel target 1.0ms interval 200.0ms"
    assert (observation == expected).all()


@pytest.mark.parametrize(
    ("action", "kind", "text"),
    [
        (
            np.array([0.0]),
            ValueError,
            r"its shape is \(1,\), and \(2,\) is needed: a number for each of target, interval",
        ),
        (np.zeros((2, 1)), ValueError, r"its shape is \(2, 1\)"),
        (0.0, ValueError, r"its shape is \(\)"),
        ([0.0, 0.0, 0.0], ValueError, r"its shape is \(3,\)"),
        (np.array([0.0, np.nan]), ValueError, "interval is nan, and not a number between -1 and 1"),
        (np.array([np.inf, 0.0]), ValueError, "target is inf"),
        ([1.5, 0.0], ValueError, "target is 1.5"),
        ([0.0, -1.01], ValueError, "interval is -1.01"),
        (["low", "high"], TypeError, "is not an array of numbers"),
        (None, (TypeError, ValueError), "is not an array of numbers|its shape"),
        ({"target": 0.0, "limit": 0.0}, KeyError, "no parameter 'limit'; the parameters are target, interval"),
        ({"target": 0.0}, KeyError, "interval is missing"),
        ({"target": 0.0, "interval": 2.0}, ValueError, "interval is 2.0"),
        ({"target": 0.0, "interval": [0.0]}, (TypeError, ValueError), "action"),
    ],
)
def test_a_wrong_action_is_an_error_that_names_the_parameter(action: object, kind: type, text: str) -> None:
    made = two()
    made.reset(seed=1)
    before = made._simulation.now
    with pytest.raises(kind, match=text):
        made.step(action)
    # The environment is as before.
    assert made._simulation.now == before
    made.step(np.array([0.0, 0.0], dtype=np.float32))


def test_the_ends_of_single_precision_are_within() -> None:
    made = two()
    made.reset(seed=1)
    made.step(np.nextafter(np.float32([1.0, -1.0]), np.float32([2.0, -2.0])))


def test_a_parameter_that_the_discipline_lacks_is_named_at_once() -> None:
    for name in ("colour", "ecn"):
        with pytest.raises(ValueError, match=name):
            QueueEnv(network(), "codel", {name: (1, 2)})
    with pytest.raises(ValueError, match="target"):
        QueueEnv(network(), "codel", {"target": (1.0, 2.0)}).step(None)


@pytest.mark.parametrize(
    ("discipline", "actions", "text"),
    [
        ("codel", {"target": ("1 ms", "50 ms"), "limit": ("10p", "1000p")}, "codel target 7.07ms limit 100p"),
        ("fq_codel", {"quantum": (100, 1000), "target": ("1us", "1000us")}, "fq_codel quantum 316 target 31.6us"),
        ("red", {"probability": (0.01, 1.0)}, "red probability 0.1"),
        ("tbf", {"rate": ("1mbit", "4mbit")}, "tbf rate 2.0mbit"),
    ],
)
@pytest.mark.filterwarnings("ignore:(1000p|rate 5mbit) is")
def test_numbers_set_what_the_text_sets(discipline: str, actions: dict, text: str) -> None:
    """An action sets numbers without their text; the run is that of the text."""
    made = QueueEnv(network(), discipline, actions, interval="100 ms")
    _, info = made.reset(seed=2)
    sim = giveway.Simulation(network(), discipline, seed=info["seed"], series=False)
    sim.port().change(text)
    done = False
    while not done:
        *_, done, info = made.step(np.zeros(len(actions)))
    assert info["discipline"] == text
    sim.step()
    assert made._port.state == sim.port().state
