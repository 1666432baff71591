"""A switch: which arbiter serves short packets first, and what long ones pay."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(app_title="A switch")


@app.cell
def _():
    from pathlib import Path

    import marimo as mo
    import polars

    import giveway

    return Path, giveway, mo, polars


@app.cell
def _(mo):
    mo.md("""
    # A switch

    In a switch with input queues, each input can send one cell to one output in each time slot. An *arbiter* chooses
    which inputs and outputs are connected. Packets have several cells. The scenario compares arbiters that prefer
    short packets with those that do not.
    """)
    return


@app.cell
def _(Path, giveway, mo):
    start = mo.notebook_dir() or Path.cwd()
    name = Path("scenarios") / "switch" / "short-first.toml"
    path = next(folder / name for folder in (start, *start.parents) if (folder / name).exists())
    scenario = giveway.Scenario(path)
    mo.md(scenario.description)
    return (scenario,)


@app.cell
def _(giveway, scenario):
    run = giveway.run(scenario, short=True)
    run
    return (run,)


@app.cell
def _(run):
    figure = run.figure("short_wait_mean_slots", columns=2)
    figure
    return (figure,)


@app.cell
def _(polars, run):
    wanted = ["short_wait_mean_slots", "long_wait_mean_slots", "wait_mean_slots"]
    metrics = run.metrics.to_polars().filter(polars.col("metric").is_in(wanted))
    means = metrics.group_by("qdisc", "metric", maintain_order=True).agg(polars.col("value").mean())
    means.pivot(on="metric", index="qdisc", values="value")
    return


@app.cell
def _(mo):
    mo.md("""
    Short packets hardly wait with `p_spf`, which lets them interrupt long ones. Long packets pay for it: they wait
    longer than with `islip`. `oq` is an ideal switch, in which no packet waits for an arbiter.
    """)
    return


@app.cell
def _(giveway, mo, run):
    used = {name.split()[0] for name in run.disciplines}
    lines = [f"- `{entry.name}`: {entry.summary}" for entry in giveway.arbiters() if entry.name in used]
    mo.md("\n".join(["## The arbiters", "", *lines]))
    return


if __name__ == "__main__":
    app.run()
