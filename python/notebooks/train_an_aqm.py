"""Train an AQM in the gym: an agent sets CoDel's target on a link whose rate varies."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="Train an AQM in the gym")


@app.cell
def _():
    import marimo as mo
    import numpy as np

    import giveway
    from giveway.gym import QueueEnv

    return QueueEnv, giveway, mo, np


@app.cell
def _(mo):
    mo.md("""
    # Train an AQM in the gym

    CoDel drops packets once the queue has delayed every packet by more than its `target` for 100 ms. A small
    target keeps the delay low. A target that is too small leaves the link idle when its rate rises. Which target
    is best if the rate of the link varies, and can an agent that watches the queue do better than any constant?

    The link below changes its rate between 2 and 10 Mbit/s. Two uploads share it.
    """)
    return


@app.cell
def _(giveway):
    steps = [["0 s", "10mbit"], ["3 s", "2mbit"], ["6 s", "6mbit"], ["9 s", "3mbit"]]
    net = giveway.Network(title="Uploads over a link that varies", duration="12 s", disciplines=["codel target 10ms"])
    net.link("home", "isp", {"steps": steps}, "20ms", qdisc="compare")
    net.bulk("home", "isp", flows=2)
    return (net,)


@app.cell
def _(mo):
    mo.md("""
    ## The environment

    A step simulates 50 ms. The observation contains the backlog, the share of the rate that was used, the mean and the
    largest sojourn time, and the share of dropped packets. The action is a number from -1 to 1, which stands for
    a target from 2 to 50 ms on a logarithmic scale. The reward of a step is the utilization minus a tenth for
    each 10 ms of mean sojourn time.
    """)
    return


@app.cell
def _(QueueEnv, net):
    env = QueueEnv(net, "codel", {"target": ("2 ms", "50 ms")}, interval="50 ms")

    def episode(policy, seed):
        """The mean reward of a run, in which a policy turns observations into actions."""
        observation, _ = env.reset(seed=seed)
        total, steps, done = 0.0, 0, False
        while not done:
            observation, reward, _, done, _ = env.step([policy(observation)])
            total, steps = total + reward, steps + 1
        return total / steps

    return env, episode


@app.cell
def _(episode, np):
    constants = np.linspace(-1, 1, 9)
    seeds = range(1, 4)
    scores = [np.mean([episode(lambda _, x=x: x, seed) for seed in seeds]) for x in constants]
    best = constants[int(np.argmax(scores))]
    return best, constants, scores, seeds


@app.cell
def _(constants, mo, scores):
    rows = "\n".join(
        f"| {2 * 25 ** ((x + 1) / 2):.1f} ms | {score:.3f} |" for x, score in zip(constants, scores, strict=True)
    )
    mo.md(f"""
    ## Constant targets

    | target | mean reward of a step |
    | --- | --- |
    {rows}
    """)
    return


@app.cell
def _(mo):
    mo.md("""
    ## An agent

    The policy is linear: the action is a weighted sum of the utilization and the logarithm of the sojourn time,
    plus a constant. The cross-entropy method draws weights from a normal distribution, keeps the best fifth, and
    fits the distribution to them. It starts with the best constant.
    """)
    return


@app.cell
def _(best, episode, np, seeds):
    def linear(weights):
        def policy(observation):
            features = np.array([1.0, observation[1], np.log1p(observation[2])])
            return float(np.clip(weights @ features, -1, 1))

        return policy

    draw = np.random.default_rng(1)
    mean, deviation = np.array([best, 0.0, 0.0]), np.array([0.5, 0.5, 0.3])
    history = []
    for _ in range(6):
        population = mean + deviation * draw.standard_normal((20, 3))
        values = [np.mean([episode(linear(weights), seed) for seed in seeds]) for weights in population]
        elite = population[np.argsort(values)[-4:]]
        mean, deviation = elite.mean(axis=0), elite.std(axis=0) + 0.02
        history.append(max(values))
    return history, linear, mean


@app.cell
def _(best, episode, linear, mean, mo, np):
    fresh = range(101, 111)
    constant = [episode(lambda _: best, seed) for seed in fresh]
    trained = [episode(linear(mean), seed) for seed in fresh]
    difference = np.array(trained) - np.array(constant)
    half = 2.262 * difference.std(ddof=1) / np.sqrt(len(difference))
    verdict = (
        "The interval includes zero, so these runs do not show a difference."
        if abs(difference.mean()) <= half
        else "The interval does not include zero."
    )
    mo.md(f"""
    ## On ten seeds that the training did not use

    | policy | mean reward of a step |
    | --- | --- |
    | best constant target | {np.mean(constant):.3f} |
    | trained policy | {np.mean(trained):.3f} |

    The difference is {difference.mean():.3f} ± {half:.3f} (95 % confidence interval over the seeds). {verdict}
    """)
    return constant, trained


@app.cell
def _(history, mo):
    mo.md("The best reward of each generation: " + ", ".join(f"{value:.3f}" for value in history) + ".")
    return


if __name__ == "__main__":
    app.run()
